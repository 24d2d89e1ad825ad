"""A server that speaks HTTP/2 (RFC 9113), for what is said by `--http2`.

It may be told to answer HTTP/1.1, too, and to break any rule: `Talk.send` sends raw frames.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import trio

Headers: TypeAlias = list[tuple[str, str]]
Answer: TypeAlias = tuple[Headers, bytes]
Odd: TypeAlias = Callable[["Talk", int], Awaitable[object]]
"""Do something else with a stream than to answer."""


@dataclass
class Server:
    """Say where a server listens and what it has seen."""

    port: int = 0
    connections: int = 0
    open: int = 0
    requests: list[dict[str, str]] = field(default_factory=list)
    resets: list[tuple[int, int]] = field(default_factory=list)
    one: list[bytes] = field(default_factory=list)

    @property
    def url(self) -> str:
        """The URL of the home page."""
        return f"https://127.0.0.1:{self.port}/"

    @property
    def paths(self) -> list[str]:
        """The paths of all requests by HTTP/2, in their order."""
        return [request[":path"] for request in self.requests]


def answer(body: bytes = b"", status: int = 200, headers: Headers | None = None) -> Answer:
    """Write an answer; the length is not stated."""
    return [(":status", str(status)), *(headers or [])], body


@asynccontextmanager
async def two_server(
    site: Mapping[str, Answer | Odd],
    tls: ssl.SSLContext,
    host: str = "127.0.0.1",
    *,
    one: bytes = b"",
    greet: Callable[[Talk], Awaitable[object]] | None = None,
) -> AsyncIterator[Server]:
    """Serve a site by path until the block ends.

    With `one` the server speaks HTTP/1.1, too, and this is its answer to everything. `greet` is
    called before the first frame of a client is looked at.
    """
    tls.set_alpn_protocols(["h2", "http/1.1"] if one else ["h2"])
    server = Server()
    async with trio.open_nursery() as nursery:
        serve = partial(_serve, site, server, tls, one, greet)
        [listener] = await nursery.start(partial(trio.serve_tcp, serve, 0, host=host))
        server.port = listener.socket.getsockname()[1]
        yield server
        nursery.cancel_scope.cancel()


async def _serve(
    site: Mapping[str, Answer | Odd],
    server: Server,
    tls: ssl.SSLContext,
    one: bytes,
    greet: Callable[[Talk], Awaitable[object]] | None,
    plain: trio.SocketStream,
) -> None:
    server.connections += 1
    server.open += 1
    stream = trio.SSLStream(plain, tls, server_side=True, https_compatible=True)
    try:
        await stream.do_handshake()
        if stream.selected_alpn_protocol() != "h2":
            await _answer_one(stream, server, one)
            return
        talk = Talk(site, server, stream)
        if greet is not None:
            await greet(talk)
        await talk.run()
    except (trio.BrokenResourceError, trio.ClosedResourceError, h2.exceptions.ProtocolError):
        pass  # The client has left.
    finally:
        server.open -= 1
        with trio.CancelScope(shield=True):
            await trio.aclose_forcefully(stream)


async def _answer_one(stream: trio.SSLStream[Any], server: Server, one: bytes) -> None:
    """Answer by HTTP/1.1 until the client leaves."""
    buffer = b""
    while data := await stream.receive_some():
        buffer += bytes(data)
        while b"\r\n\r\n" in buffer:
            head, _, buffer = buffer.partition(b"\r\n\r\n")
            server.one.append(head)
            await stream.send_all(one)


class Talk:
    """One connection; bodies are sent as fast as the client's windows allow."""

    def __init__(
        self, site: Mapping[str, Answer | Odd], server: Server, stream: trio.SSLStream[Any]
    ) -> None:
        self.site = site
        self.server = server
        self.stream = stream
        config = h2.config.H2Configuration(client_side=False, header_encoding="utf-8")
        self.machine = h2.connection.H2Connection(config)
        self.left: dict[int, bytes] = {}

    async def run(self) -> None:
        self.machine.initiate_connection()
        await self.flush()
        while data := await self.stream.receive_some():
            for event in self.machine.receive_data(bytes(data)):
                await self._take(event)
            for number in list(self.left):
                self._send(number)
            await self.flush()

    async def flush(self) -> None:
        await self.stream.send_all(self.machine.data_to_send())

    async def send(self, *frames: bytes) -> None:
        """Send frames that the machine knows nothing of, after its own."""
        await self.flush()
        await self.stream.send_all(b"".join(frames))

    async def _take(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.StreamReset):
            self.server.resets.append((event.stream_id, int(event.error_code)))
            self.left.pop(event.stream_id, None)
        if isinstance(event, h2.events.RequestReceived):
            said = {str(name): str(text) for name, text in event.headers}
            self.server.requests.append(said)
            found = self.site.get(said[":path"], answer(status=404))
            if callable(found):
                await found(self, event.stream_id)
                return
            headers, body = found
            self.machine.send_headers(event.stream_id, headers)
            self.left[event.stream_id] = body

    def _send(self, number: int) -> None:
        body = self.left[number]
        window = self.machine.local_flow_control_window(number)
        while body and window:
            size = min(window, self.machine.max_outbound_frame_size)
            self.machine.send_data(number, body[:size])
            body = body[size:]
            window = self.machine.local_flow_control_window(number)
        self.left[number] = body
        if not body:
            self.machine.end_stream(number)
            del self.left[number]


def frame(kind: int, payload: bytes = b"", flags: int = 0, stream: int = 0) -> bytes:
    """Write a frame (RFC 9113, 4.1)."""
    header = len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4)
    return header + payload


async def silence(talk: Talk, number: int) -> None:
    """Answer nothing."""


async def refuse(talk: Talk, number: int) -> None:
    """End the stream with an error."""
    talk.machine.reset_stream(number, 2)


async def hang_up(talk: Talk, number: int) -> None:
    """Close the connection."""
    await talk.stream.transport_stream.aclose()


def cut_after(body: bytes) -> Odd:
    """Send the beginning of a body and close the connection."""

    async def odd(talk: Talk, number: int) -> None:
        talk.machine.send_headers(number, [(":status", "200")])
        talk.machine.send_data(number, body)
        await talk.flush()
        await talk.stream.transport_stream.aclose()

    return odd
