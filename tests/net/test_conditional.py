"""Requests that ask only for what has changed: by the wire, a caller's client and a proxy."""

from __future__ import annotations

from typing import Any

import httpx
import trio
from cases import for_each
from sites.raw import Request, raw_server, reply, threaded_raw_server

from trio_crawler.model import Job, Purpose, Response, Validator
from trio_crawler.net.cookies import CookieStore
from trio_crawler.net.fetch import HttpFetch
from trio_crawler.net.httpx_fetch import HttpxFetch

TAG, DATE = 'W/"a-1"', "Sat, 21 Nov 2026 19:00:00 GMT"
BOTH = Validator(TAG, DATE)
TAG_LINE = b'If-None-Match: W/"a-1"\r\n'
DATE_LINE = b"If-Modified-Since: Sat, 21 Nov 2026 19:00:00 GMT\r\n"


async def unchanged(request: Request, stream: trio.abc.Stream) -> None:
    await stream.send_all(reply(304, {"ETag": TAG}))


def asking(head: bytes) -> list[bytes]:
    """Return the lines of a request that make it conditional."""
    return [line for line in head.splitlines(keepends=True) if line.lower().startswith(b"if-")]


@for_each(
    "validator, lines",
    [
        (BOTH, [TAG_LINE, DATE_LINE]),
        (Validator(TAG), [TAG_LINE]),
        (Validator(None, DATE), [DATE_LINE]),
        (Validator('"\xe9\xff"'), [b'If-None-Match: "\xe9\xff"\r\n']),
        (Validator("unquoted"), [b"If-None-Match: unquoted\r\n"]),
        (Validator('"a\r\nX-Evil: 1"', DATE), [DATE_LINE]),
        (Validator('"\u20ac"', "\ud800"), []),
        (Validator(TAG, "x" * 2000), [TAG_LINE]),
        (Validator(), []),
        (None, []),
    ],
)
async def test_what_is_known_of_a_page_is_sent_with_the_request(
    asked: Any, validator: Validator | None, lines: list[bytes]
) -> None:
    async with asked(unchanged) as (server, url, fetch):
        await fetch(Job(url, validator=validator))
    (request,) = server.requests
    assert asking(request.head) == lines
    assert b"Evil" not in request.head
    assert request.headers["accept-encoding"] == "gzip, deflate, br, zstd"


@for_each("purpose", Purpose)
async def test_a_condition_is_sent_for_one_request_only(asked: Any, purpose: Purpose) -> None:
    async with asked(unchanged) as (server, url, fetch):
        for validator in (None, BOTH, None, Validator(TAG), None):
            await fetch(Job(url, purpose=purpose, validator=validator))
    told = [asking(request.head) for request in server.requests]
    assert told == [[], [TAG_LINE, DATE_LINE], [], [TAG_LINE], []]


async def test_cookies_and_own_headers_are_sent_with_a_condition() -> None:
    own = {"X-Own": "1", "If-None-Match": '"old"'}
    site = {"/": reply(200, {"Set-Cookie": "a=1"})}
    async with raw_server(site) as server:
        cookies = CookieStore()
        async with HttpFetch(seeds=[server.url], headers=own, cookies=cookies) as fetch:
            for validator in (None, BOTH):
                await fetch(Job(server.url, validator=validator))
    first, second = server.requests
    assert asking(first.head) == [b'If-None-Match: "old"\r\n']
    assert asking(second.head) == [TAG_LINE, DATE_LINE]
    assert (second.headers["x-own"], second.headers["cookie"]) == ("1", "a=1")


async def test_a_condition_comes_before_a_clients_own() -> None:
    own = {"If-None-Match": '"old"', "X-Own": "1"}
    async with (
        raw_server(unchanged) as server,
        httpx.AsyncClient(headers=own, trust_env=False) as client,
    ):
        await HttpxFetch(client)(Job(server.url, validator=BOTH))
    (request,) = server.requests
    assert asking(request.head) == [TAG_LINE, DATE_LINE]
    assert request.headers["x-own"] == "1"


NOT_MODIFIED = {
    "with nothing else": reply(304),
    "with its tag": reply(304, {"ETag": TAG, "Last-Modified": DATE}),
    "with the length of the page": reply(304, {"Content-Length": "99999999"}),
    "with the coding of the page": reply(304, {"Content-Encoding": "br", "Content-Length": "9"}),
    "with a coding nobody knows": reply(304, {"Content-Encoding": "rot13"}),
}


@for_each("purpose", Purpose)
@for_each("name", NOT_MODIFIED)
async def test_a_page_that_has_not_changed_comes_without_a_body_and_keeps_its_connection(
    asked: Any, name: str, purpose: Purpose
) -> None:
    async def site(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(NOT_MODIFIED[name])

    async with asked(site, timeout=10) as (server, url, fetch):
        for _ in range(3):
            answer = await fetch(Job(url, purpose=purpose, validator=BOTH))
            assert isinstance(answer, Response), answer
            assert (answer.status, answer.body) == (304, b"")
    said = {name.lower() for name, _ in httpx.Headers(answer.headers).items()}
    assert ("etag" in said) == (name == "with its tag")
    assert server.connections == 1


async def test_a_304_over_chunks_that_never_come_is_not_waited_for() -> None:
    site = {"/": reply(304, {"Transfer-Encoding": "chunked"}), "/b": reply(body=b"page")}
    with threaded_raw_server(site) as server:
        async with HttpFetch(seeds=[server.url], timeout=10) as fetch:
            answer = await fetch(Job(server.url, validator=BOTH))
            after = await fetch(Job(server.url + "b"))
    assert isinstance(answer, Response)
    assert isinstance(after, Response)
    assert (answer.status, answer.body, after.body) == (304, b"", b"page")


async def test_what_a_transport_adds_to_a_304_is_no_body_of_it() -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(304, content=b"surprise"))
    answer = await HttpxFetch(transport)(Job("http://h.test/", validator=BOTH))
    assert isinstance(answer, Response)
    assert (answer.status, answer.body) == (304, b"")


async def test_a_page_that_has_changed_comes_whole(asked: Any) -> None:
    async def site(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(reply(200, {"ETag": '"b"'}, b"new"))

    async with asked(site) as (_, url, fetch):
        answer = await fetch(Job(url, validator=BOTH))
    assert isinstance(answer, Response)
    assert (answer.status, answer.headers["etag"], answer.body) == (200, '"b"', b"new")
