"""A login that bounces, over sockets: what a fetch knows of the cookies that it sends."""

from __future__ import annotations

import shutil
import ssl
from typing import Any

import httpx
import pytest
import trio
from sites.login import PAGES, bounce
from sites.raw import Server, raw_server

from trio_crawler import Crawler, HttpFetch, HttpxFetch, Job, Statistics
from trio_crawler.model import Response
from trio_crawler.net import CookieStore
from trio_crawler.report import Warc


async def totals_of(server: Server, fetch: Any) -> Statistics:
    async with fetch:
        return await Crawler([server.url], fetch=fetch).crawl()


@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
async def test_the_pages_behind_a_login_that_bounces_are_found(
    authority: Any, client_tls: ssl.SSLContext, secure: bool
) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    async with raw_server(bounce, tls=context if secure else None) as server:
        more = {"tls": client_tls} if secure else {}
        fetch = HttpFetch(seeds=[server.url], cookies=CookieStore(), **more)
        totals = await totals_of(server, fetch)
    assert (totals.pages, totals.redirects, totals.admitted) == (PAGES + 1, 2, PAGES + 3)
    assert server.targets[:4] == ["/robots.txt", "/", "/login", "/"]
    assert server.targets.count("/") == 2


@pytest.mark.parametrize("kind", ["transport", "client"])
async def test_a_fetch_over_httpx_with_a_store_of_cookies_follows_it_too(kind: str) -> None:
    async with raw_server(bounce) as server:
        transport = httpx.AsyncHTTPTransport()
        over = transport if kind == "transport" else httpx.AsyncClient(transport=transport)
        async with over:
            totals = await totals_of(server, HttpxFetch(over, cookies=CookieStore()))
    assert totals.pages == PAGES + 1


async def test_the_cookies_of_a_client_are_its_own_and_nothing_is_asked_again() -> None:
    async with raw_server(bounce) as server, httpx.AsyncClient() as client:
        fetch = HttpxFetch(client)
        assert fetch.cookies_for is None
        totals = await totals_of(server, fetch)
    assert (totals.pages, totals.redirects) == (0, 2)


async def test_a_cookie_of_the_caller_is_part_of_what_is_sent_and_no_change() -> None:
    async with raw_server(bounce) as server:
        own = {"seeds": [server.url], "headers": {"Cookie": "own=1"}, "cookies": CookieStore()}
        async with HttpFetch(**own) as fetch:
            assert fetch.cookies_for is not None
            for asked, wanted in ((server.url, "own=1"), (server.url + "login", "own=1; s=1")):
                assert fetch.cookies_for(asked) in ("own=1", wanted)
                answer = await fetch(Job(asked))
                assert isinstance(answer, Response)
                assert b"Cookie: own=1\r\n" in answer.request
            assert fetch.cookies_for(server.url) == "own=1; s=1"
            assert fetch.cookies_for("http://other.test/") is None
            assert fetch.cookies_for("http://user@other.test/") is None
        totals = await totals_of(server, HttpFetch(**own | {"cookies": CookieStore()}))
    assert totals.pages == PAGES + 1


async def test_an_archive_has_both_exchanges_of_a_url_that_was_asked_again() -> None:
    warc = Warc(gzip=False)
    records = b""
    async with raw_server(bounce) as server:
        fetch = HttpFetch(seeds=[server.url], cookies=CookieStore())
        crawler = Crawler([server.url], fetch=warc.recording(fetch))
        async with fetch, crawler.outcomes() as outcomes:
            held = [outcome async for outcome in outcomes]
    # All at the end: the second answer is there before the first is archived.
    for outcome in held:
        records += warc.records(outcome)
    found = [line for line in records.split(b"\r\n") if line.startswith(b"WARC-Target-URI: ")]
    assert found.count(b"WARC-Target-URI: " + server.url.encode()) == 6
    assert records.count(b"HTTP/1.1 302 ") == 2
    assert records.count(b"HTTP/1.1 200 ") == PAGES + 1


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
async def test_curl_follows_the_same_way() -> None:
    async with raw_server(bounce) as server:
        words = ["curl", "-sL", "-b", "", "-o", "/dev/null", "-w", "%{http_code} %{num_redirects}"]
        said = await trio.run_process([*words, server.url + "p1"], capture_stdout=True)
        by_curl = server.targets.copy()
        server.requests.clear()
        async with HttpFetch(seeds=[server.url], cookies=CookieStore()) as fetch:
            crawler = Crawler([server.url + "p1"], fetch=fetch)
            async with crawler.outcomes() as outcomes:
                async for outcome in outcomes:
                    if outcome.again:
                        break
    assert said.stdout == b"200 2"
    assert server.targets[1:4] == by_curl == ["/p1", "/login?next=/p1", "/p1"]
    assert outcome.status == 200
