"""The wire beside httpx's own transport: the same answers, the same exceptions."""

from __future__ import annotations

import gzip
import socket
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import httpx
import pytest
import trio
from cases import for_each
from sites.raw import (
    Handler,
    Request,
    chunked,
    hang_up,
    raw_server,
    redirect,
    reply,
    reset,
    silence,
)

from trio_crawler.net.http1.wire import Wire


def both(*urls: str) -> tuple[httpx.AsyncClient, httpx.AsyncClient]:
    """Make a client over the wire and one over httpx's own transport."""
    return client(Wire(seeds=urls)), client(httpx.AsyncHTTPTransport(trust_env=False))


def client(transport: httpx.AsyncBaseTransport, **options: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=transport, trust_env=False, timeout=10, **options)


def seen(response: httpx.Response) -> dict[str, object]:
    """Give all that a response says."""
    return {
        "status": response.status_code,
        "headers": response.headers.raw,
        "content": response.content,
        "version": response.http_version,
        "reason": response.reason_phrase,
        "url": str(response.url),
        "history": [(past.status_code, str(past.url)) for past in response.history],
        "cookies": sorted(response.cookies.items()),
        "text": response.text,
        "length": response.num_bytes_downloaded,
    }


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
    async with raw_server(once(ANSWERS[name])) as server:
        wire, own = both(server.url)
        async with wire, own:
            answers = [seen(await one.get(server.url + "a?b=c")) for one in (wire, own)]
    assert answers[0] == answers[1]
    first, second = server.requests
    assert first.head == second.head


async def stated() -> AsyncIterator[bytes]:
    for piece in (b"one ", b"", b"two", b"x" * 100_000):
        yield piece


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"content": b"a body"},
        {"content": b"x" * 1_000_000},
        {"data": {"a": "1", "b": "\xe9"}},
        {"json": {"a": [1, 2]}},
        {"content": stated},
    ],
    ids=["none", "bytes", "many bytes", "a form", "json", "a generator"],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
async def test_a_body_is_sent_as_httpx_sends_it(body: dict[str, Any], method: str) -> None:
    sent: list[bytes] = []

    async def handler(stream: trio.SocketStream) -> None:
        received = bytearray()
        async for data in stream:
            received += data
            if received.endswith((b"\r\n0\r\n\r\n", b"\0\0")):
                break
            head, blank, rest = received.partition(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0] or 0)
            if blank and b"chunked" not in head and len(rest) == size:
                break
        sent.append(bytes(received))
        await stream.send_all(reply(body=b"done"))
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        serve = partial(trio.serve_tcp, handler, 0, host="127.0.0.1")
        [listener] = await nursery.start(serve)
        url = f"http://127.0.0.1:{listener.socket.getsockname()[1]}/"
        wire, own = both(url)
        async with wire, own:
            for one in (wire, own):
                made = {
                    name: value() if callable(value) else value for name, value in body.items()
                }
                assert (await one.request(method, url, **made)).content == b"done"
        nursery.cancel_scope.cancel()
    assert sent[0] == sent[1]


# What goes wrong.


async def half(request: Request, stream: trio.abc.Stream) -> None:
    await stream.send_all(reply(200, {"Content-Length": "10"}, b"half"))
    await silence(request, stream)


async def broken_off(request: Request, stream: trio.abc.Stream) -> None:
    await stream.send_all(reply(200, {"Content-Length": "10"}, b"half"))
    await trio.testing.wait_all_tasks_blocked()
    await reset(request, stream)


@contextmanager
def nobody() -> Iterator[str]:
    """Give the URL of a port where nobody listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{unused.getsockname()[1]}/"


async def raised(one: httpx.AsyncClient, url: str) -> type[BaseException]:
    with pytest.raises(httpx.HTTPError) as caught:
        await one.get(url)
    return caught.type


@for_each(
    "site, error",
    [
        (silence, httpx.ReadTimeout),
        (half, httpx.ReadTimeout),
        (reset, httpx.ReadError),
        (broken_off, httpx.ReadError),
        (once(reply(200, {"Content-Length": "10"}, b"half")), httpx.RemoteProtocolError),
        (once(reply(200, CHUNKED, b"4\r\nhalf\r\n")), httpx.RemoteProtocolError),
        (once(reply(200, CHUNKED, b"zz\r\nhalf\r\n")), httpx.RemoteProtocolError),
        (once(b"SSH-2.0-OpenSSH\r\n\r\n"), httpx.RemoteProtocolError),
        (once(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"), httpx.RemoteProtocolError),
        (once(b"HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n"), httpx.RemoteProtocolError),
        (once(reply(200, {"X": "x" * 200_000})), httpx.RemoteProtocolError),
    ],
)
async def test_what_goes_wrong_raises_what_httpx_raises(
    site: Handler, error: type[httpx.HTTPError]
) -> None:
    async with raw_server(site) as server:
        for one in both(server.url):
            # The wire has one bound for connecting and the head: both times together.
            one.timeout = httpx.Timeout(5, connect=0.1, read=0.1)
            async with one:
                assert await raised(one, server.url) is error


@pytest.mark.parametrize("begun", [b"", b"HTTP/1.1 20", b"HTTP/1.1 200 OK\r\nContent-"])
async def test_a_close_before_the_answer_is_a_read_error_and_not_one_of_the_protocol(
    begun: bytes,
) -> None:
    # httpx tells a close from a reset here; to the wire neither is an answer.
    async with raw_server(once(begun)) as server:
        wire, own = both(server.url)
        async with wire, own:
            assert await raised(wire, server.url) is httpx.ReadError
            assert await raised(own, server.url) is httpx.RemoteProtocolError


async def test_a_port_nobody_listens_on_is_a_connect_error() -> None:
    with nobody() as url:
        for one in both(url):
            async with one:
                assert await raised(one, url) is httpx.ConnectError


async def test_a_name_that_nobody_knows_is_a_connect_error() -> None:
    for one in both():
        async with one:
            assert await raised(one, "http://no-such-host.invalid/") is httpx.ConnectError


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "file:///etc/passwd", "gopher://h/"])
async def test_another_scheme_is_not_supported(url: str) -> None:
    for one in both():
        async with one:
            assert await raised(one, url) is httpx.UnsupportedProtocol


async def test_a_connection_that_nobody_accepts_is_a_connect_timeout() -> None:
    with socket.socket() as deaf, socket.socket() as one, socket.socket() as two:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        for filler in (one, two):
            filler.setblocking(False)
            filler.connect_ex(deaf.getsockname())
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/"
        for asker in both(url):
            asker.timeout = httpx.Timeout(0.1, connect=0.1)
            async with asker:
                assert issubclass(await raised(asker, url), httpx.TimeoutException)


async def test_a_tls_handshake_that_hangs_is_a_connect_timeout() -> None:
    async with raw_server(silence) as server:
        url = server.url.replace("http:", "https:")
        for one in both(url):
            one.timeout = httpx.Timeout(0.1, connect=0.1)
            async with one:
                assert await raised(one, url) is httpx.ConnectTimeout


async def test_a_private_address_is_a_connect_error_over_the_wire() -> None:
    async with raw_server({}) as server, client(Wire()) as one:
        with pytest.raises(httpx.ConnectError, match="loopback address"):
            await one.get(server.url)
    assert server.connections == 0


async def test_a_body_past_the_bound_is_a_read_error() -> None:
    site = {"/": reply(200, CHUNKED, chunked(*[b"x" * 10_000] * 100))}
    async with (
        raw_server(site) as server,
        client(Wire(seeds=[server.url], max_bytes=100_000)) as one,
    ):
        assert await raised(one, server.url) is httpx.ReadError


async def test_a_request_without_timeouts_waits_as_long_as_it_takes() -> None:
    async with raw_server(silence) as server:
        for one in both(server.url):
            one.timeout = httpx.Timeout(None)
            async with one:
                with trio.move_on_after(0.1) as scope:
                    await one.get(server.url)
                assert scope.cancelled_caught


async def test_a_body_that_is_not_asynchronous_is_a_bug_of_the_caller() -> None:
    request = httpx.Request("POST", "http://127.0.0.1/", content=iter([b"a"]))
    async with Wire() as wire:
        with pytest.raises(TypeError, match="not asynchronous"):
            await wire.handle_async_request(request)


async def test_hanging_up_is_no_answer() -> None:
    async with raw_server(hang_up) as server:
        for one in both(server.url):
            async with one:
                assert issubclass(await raised(one, server.url), httpx.TransportError)


# What is sent is what was said.


INJECTED: dict[str, dict[str, Any]] = {
    "a line in a value": {"headers": {"X": "a\r\nEvil: 1"}},
    "half a line in a value": {"headers": {"X": "a\nEvil: 1"}},
    "a carriage return in a value": {"headers": {"X": "a\rb"}},
    "a NUL in a value": {"headers": {"X": "a\0b"}},
    "a space in a name": {"headers": {"X y": "1"}},
    "a line in a name": {"headers": {"X: 1\r\nEvil": "1"}},
    "no name": {"headers": {"": "1"}},
    "a request in the method": {"method": "GET /evil HTTP/1.1\r\nX: "},
    "no method": {"method": ""},
    "a space in the target": {"extensions": {"target": b"/a HTTP/1.1"}},
    "a line in the target": {"extensions": {"target": b"/ HTTP/1.1\r\nEvil:"}},
    "no target": {"extensions": {"target": b""}},
}


@for_each("name", INJECTED)
async def test_a_request_that_would_be_read_as_another_is_not_sent(name: str) -> None:
    async with raw_server(lambda request, stream: stream.send_all(reply())) as server:
        for one in both(server.url):
            async with one:
                options = {"method": "GET", "url": server.url, **INJECTED[name]}
                with pytest.raises(httpx.LocalProtocolError) as caught:
                    await one.request(**options)
                assert str(caught.value).isprintable()
        assert not server.requests


async def test_a_value_that_is_refused_is_not_shown() -> None:
    async with client(Wire()) as wire:
        with pytest.raises(httpx.LocalProtocolError) as caught:
            await wire.get("http://127.0.0.1:1/", headers={"Authorization": "secret\n"})
    assert (
        str(caught.value) == "the value of the header Authorization has control characters in it"
    )


@pytest.mark.parametrize("value", [b"a\tb", b"caf\xe9", b"", "caf\xe9".encode()])
async def test_what_may_stand_in_a_value_is_sent(value: bytes) -> None:
    async with raw_server(lambda request, stream: stream.send_all(reply())) as server:
        for one in both(server.url):
            async with one:
                await one.get(server.url, headers={b"X": value})
    first, second = server.requests
    assert b"X: " + value + b"\r\n" in first.head
    assert first.head == second.head
