"""The usual answer: a head and a body by Content-Length, received together, over a kept socket."""

from __future__ import annotations

import gzip
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from types import FrameType

import pytest
import trio
from sites.exchange import table
from sites.pieces import Pieces, at_once
from sites.raw import Request, chunked, raw_server, reply

import trio_crawler
from trio_crawler.model import Fault, Job, Reason, Response
from trio_crawler.net.fetch import HttpFetch
from trio_crawler.net.http1.connection import Connection
from trio_crawler.net.http1.message import Head
from trio_crawler.net.turn import DEADLINES, Deadlines, Progress

PACKAGE = Path(trio_crawler.__file__).parent
OK = b"HTTP/1.1 200 OK\r\n"
NOT_WHOLE = {
    "a body that has not all come": [OK + b"Content-Length: 4\r\n\r\npag", b"e"],
    "a body of which nothing has come": [OK + b"Content-Length: 4\r\n\r\n", b"page"],
    "chunks": [OK + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(b"page")],
    "a body that ends with the connection": [OK + b"\r\npage"],
}


def asked(*pieces: bytes) -> tuple[Connection, Head, Progress]:
    connection, progress = Connection(("http", "h.test", 80), Pieces(pieces)), Progress("h.test")
    return connection, at_once(connection.ask(b"GET / HTTP/1.1\r\n\r\n", progress, 99)), progress


@pytest.mark.parametrize("body", [b"page", b""])
def test_a_body_that_came_with_its_head_is_taken_whole_and_the_connection_is_kept(
    body: bytes,
) -> None:
    connection, _, progress = asked(reply(body=body))
    assert connection.take_whole() == body
    assert connection.reusable
    assert progress.received == len(body)


def test_bytes_behind_a_body_that_is_taken_whole_end_the_connection() -> None:
    connection, _, _ = asked(reply(body=b"page") + reply(body=b"evil"))
    assert connection.take_whole() == b"page"
    assert not connection.reusable


@pytest.mark.parametrize("pieces", table(NOT_WHOLE))
def test_it_is_read_step_by_step_and_not_taken_whole_if_it_is(pieces: list[bytes]) -> None:
    connection, _, _ = asked(*pieces)
    assert connection.take_whole() is None
    parts = []
    while part := at_once(connection.read()):
        parts.append(part)
    assert b"".join(parts) == b"page"


async def test_a_usual_answer_takes_at_most_43_calls_and_none_more_for_a_longer_body() -> None:
    calls: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and PACKAGE in Path(frame.f_code.co_filename).parents:
            calls.append(frame.f_code.co_qualname)

    counts = []
    pages = {f"/{size}": reply(body=b"x" * size) for size in (1, 100, 5_000)}
    async with raw_server(pages) as server, HttpFetch(seeds=[server.url]) as fetch, kept():
        for size in (1, 1, 100, 5_000):
            calls.clear()
            sys.setprofile(note)
            try:
                answer = await fetch(Job(f"{server.url}{size}"))
            finally:
                sys.setprofile(None)
            assert isinstance(answer, Response)
            assert answer.body == b"x" * size
            counts.append(len(calls))
        assert fetch.statistics().bytes == 5_102
    # The first one has opened the connection.
    assert counts[1] == counts[2] == counts[3] <= 43


# The deadlines of usual requests, which one task of a crawl keeps.


@asynccontextmanager
async def kept() -> AsyncIterator[Deadlines]:
    """Keep deadlines as a crawl does for its workers."""
    deadlines = Deadlines()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(deadlines.keep)
        await trio.testing.wait_all_tasks_blocked()
        token = DEADLINES.set(deadlines)
        yield deadlines
        DEADLINES.reset(token)
        nursery.cancel_scope.cancel()


async def slowly(request: Request, stream: trio.abc.Stream) -> None:
    """Answer `/` at once, `/silent` never, and `/slow` with the beginning of a body."""
    if request.target == "/":
        await stream.send_all(reply(body=b"page"))
    elif request.target == "/slow":
        await stream.send_all(OK + b"Content-Length: 9\r\n\r\npa")


@pytest.mark.parametrize("path", ["silent", "slow"])
async def test_the_deadline_of_a_usual_request_is_that_of_any_other(path: str) -> None:
    async with raw_server(slowly) as server:
        answers = []
        for keeping in (kept(), nullcontext()):
            fetch = HttpFetch(seeds=[server.url], timeout=0.2)
            async with fetch, keeping:
                assert isinstance(await fetch(Job(server.url)), Response)
                began = trio.current_time()
                answers.append(await fetch(Job(server.url + path)))
                assert trio.current_time() - began >= 0.2
                wire = fetch.statistics().wire
                assert wire is not None
                assert (wire.open, wire.made, wire.reused) == (0, 1, 1)
    assert answers[0] == answers[1]
    assert isinstance(answers[0], Fault)
    assert answers[0].reason is Reason.TIMEOUT


async def test_of_many_usual_requests_each_has_its_own_deadline() -> None:
    took: dict[str, float] = {}
    answers: dict[str, object] = {}

    async def ask(fetch: HttpFetch, url: str, path: str) -> None:
        began = trio.current_time()
        answers[path] = await fetch(Job(url + path))
        took[path] = trio.current_time() - began

    async with (
        raw_server(slowly) as server,
        kept(),
        HttpFetch(seeds=[server.url], timeout=0.3) as fetch,
    ):
        for paths in (["", "", ""], ["silent", "slow", ""]):
            async with trio.open_nursery() as nursery:
                for path in paths:
                    nursery.start_soon(ask, fetch, server.url, path)
                    await trio.testing.wait_all_tasks_blocked(0.01)
    assert isinstance(answers[""], Response)
    assert all(isinstance(answers[path], Fault) for path in ("silent", "slow"))
    assert all(took[path] >= 0.3 for path in ("silent", "slow"))


async def test_a_body_that_waits_to_be_decoded_waits_until_its_deadline() -> None:
    body = gzip.compress(b"page")
    site = {"/": reply(body=b""), "/gzip": reply(200, {"Content-Encoding": "gzip"}, body)}
    async with (
        raw_server(site) as server,
        kept(),
        HttpFetch(seeds=[server.url], timeout=0.1) as fetch,
    ):
        await fetch(Job(server.url))
        async with fetch._slots, fetch._slots:
            answer = await fetch(Job(f"{server.url}gzip"))
        assert isinstance(answer, Fault)
        assert (answer.reason, "decoding" in answer.detail) == (Reason.TIMEOUT, True)
        after = await fetch(Job(f"{server.url}gzip"))
        assert isinstance(after, Response)
        assert after.body == b"page"


async def test_a_request_that_outlives_the_crawl_is_not_left_without_a_deadline() -> None:
    async with (
        raw_server(slowly) as server,
        trio.open_nursery() as nursery,
        HttpFetch(seeds=[server.url]) as fetch,
    ):
        answers = []

        async def ask() -> None:
            answers.append(await fetch(Job(f"{server.url}silent")))

        async with kept():
            nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked(0.01)
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert isinstance(answers[0], Fault)
        # From now on each has a cancel scope.
        assert isinstance(await fetch(Job(server.url)), Response)
