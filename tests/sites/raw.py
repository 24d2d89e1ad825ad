"""A tiny HTTP server that says exactly the bytes a test wants said.

    async with raw_server({"/": reply(body=b"hello"), "/dead": reset}) as server:
        ...  # fetch server.url + "dead"
    assert server.targets == ["/dead"]

A site is a dict from request target to the bytes of a whole response, or to a handler; or it is
one handler for everything. A handler is `async def handler(request, stream)`: it sends what it
likes on the stream and may close it. Targets that are missing get 404. Connections are kept
alive after a reply that says where it ends and does not say `Connection: close`.
"""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TypeAlias

import trio

MOST_HEAD = 256 * 1024
_TLS_HANDSHAKE = b"\x16\x03"


@dataclass(frozen=True)
class Request:
    """One request as it came: the head's bytes, and what they say (header names lower-case)."""

    head: bytes
    method: str
    target: str
    headers: dict[str, str]


Handler: TypeAlias = Callable[[Request, trio.abc.Stream], Awaitable[object]]
Site: TypeAlias = Handler | Mapping[str, bytes | Handler]


@dataclass
class Server:
    """Say where a server listens and what it has seen: read it at any time, also afterwards."""

    url: str = ""
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    open: int = 0
    sent: int = 0
    """Bytes handed to the sockets; what the client left unread is counted too."""

    @property
    def targets(self) -> list[str]:
        """List the requests' targets in the order they came."""
        return [request.target for request in self.requests]

    @property
    def port(self) -> int:
        """Return the port it listens on."""
        return int(self.url.rpartition(":")[2].rstrip("/"))


def reply(
    status: int = 200,
    headers: Mapping[str, str] | list[tuple[str, str]] | None = None,
    body: bytes = b"",
) -> bytes:
    """Write a whole response; Content-Length is added unless the headers say how it ends."""
    pairs = list(headers.items()) if isinstance(headers, Mapping) else list(headers or ())
    said = {name.lower() for name, _ in pairs}
    if status not in (204, 304) and not said & {"content-length", "transfer-encoding"}:
        pairs.append(("Content-Length", str(len(body))))
    lines = [f"HTTP/1.1 {status} {_phrase(status)}", *(f"{name}: {text}" for name, text in pairs)]
    return "\r\n".join([*lines, "\r\n"]).encode() + body


def html(*links: str, title: str = "", status: int = 200) -> bytes:
    """Write a response with a page that links to `links`."""
    anchors = "".join(f'<a href="{link}">{link}</a>\n' for link in links)
    text = f"<!doctype html><title>{title}</title>\n{anchors}"
    return reply(status, {"Content-Type": "text/html; charset=utf-8"}, text.encode())


def redirect(target: str, status: int = 302) -> bytes:
    """Write a response that leads to `target`."""
    return reply(status, {"Location": target})


def chunked(*chunks: bytes, trailers: bytes = b"") -> bytes:
    """Write a body in chunks (RFC 9112, 7.1), for `Transfer-Encoding: chunked`."""
    written = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
    return written + b"0\r\n" + trailers + b"\r\n"


async def reset(request: Request, stream: trio.abc.Stream) -> None:
    """Answer by breaking the connection: the client sees a reset, not an end."""
    plain = stream.inner if isinstance(stream, _Counted) else stream
    if isinstance(plain, trio.SSLStream):
        plain = plain.transport_stream
    assert isinstance(plain, trio.SocketStream)
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    plain.socket.close()


async def silence(request: Request, stream: trio.abc.Stream) -> None:
    """Answer nothing at all for as long as the client waits."""
    while await stream.receive_some():
        pass
    await stream.aclose()


async def hang_up(request: Request, stream: trio.abc.Stream) -> None:
    """Answer by closing the connection."""
    await stream.aclose()


@asynccontextmanager
async def raw_server(
    site: Site, *, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> AsyncIterator[Server]:
    """Serve until the block ends; every connection is dropped then."""
    server = Server()
    async with trio.open_nursery() as nursery:
        await nursery.start(_run, site, server, host, tls)
        yield server
        nursery.cancel_scope.cancel()


@contextmanager
def threaded_raw_server(
    site: Site, *, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> Iterator[Server]:
    """Serve from a thread with a Trio run of its own, for tests that are not async."""
    server = Server()
    started = threading.Event()
    stop: list[Callable[[], None]] = []

    async def run() -> None:
        async with raw_server(site, host=host, tls=tls) as running:
            # One record for both sides of the thread.
            server.__dict__ = running.__dict__
            token, ended = trio.lowlevel.current_trio_token(), trio.Event()
            stop.append(lambda: token.run_sync_soon(ended.set))
            started.set()
            await ended.wait()

    failed: list[BaseException] = []

    def thread() -> None:
        try:
            trio.run(run)
        except BaseException as error:
            failed.append(error)
        finally:
            started.set()

    worker = threading.Thread(target=thread, name="raw server")
    worker.start()
    started.wait()
    try:
        yield server
    finally:
        if stop:
            with suppress(trio.RunFinishedError):
                stop[0]()
        worker.join()
    if failed:
        raise failed[0]


class _Counted(trio.abc.Stream):
    """Pass everything on, and count what is sent."""

    def __init__(self, inner: trio.abc.Stream, server: Server) -> None:
        self.inner = inner
        self._server = server

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self.inner.send_all(data)
        self._server.sent += len(data)

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        return await self.inner.receive_some(max_bytes)

    async def wait_send_all_might_not_block(self) -> None:
        await self.inner.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self.inner.aclose()


async def _run(
    site: Site,
    server: Server,
    host: str,
    tls: ssl.SSLContext | None,
    task_status: trio.TaskStatus[None],
) -> None:
    async def serve(plain: trio.SocketStream) -> None:
        server.connections += 1
        server.open += 1
        stream = _Counted(
            trio.SSLStream(plain, tls, server_side=True, https_compatible=True) if tls else plain,
            server,
        )
        try:
            await _converse(site, server, stream)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # The client has left, or a handler has closed.
        finally:
            server.open -= 1
            # Shielded, or a cancellation would take the place of a handler's own error.
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(stream)

    (listener,) = await trio.open_tcp_listeners(0, host=host)
    port = listener.socket.getsockname()[1]
    name = f"[{host}]" if ":" in host else host
    server.url = f"http{'s' if tls else ''}://{name}:{port}/"
    task_status.started()
    # Not trio.serve_listeners: its checkpoints on the way out lose a handler's own error when the
    # server is being stopped at that moment.
    with listener.socket:
        async with trio.open_nursery() as nursery:
            while True:
                nursery.start_soon(serve, await listener.accept())


async def _converse(site: Site, server: Server, stream: trio.abc.Stream) -> None:
    buffer = bytearray()
    # A site of responses answers a handshake as real servers do, without waiting for a line end.
    while head := await _head(stream, buffer, tls=not callable(site)):
        if head == _TLS_HANDSHAKE:
            await stream.send_all(reply(400, {"Connection": "close"}))
            return
        request = _parse(head)
        server.requests.append(request)
        answer = site if callable(site) else site.get(request.target, reply(404))
        if callable(answer):
            await answer(request, stream)
            continue
        await stream.send_all(answer)
        if not _goes_on(answer):
            return


async def _head(stream: trio.abc.Stream, buffer: bytearray, tls: bool) -> bytes:
    while (end := buffer.find(b"\r\n\r\n")) < 0:
        data = await stream.receive_some()
        if not data or len(buffer) > MOST_HEAD:
            return b""
        buffer += data
        if tls and buffer.startswith(_TLS_HANDSHAKE):
            return _TLS_HANDSHAKE
    head = bytes(buffer[: end + 4])
    del buffer[: end + 4]
    return head


def _parse(head: bytes) -> Request:
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    method, target, _ = (first + "  ").split(" ", 2)
    pairs = (line.partition(":") for line in lines)
    return Request(head, method, target, {name.lower(): value.strip() for name, _, value in pairs})


def _goes_on(answer: bytes) -> bool:
    """Tell whether the client can find the end of this answer, so that another may follow."""
    head, blank, body = answer.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    if not blank or not lines[0].startswith(b"http/1.1 ") or b"connection: close" in lines:
        return False
    if lines[0].split(b" ")[1] in (b"204", b"304"):
        return True
    if b"transfer-encoding: chunked" in lines:
        return b"\r\n0\r\n" in b"\r\n" + body and body.endswith(b"\r\n\r\n")
    for line in lines:
        if line.startswith(b"content-length:"):
            figure = line.partition(b":")[2].strip()
            return figure.isdigit() and len(body) >= int(figure)
    return False


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


async def tunnel(
    stream: trio.abc.Stream, port: int, answer: bytes = b"HTTP/1.1 200 Connected\r\n\r\n"
) -> None:
    """Answer a CONNECT, and carry bytes to and from a local port until one end closes."""
    async with await trio.open_tcp_stream("127.0.0.1", port) as onward:
        await stream.send_all(answer)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pump, stream, onward, nursery.cancel_scope)
            nursery.start_soon(pump, onward, stream, nursery.cancel_scope)
    await stream.aclose()


async def pump(
    source: trio.abc.ReceiveStream, sink: trio.abc.SendStream, scope: trio.CancelScope
) -> None:
    """Carry bytes until one end closes, then cancel a scope."""
    try:
        while data := await source.receive_some():
            await sink.send_all(data)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass
    scope.cancel()
