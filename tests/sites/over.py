"""Fetches over a wire, or another network, that a test has made itself.

async with Wired(resolve=...) as wire:
    answer = await over(wire, timeout=1)(Job("http://h.test/"))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from trio_crawler.net.fetch import WireAdapter
from trio_crawler.net.fetcher import TIMEOUT, Fetcher, Network
from trio_crawler.net.http1.connection import Connection
from trio_crawler.net.http1.wire import MAX_BYTES, Wire
from trio_crawler.net.request import DEFAULT_USER_AGENT, Requests, Target, default_fields
from trio_crawler.net.turn import Progress


class Wired(Wire):
    """A wire that the end of a block closes."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


class Body:
    """An answer by a wire, whose body is read when a test says so."""

    def __init__(self, wire: Wire, connection: Connection) -> None:
        self._wire, self._connection = wire, connection

    async def piece(self) -> bytes:
        """Return the next bytes, none at the end."""
        return await self._connection.read()

    async def read(self) -> bytes:
        """Return the rest, and give the connection back."""
        pieces = []
        while piece := await self.piece():
            pieces.append(piece)
        self.release()
        return b"".join(pieces)

    def release(self) -> None:
        """Give the connection back."""
        self._wire.release(self._connection)


async def begun(wire: Wire, url: str) -> Body:
    """Ask a wire for a URL; return when the head of the answer has come."""
    target = Target.of(url)
    request = f"GET {target.target} HTTP/1.1\r\nHost: {target.authority}\r\n\r\n".encode()
    progress = Progress(target.authority)
    connection, _, _ = await wire.ask(target.server, request, progress, MAX_BYTES)
    return Body(wire, connection)


async def home(host: str, port: int) -> Sequence[str]:
    """Let every name lead to this machine."""
    return ["127.0.0.1"]


def requests(**own: Any) -> Requests:
    """Return what is sent: the default fields, and those of `seeds`, `headers`, `auth`."""
    return Requests(default_fields(None, None), **own)


def over(
    network: Wire | Network,
    *,
    timeout: float = TIMEOUT,
    max_bytes: int = MAX_BYTES,
    bodies: bool = True,
    **own: Any,
) -> Fetcher:
    """Return the fetch of an `HttpFetch`, over a given wire or network, which it does not close.

    What is sent can only be changed for a wire: another network has its requests already.
    """
    cookies_for = None
    if isinstance(network, Wire):
        sent = requests(**own)
        network, cookies_for = WireAdapter(sent, network), sent.cookies_for
    return Fetcher(
        network,
        user_agent=DEFAULT_USER_AGENT,
        cookies=own.get("cookies"),
        timeout=timeout,
        max_bytes=max_bytes,
        bodies=bodies,
        cookies_for=cookies_for,
    )
