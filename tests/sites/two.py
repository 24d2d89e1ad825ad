"""A server that speaks HTTP/2 (RFC 9113) and nothing else, for what is said by `--http2`."""

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


def answer(body: bytes = b"", status: int = 200, headers: Headers | None = None) -> Answer:
    """Write an answer; the length is not stated."""
    return [(":status", str(status)), *(headers or [])], body


@asynccontextmanager
async def two_server(
    site: Mapping[str, Answer | Odd], tls: ssl.SSLContext, host: str = "127.0.0.1"
) -> AsyncIterator[Server]:
    """Serve a site by path until the block ends."""
    tls.set_alpn_protocols(["h2"])
    server = Server()
    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(
            partial(trio.serve_tcp, partial(_serve, site, server, tls), 0, host=host)
        )
        server.port = listener.socket.getsockname()[1]
        yield server
        nursery.cancel_scope.cancel()


async def _serve(
    site: Mapping[str, Answer | Odd],
    server: Server,
    tls: ssl.SSLContext,
    plain: trio.SocketStream,
) -> None:
    server.connections += 1
    server.open += 1
    stream = trio.SSLStream(plain, tls, server_side=True, https_compatible=True)
    try:
        await Talk(site, server, stream).run()
    except (trio.BrokenResourceError, trio.ClosedResourceError, h2.exceptions.ProtocolError):
        pass  # The client has left.
    finally:
        server.open -= 1
        with trio.CancelScope(shield=True):
            await trio.aclose_forcefully(stream)


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

    async def _take(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.StreamReset):
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
