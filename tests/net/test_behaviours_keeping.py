"""Servers whose connections can be used again, and those whose cannot."""

from __future__ import annotations

import pytest
import trio
from cases import for_each
from sites.exchange import meet, table
from sites.raw import Handler, Request, chunked, raw_server, redirect, reply, reset
from trio.testing import MockClock

from trio_crawler.model import Job, Response
from trio_crawler.net.fetch import HttpFetch

PAGE = b"Content-Length: 4\r\n\r\npage"
CHUNKS = chunked(b"page")
OK = b"HTTP/1.1 200 OK\r\n"
OLD = b"HTTP/1.0 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n"
SPLIT = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"

KEPT = {
    "after a length": OK + PAGE,
    "after the last chunk": CHUNKED + b"\r\n" + CHUNKS,
    "after trailers": CHUNKED + b"\r\n" + chunked(b"page", trailers=b"X-Sum: 1\r\nX-Two: 2\r\n"),
    "with keep alive said": OK + b"Connection: keep-alive\r\n" + PAGE,
    "with keep alive in odd case": OK + b"CONNECTION: Keep-ALIVE\r\n" + PAGE,
    "with Connection said to be nothing": OK + b"Connection:\r\n" + PAGE,
    "with only commas in Connection": OK + b"Connection: , ,\r\n" + PAGE,
    "with a word that begins like close": OK + b"Connection: closed\r\n" + PAGE,
    "with a word that ends like close": OK + b"Connection: en-close\r\n" + PAGE,
    "with close in another field": OK + b"X-Connection: close\r\n" + PAGE,
    "with Keep-Alive's figures": OK + b"Keep-Alive: timeout=5, max=100\r\n" + PAGE,
    "after HTTP 1.0 with keep alive": OLD + b"Connection: keep-alive\r\n" + PAGE,
    "after HTTP 1.0 with keep alive in a list": OLD + b"Connection: x, Keep-Alive ,y\r\n" + PAGE,
    "after HTTP 1.0 with keep alive in the second field": (
        OLD + b"Connection: x\r\nConnection: keep-alive\r\n" + PAGE
    ),
    "after HTTP 1.9, a version to come": b"HTTP/1.9 200 OK\r\n" + PAGE,
    "after an interim answer": b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK + PAGE,
    "after an interim answer that says close": (
        b"HTTP/1.1 100 Continue\r\nConnection: close\r\n\r\n" + OK + PAGE
    ),
}

CLOSED = {
    "that says close": OK + b"Connection: close\r\n" + PAGE,
    "that says close in odd case": OK + b"connection: CLOSE\r\n" + PAGE,
    "that says close behind keep alive": OK + b"Connection: keep-alive, close\r\n" + PAGE,
    "that says close before keep alive": OK + b"Connection: close, keep-alive\r\n" + PAGE,
    "that says close in a second field": (
        OK + b"Connection: keep-alive\r\nConnection: close\r\n" + PAGE
    ),
    "that says close among commas and tabs": OK + b"Connection: ,\tclose\t, x\r\n" + PAGE,
    "that speaks HTTP 1.0": OLD + PAGE,
    "that speaks HTTP 1.0 and says close": OLD + b"Connection: close, keep-alive\r\n" + PAGE,
    "that speaks HTTP 1.0 to a proxy": OLD + b"Proxy-Connection: keep-alive\r\n" + PAGE,
    "that speaks HTTP 1.0 in chunks": (
        OLD + b"Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS
    ),
    "that gives a length and chunks": CHUNKED + b"Content-Length: 4\r\n\r\n" + CHUNKS,
    "that gives the chunks' own length too": CHUNKED + b"Content-Length: 14\r\n\r\n" + CHUNKS,
    "that gives a length and identity": OK + b"Transfer-Encoding: identity\r\n" + PAGE,
    "that folds a field": OK + b"X-Long: one\r\n two\r\n" + PAGE,
    "that ends lines with a bare LF": (OK + PAGE).replace(b"\r\n", b"\n"),
    "that ends one line with a bare LF": OK + b"X: y\n" + PAGE,
    "that has a space before a colon": OK + b"X : y\r\n" + PAGE,
    "that has a space before the length's colon": (OK + PAGE).replace(b":", b" :"),
    "that has a line without a colon": OK + b"what is this\r\n" + PAGE,
    "that has a field without a name": OK + b": nameless\r\n" + PAGE,
    "that has a space in a name": OK + b"Content Length: 9\r\n" + PAGE,
    "that begins its fields with a fold": OK + b" Content-Length: 9\r\n" + PAGE,
}


@for_each("answer", table(KEPT))
async def test_a_connection_is_kept(answer: bytes) -> None:
    met = await meet(answer)
    assert met.body == b"page"
    assert met.kept
    assert (met.asked, met.made) == (1, 1)
    assert met.bytes_in == len(answer)


@for_each("answer", table(CLOSED))
async def test_a_connection_is_not_kept_to_a_server(answer: bytes) -> None:
    met = await meet(answer)
    assert met.body == b"page"
    assert not met.kept
    assert (met.asked, met.made) == (1, 2)


BEHIND = {
    "an answer behind a length": (OK + PAGE + SPLIT, 200),
    "an answer behind the last chunk": (CHUNKED + b"\r\n" + CHUNKS + SPLIT, 200),
    "an answer with 300 lines behind the last chunk": (
        CHUNKED + b"\r\n" + CHUNKS + OK + b"X: y\r\n" * 300 + b"\r\n",
        200,
    ),
    "chunks behind chunks": (CHUNKED + b"\r\n" + CHUNKS + CHUNKED + b"\r\n" + CHUNKS, 200),
    "a last chunk behind the last chunk": (CHUNKED + b"\r\n" + CHUNKS + b"0\r\n\r\n", 200),
    "an answer behind a 204": (b"HTTP/1.1 204 No Content\r\n\r\n" + SPLIT, 204),
    "an answer behind a 304": (b"HTTP/1.1 304 Not Modified\r\n\r\n" + SPLIT, 304),
    "an answer behind a redirect": (redirect("/x") + SPLIT, 302),
    "an answer behind a redirect in chunks": (
        b"HTTP/1.1 302 F\r\nLocation: /x\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS + SPLIT,
        302,
    ),
    "an answer behind an error": (reply(404, body=b"gone") + SPLIT, 404),
    "an answer behind an empty body": (reply() + SPLIT, 200),
    "half an answer": (OK + PAGE + SPLIT[:20], 200),
    "an interim answer": (OK + PAGE + b"HTTP/1.1 100 Continue\r\n\r\n", 200),
    "a body that is longer than it was said to be": (OK + PAGE + b"r", 200),
    "a request": (OK + PAGE + b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 200),
    "a line end behind a length": (OK + PAGE + b"\r\n", 200),
    "a bare LF behind a length": (OK + PAGE + b"\n", 200),
    "a NUL behind a length": (OK + PAGE + b"\0", 200),
    "a line end behind the last chunk": (CHUNKED + b"\r\n" + CHUNKS + b"\r\n", 200),
    "a bare LF behind the last chunk": (CHUNKED + b"\r\n" + CHUNKS + b"\n", 200),
    "a bare CR behind the last chunk": (CHUNKED + b"\r\n" + CHUNKS + b"\r", 200),
    "two line ends behind the last chunk": (CHUNKED + b"\r\n" + CHUNKS + b"\r\n\r\n", 200),
    "five line ends of both kinds behind the last chunk": (
        CHUNKED + b"\r\n" + CHUNKS + b"\n\n\n\r\n\r\n",
        200,
    ),
    "a NUL behind the last chunk": (CHUNKED + b"\r\n" + CHUNKS + b"\0", 200),
    "junk behind the last chunk": (CHUNKED + b"\r\n" + CHUNKS + b"junk", 200),
    "junk that ends in line ends behind the last chunk": (
        CHUNKED + b"\r\n" + CHUNKS + b"junk\r\n\r\n",
        200,
    ),
    "a line end behind a 204": (b"HTTP/1.1 204 No Content\r\n\r\n\r\n", 204),
    "the body of a 204": (b"HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\npage", 204),
    "the body of a 304": (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\npage", 304),
}


@for_each("answer, status", table(BEHIND))
async def test_what_stands_behind_an_answer_ends_the_connection(
    answer: bytes, status: int
) -> None:
    met = await meet(answer)
    assert met.status == status
    assert met.body in (b"page", b"gone", b"")
    assert not met.kept
    assert (met.asked, met.made) == (1, 2)


LATER = {
    "an answer": SPLIT,
    "a timeout, as servers say it": reply(408, {"Connection": "close"}),
    "an interim answer": b"HTTP/1.1 100 Continue\r\n\r\n",
    "a line end": b"\r\n",
    "a single byte": b"x",
    "more than is read at once": bytes(70_000),
}


@for_each("more", table(LATER))
@for_each("first", table({"": OK + PAGE, "to chunks": CHUNKED + b"\r\n" + CHUNKS}))
async def test_what_comes_while_nothing_is_asked_ends_the_connection(
    first: bytes, more: bytes
) -> None:
    met = await meet(first, meanwhile=lambda stream: stream.send_all(more))
    assert met.body == b"page"
    assert not met.kept
    assert met.bytes_in == len(first)


async def test_a_connection_closed_while_nothing_is_asked_is_not_used() -> None:
    met = await meet(OK + PAGE, meanwhile=trio.aclose_forcefully)
    assert met.body == b"page"
    assert (met.kept, met.asked, met.made) == (False, 1, 2)


async def test_a_connection_reset_while_nothing_is_asked_is_not_used() -> None:
    met = await meet(OK + PAGE, meanwhile=reset_stream)
    assert met.body == b"page"
    assert (met.kept, met.asked, met.made) == (False, 1, 2)


async def reset_stream(stream: trio.abc.Stream) -> None:
    await reset(Request(b"", "", "", {}), stream)


LATE_BODIES = {
    "a 204 with a length": (b"HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\n", 204),
    "a 204 in chunks": (b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", 204),
    "a redirect": (b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 4\r\n\r\n", 302),
}


@pytest.mark.parametrize(("head", "status"), table(LATE_BODIES))
async def test_a_body_that_may_still_come_ends_the_connection_of(head: bytes, status: int) -> None:
    met = await meet(head)
    assert (met.status, met.body) == (status, b"")
    assert not met.kept


async def test_a_304_says_the_length_of_a_body_that_does_not_come() -> None:
    met = await meet(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\n")
    assert (met.status, met.kept) == (304, True)


UNREAD = {
    "is too large": OK + b"Content-Length: 1000000\r\n\r\n",
    "has damaged chunks": CHUNKED + b"\r\n4\r\npages",
    "is in a coding nobody knows": OK + b"Content-Encoding: x\r\nContent-Length: 4\r\n\r\np",
    "does not come": OK + b"Content-Length: 4\r\n\r\npag",
    "is a redirect's": b"HTTP/1.1 302 F\r\nLocation: /\r\nContent-Length: 4\r\n\r\npag",
}


@for_each("answer", table(UNREAD))
async def test_a_connection_that_was_kept_before_is_ended_by_a_body_that(
    answer: bytes, mock_clock: MockClock
) -> None:
    mock_clock.autojump_threshold = 0.02
    pages = {"/a": reply(body=b"a"), "/c": reply(body=b"c")}
    site: dict[str, bytes | Handler] = {**pages, "/b": _said(answer)}
    async with raw_server(site) as server, HttpFetch(seeds=[server.url]) as fetch:
        await fetch(Job(server.url + "a"))
        await fetch(Job(server.url + "b"))
        last = await fetch(Job(server.url + "c"))
    assert isinstance(last, Response)
    assert last.body == b"c"
    assert (server.targets, server.connections) == (["/a", "/b", "/c"], 2)


def _said(answer: bytes) -> Handler:
    """Send these bytes and leave the connection open."""

    async def handler(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(answer)

    return handler
