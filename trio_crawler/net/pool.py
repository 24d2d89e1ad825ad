"""Pool: connections that are kept while they can be trusted.

httpx's own pool looks at every connection for every request, and a request cancelled while it
queues there takes its place away for good (encode/httpcore#1093). Here nothing queues: a request
takes an idle connection or makes one.
"""

from __future__ import annotations

import ssl
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import cast

import httpx
import trio

from trio_crawler.net.connection import CLOSING, Connection, Origin, abandon


@dataclass(frozen=True, slots=True)
class PoolStatistics:
    """Count a pool's connections: open now, idle of these, ever made, requests that reused one."""

    open: int = 0
    idle: int = 0
    made: int = 0
    reused: int = 0


class Pool(httpx.AsyncBaseTransport):
    """Send requests over HTTP/1.1, as many connections as there are requests under way.

    At most `max_idle` connections wait for a next request, `keepalive` seconds at most; the one
    idle for longest goes first. `tls` is used for https (default: certificates are verified
    against certifi's list); making one takes 30 ms, so it is made at the first https request.
    Use it as an async context manager or call `aclose`, which ends the requests under way too.

    A response's stream must be read to its end or closed. Raises what httpx transports raise,
    and RuntimeError once closed.
    """

    def __init__(
        self,
        *,
        max_idle: int = 100,
        keepalive: float = 30.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._max_idle = max_idle
        self._keepalive = keepalive
        self._tls = tls
        self._no_tls: ssl.SSLContext | None = None
        self._idle: dict[Origin, deque[Connection]] = {}
        # The same connections, the one idle for longest first (a dict used as an ordered set).
        self._ages: dict[Connection, None] = {}
        self._busy: set[Connection] = set()
        self._made = 0
        self._reused = 0
        self._closed = False

    def __repr__(self) -> str:
        return f"<Pool: {len(self._busy)} connections busy, {len(self._ages)} idle>"

    def statistics(self) -> PoolStatistics:
        """Count the connections at this moment."""
        idle = len(self._ages)
        return PoolStatistics(idle + len(self._busy), idle, self._made, self._reused)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; the response's body is still to be read."""
        if self._closed:
            raise RuntimeError("this pool is closed")
        origin = _origin(request)
        connection = await self._take(origin)
        if connection is not None:
            self._reused += 1
            response = await self._resend(connection, request)
            if response is not None:
                return response
        self._made += 1
        connection = Connection(origin, self._context(origin[0]))
        self._busy.add(connection)
        return await self._send(connection, request)

    async def aclose(self) -> None:
        """Close every connection, busy ones too."""
        self._closed = True
        await self._close(*self._ages, *self._busy)

    async def _take(self, origin: Origin) -> Connection | None:
        """Take the connection that was used last: the likeliest to be alive still."""
        dead: list[Connection] = []
        taken = None
        while taken is None and (stack := self._idle.get(origin)):
            connection = stack[-1]
            self._forget(connection)
            if self._is_late(connection) or connection.is_spoilt():
                dead.append(connection)
            else:
                self._busy.add(connection)
                taken = connection
        if dead:
            await self._close(*dead)
        return taken

    async def _resend(
        self, connection: Connection, request: httpx.Request
    ) -> httpx.Response | None:
        """Send over a used connection; None if the server had closed it (RFC 9112, 9.3.1)."""
        try:
            return await self._send(connection, request)
        except (httpx.NetworkError, httpx.RemoteProtocolError) as error:
            if request.method not in ("GET", "HEAD") or not connection.was_stale(error):
                raise
        return None

    async def _send(self, connection: Connection, request: httpx.Request) -> httpx.Response:
        try:
            response = await connection.send(request)
        except BaseException:
            with trio.move_on_after(CLOSING, shield=True):
                await self._close(connection)
            raise
        stream = cast(httpx.AsyncByteStream, response.stream)
        response.stream = _Stream(self, connection, stream)
        return response

    async def _give_back(self, connection: Connection, *, whole: bool) -> None:
        """Keep a connection whose response was read to its end, close any other."""
        if self._closed or not whole or not connection.is_clean():
            await self._close(connection)
            return
        self._busy.remove(connection)
        connection.since = trio.current_time()
        self._ages[connection] = None
        self._idle.setdefault(connection.origin, deque()).append(connection)
        if surplus := self._surplus():
            await self._close(*surplus)

    def _surplus(self) -> list[Connection]:
        surplus: list[Connection] = []
        for connection in self._ages:
            if len(self._ages) - len(surplus) <= self._max_idle and not self._is_late(connection):
                break
            surplus.append(connection)
        return surplus

    def _is_late(self, connection: Connection) -> bool:
        return trio.current_time() - connection.since > self._keepalive

    async def _close(self, *connections: Connection) -> None:
        # All leave the books before the first await; no caller can be given one of them.
        for connection in connections:
            self._forget(connection)
        with trio.move_on_after(CLOSING, shield=True):
            for connection in connections:
                await connection.aclose()

    def _forget(self, connection: Connection) -> None:
        self._busy.discard(connection)
        if connection in self._ages:
            del self._ages[connection]
            stack = self._idle[connection.origin]
            stack.remove(connection)
            if not stack:
                del self._idle[connection.origin]

    def _context(self, scheme: str) -> ssl.SSLContext:
        if scheme == "https":
            self._tls = self._tls or httpx.create_ssl_context(trust_env=False)
            return self._tls
        # httpx wants a context for http too. This one trusts nobody.
        self._no_tls = self._no_tls or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return self._no_tls


class _Stream(httpx.AsyncByteStream):
    """Give a body's bytes, and give the connection back exactly once."""

    def __init__(
        self,
        pool: Pool,
        connection: Connection,
        stream: httpx.AsyncByteStream,
    ) -> None:
        self._pool = pool
        self._connection: Connection | None = connection
        self._stream = stream
        self._parts: AsyncIterator[bytes] | None = None

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._connection is None:
            raise StopAsyncIteration
        self._parts = self._parts or aiter(self._stream)
        try:
            part = await anext(self._parts, None)
        except BaseException:
            with trio.move_on_after(CLOSING, shield=True):
                await self._end(whole=False)
            raise
        if part is None:
            await self._end(whole=True)
            raise StopAsyncIteration
        return part

    async def aclose(self) -> None:
        if self._connection is not None:
            with trio.move_on_after(CLOSING, shield=True):
                if self._parts is not None:
                    await abandon(self._parts)
                await self._end(whole=False)

    async def _end(self, *, whole: bool) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with trio.move_on_after(CLOSING, shield=True):
                # httpcore makes its connection ready for the next request here, or closes it.
                await self._stream.aclose()
                await self._pool._give_back(connection, whole=whole)


def _origin(request: httpx.Request) -> Origin:
    url = request.url
    if url.scheme not in ("http", "https"):
        raise httpx.UnsupportedProtocol(f"the pool speaks http and https, not {url.scheme!r}")
    return url.scheme, url.raw_host.decode("ascii"), url.port
