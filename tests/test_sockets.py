"""However a crawl over real sockets is left, no socket and no connection stays."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from sites.left import sockets
from sites.raw import Server, raw_server, reply

from trio_crawler import Crawler, HttpFetch, Page


def page(*links: str) -> bytes:
    anchors = "".join(f"<a href={link}></a>" for link in links)
    return reply(200, {"Content-Type": "text/html"}, anchors.encode())


SITE = {"/": page(*(f"/{n}" for n in range(30))), **{f"/{n}": page("/") for n in range(30)}}


@asynccontextmanager
async def site() -> AsyncIterator[Server]:
    """Serve the site, and check that the client's sockets are gone before the server is."""
    async with raw_server(SITE) as server:
        before = sockets()
        yield server
        with trio.fail_after(5):
            while sockets() > before:
                await trio.lowlevel.checkpoint()


async def test_a_crawl_over_sockets_finds_every_page_and_closes_every_socket():
    async with site() as server:
        totals = await Crawler([server.url]).crawl()
        assert (totals.pages, totals.failures) == (31, 0)
        assert len(server.requests) == 31 + len(["/robots.txt"])


async def test_leaving_early_closes_every_socket():
    async with site() as server, Crawler([server.url]).outcomes() as outcomes:
        async for outcome in outcomes:
            assert isinstance(outcome, Page)
            if outcome.url != server.url:
                break


async def test_an_exception_of_the_caller_closes_every_socket():
    async def stumble(url: str) -> None:
        async with Crawler([url]).outcomes() as outcomes:
            async for outcome in outcomes:
                if outcome.url != url:
                    raise KeyError("mine")

    async with site() as server:
        with pytest.raises(KeyError, match="mine"):
            await stumble(server.url)


async def test_a_cancelled_crawl_closes_every_socket():
    async with site() as server:
        with trio.CancelScope() as scope:
            async with Crawler([server.url]).outcomes() as outcomes:
                async for outcome in outcomes:
                    if outcome.url != server.url:
                        scope.cancel()
        assert scope.cancelled_caught


async def test_a_bug_closes_every_socket():
    def scope(job: object) -> None:
        raise LookupError("a bug")

    async with site() as server:
        with pytest.raises(ExceptionGroup):
            await Crawler([server.url], scope=scope).crawl()


async def test_a_fetch_of_the_callers_serves_several_crawls_and_is_the_callers_to_close():
    async with site() as server, HttpFetch(seeds=[server.url]) as fetch:
        for _ in range(2):
            assert (await Crawler([server.url], fetch=fetch).crawl()).pages == 31
        assert server.connections <= 10
