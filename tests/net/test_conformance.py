"""The answers of servers as httpx reads them, and as the fetch does."""

from __future__ import annotations

import gzip
import zlib

import httpx
import pytest
import trio
from sites.raw import Handler, Request, chunked, raw_server, redirect, reply

from trio_crawler import HttpFetch, Job, Response

CHUNKED = {"Transfer-Encoding": "chunked"}
ANSWERS = {
    "a page": reply(200, {"Content-Type": "text/html"}, b"<p>hello"),
    "no body": reply(),
    "created": reply(201, {"Location": "/a"}, b"made"),
    "accepted": reply(202, body=b"later"),
    "no content": reply(204),
    "not modified": reply(304, {"ETag": '"a"', "Content-Length": "500"}),
    "an error of ours": reply(404, body=b"not here"),
    "an error of theirs": reply(503, {"Retry-After": "5"}, b"busy"),
    "a status nobody knows": reply(299, body=b"odd"),
    "the highest status": reply(599, body=b"odd"),
    "a redirect": redirect("/elsewhere"),
    "a redirect to nothing": reply(302, body=b"where to?"),
    "chunks": reply(200, CHUNKED, chunked(b"one ", b"two")),
    "no chunk at all": reply(200, CHUNKED, chunked()),
    "chunks with extensions": reply(200, CHUNKED, b'4;a="b"\r\npage\r\n0;last\r\n\r\n'),
    "chunks with trailers": reply(200, CHUNKED, chunked(b"a", trailers=b"X-Sum: 7\r\n")),
    "chunk sizes with zeros and capitals": reply(
        200, CHUNKED, b"000A\r\n0123456789\r\n0b\r\n01234567890\r\n000\r\n\r\n"
    ),
    "a body until the end": b"HTTP/1.1 200 OK\r\n\r\nto the end",
    "nothing until the end": b"HTTP/1.1 200 OK\r\n\r\n",
    "HTTP/1.0": b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nold",
    "HTTP/1.0 until the end": b"HTTP/1.0 200 OK\r\n\r\nold",
    "a connection that closes": reply(200, {"Connection": "close"}, b"bye"),
    "a phrase of several words": b"HTTP/1.1 200 All is well, so far\r\nContent-Length: 0\r\n\r\n",
    "no phrase": b"HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n",
    "no space for a phrase": b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n",
    "a phrase in another language": b"HTTP/1.1 200 Gut\xe9\r\nContent-Length: 0\r\n\r\n",
    "header names in all cases": reply(200, [("x-a", "1"), ("X-B", "2"), ("X_c.~", "3")]),
    "headers that come twice": reply(
        200, [("X-A", "1"), ("Set-Cookie", "a=1"), ("x-a", "2"), ("Set-Cookie", "b=2")]
    ),
    "an empty header": b"HTTP/1.1 200 OK\r\nX-A:\r\nX-B: \t \r\nContent-Length: 0\r\n\r\n",
    "spaces around a value": b"HTTP/1.1 200 OK\r\nX-A: \t a b \t \r\nContent-Length: 0\r\n\r\n",
    "a value in Latin-1": b"HTTP/1.1 200 OK\r\nX-A: caf\xe9\r\nContent-Length: 0\r\n\r\n",
    "a value in UTF-8": b"HTTP/1.1 200 OK\r\nX-A: caf\xc3\xa9\r\nContent-Length: 0\r\n\r\n",
    "colons in a value": reply(200, {"X-A": "a:b: c", "Link": "<http://h/>; rel=next"}),
    "an interim answer": b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + reply(body=b"a"),
    "several interim answers": b"HTTP/1.1 100 Continue\r\n\r\n" * 4 + reply(body=b"a"),
    "gzip": reply(200, {"Content-Encoding": "gzip"}, gzip.compress(b"page" * 999, mtime=0)),
    "deflate": reply(200, {"Content-Encoding": "deflate"}, zlib.compress(b"page")),
    "gzip in chunks": reply(
        200,
        {**CHUNKED, "Content-Encoding": "gzip"},
        chunked(*map(bytes, zip(gzip.compress(b"page", mtime=0)))),
    ),
    "a charset": reply(200, {"Content-Type": "text/plain; charset=latin-1"}, b"caf\xe9"),
    "a large body": reply(200, {"Content-Type": "a/b"}, bytes(range(256)) * 4000),
    "many chunks": reply(200, CHUNKED, chunked(*[b"x" * n for n in range(1, 400)])),
    "many headers": reply(200, [(f"X-{n}", "v" * 100) for n in range(90)], b"a"),
    "lines that end in a bare LF": b"HTTP/1.1 200 OK\nX-A: 1\nContent-Length: 1\n\na",
    "a folded line": b"HTTP/1.1 200 OK\r\nX-A: one\r\n two\r\nContent-Length: 0\r\n\r\n",
}


def once(answer: bytes) -> Handler:
    async def handler(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(answer)
        await stream.aclose()

    return handler


@pytest.mark.parametrize("name", ANSWERS)
async def test_the_answer_is_that_of_httpx(name: str) -> None:
    transport = httpx.AsyncHTTPTransport(trust_env=False)
    async with (
        raw_server(once(ANSWERS[name])) as server,
        HttpFetch(seeds=[server.url]) as fetch,
        httpx.AsyncClient(transport=transport) as client,
    ):
        url = server.url + "a?b=c"
        theirs, ours = await client.get(url), await fetch(Job(url))
    assert isinstance(ours, Response)
    assert (ours.status, ours.headers.raw) == (theirs.status_code, theirs.headers.raw)
    # The body of a redirect is not read.
    assert ours.body == (
        b"" if "location" in ours.headers and ours.status >= 300 else theirs.content
    )
