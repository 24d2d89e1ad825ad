"""Wire: HTTP/1.1 over Trio, one request at a time on a connection, as an httpx transport.

▶ CPU seconds for 1,000 pages of a real site: stock httpx 3.9, such a wire behind httpx's
Request and Response 0.65, by itself 0.52. So `HttpFetch` calls `ask`; everyone else may pass
the wire to an httpx.AsyncClient.
"""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterable
from dataclasses import dataclass

import httpx

from trio_crawler.model import Phase, Reason
from trio_crawler.net import transport as bridge
from trio_crawler.net.addresses import AddressPolicy
from trio_crawler.net.connection import Connection, Origin
from trio_crawler.net.dial import Dialer
from trio_crawler.net.errors import Faulty, socket_fault
from trio_crawler.net.head import Head
from trio_crawler.net.pool import Pool
from trio_crawler.net.progress import Progress
from trio_crawler.net.request import seeds_of, several
from trio_crawler.net.resolve import Resolve
from trio_crawler.net.stream import PlainStream, Stream
from trio_crawler.net.tls import Security
from trio_crawler.policy.limits import MAX_BYTES

MOST_IDLE = 1_000
AROUND = 128 * 1024
"""Bytes an answer may have besides its body: the heads, and what chunks need."""


@dataclass(frozen=True, slots=True)
class WireStatistics:
    """Count a wire's connections and bytes.

    `open` now, `idle` of these, ever `made`, requests that `reused` one, requests `retried`
    because a connection that was kept had died. Bytes are those of the sockets.
    """

    open: int = 0
    idle: int = 0
    made: int = 0
    reused: int = 0
    retried: int = 0
    bytes_in: int = 0
    bytes_out: int = 0


class Wire(httpx.AsyncBaseTransport):
    """Send requests over HTTP/1.1, as many connections as there are requests under way.

    Idle connections, at most `max_idle` of them (None: 1,000, or a quarter of the file
    descriptors the process may have), are not used after `keepalive` seconds; they are closed
    when another request begins or ends. Private addresses are refused when
    connecting, unless a seed names them or `allow_private` does. A body may have `max_bytes` as
    it is sent. Where httpx sets timeouts, connect and read together bound the time to the head.
    Use it as an async context manager or call `aclose`, which ends the requests under way too.

    A response's stream must be read to its end or closed. Raises what httpx transports raise,
    RuntimeError once closed, and at once TypeError for a single str where several are meant, and
    ValueError, naming it, for what cannot be meant.
    """

    def __init__(
        self,
        *,
        seeds: Iterable[str] = (),
        allow_private: Iterable[str] = (),
        security: Security | None = None,
        resolve: Resolve | None = None,
        max_idle: int | None = None,
        keepalive: float = 30.0,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        if (max_idle is not None and max_idle < 0) or not keepalive >= 0:
            raise ValueError(f"not 0 or more: max_idle={max_idle}, keepalive={keepalive}")
        allowed = several(allow_private, "allow_private")
        self.dial = Dialer(AddressPolicy(seeds_of(seeds), allowed), resolve)
        self._security = security or Security()
        most = _most_idle() if max_idle is None else max_idle
        self._pool = Pool(most, keepalive, self._close)
        self._busy: set[Connection] = set()
        self._max_bytes = max_bytes
        self._made = self._reused = self._retried = 0
        self._bytes_in = self._bytes_out = 0
        self._closed = False

    def __repr__(self) -> str:
        return f"<Wire: {len(self._busy)} connections busy, {len(self._pool)} idle>"

    def statistics(self) -> WireStatistics:
        """Count at this moment."""
        alive = [*self._busy, *self._pool]
        return WireStatistics(
            open=len(alive),
            idle=len(self._pool),
            made=self._made,
            reused=self._reused,
            retried=self._retried,
            bytes_in=self._bytes_in + sum(one.stream.received for one in alive),
            bytes_out=self._bytes_out + sum(one.stream.sent for one in alive),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; the response's body is still to be read."""
        origin = bridge.origin_of(request)
        written = await bridge.written(request)
        progress = Progress(origin[1])
        for_head, for_piece = bridge.patience(request)
        with bridge.translated(progress, for_head):
            connection, head = await self.ask(
                origin,
                written,
                progress,
                self._max_bytes,
                bodiless=request.method == "HEAD",
                twice=request.method in ("GET", "HEAD"),
            )
        body = bridge.BodyStream(connection, self.release, progress, for_piece)
        return bridge.response(head, body)

    async def ask(
        self,
        origin: Origin,
        request: bytes,
        progress: Progress,
        max_bytes: int,
        *,
        bodiless: bool = False,
        twice: bool = True,
    ) -> tuple[Connection, Head]:
        """Send the bytes of a request; `read` the body from the connection, then `release` it.

        With `twice` a request goes out again, at once and on a new connection, when a kept one
        turns out to have died (RFC 9112, 9.3.1). Raises Faulty.
        """
        if self._closed:
            raise RuntimeError("this wire is closed")
        most = max_bytes + AROUND
        connection = self._pool.take(origin)
        if connection is not None:
            self._reused += 1
            try:
                return connection, await self._ask(connection, request, progress, most, bodiless)
            except Faulty as error:
                if not twice or not _had_died(connection, error):
                    raise
            self._retried += 1
        connection = await self._connect(origin, progress)
        return connection, await self._ask(connection, request, progress, most, bodiless)

    def release(self, connection: Connection) -> None:
        """Keep a connection whose answer was read to its end, close any other."""
        if connection not in self._busy:
            # `aclose` has closed it.
            return
        self._busy.remove(connection)
        if not connection.reusable:
            connection.drain()
        if connection.reusable and not self._closed:
            self._pool.put(connection)
        else:
            self._close(connection)

    async def aclose(self) -> None:
        """Close every connection, busy ones too."""
        self._closed = True
        for connection in list(self._busy):
            self._drop(connection)
        while self._pool.drop_oldest():
            pass

    async def _ask(
        self, connection: Connection, request: bytes, progress: Progress, most: int, bodiless: bool
    ) -> Head:
        self._busy.add(connection)
        try:
            return await connection.ask(request, progress, most, bodiless=bodiless)
        except BaseException:
            self._drop(connection)
            raise

    async def _connect(self, origin: Origin, progress: Progress) -> Connection:
        try:
            stream = await self._stream(origin, progress)
        except OSError as error:
            fault = socket_fault(error, progress)
            raise Faulty(fault.reason, fault.detail, fault.phase) from error
        self._made += 1
        if self._closed:
            stream.close()
        return Connection(origin, stream)

    async def _stream(self, origin: Origin, progress: Progress) -> Stream:
        scheme, host, port = origin
        stream = PlainStream(await self._dialled(host, port, progress))
        if scheme == "http":
            return stream
        progress.phase = Phase.TLS
        return await self._security.secure(stream, host)

    async def _dialled(self, host: str, port: int, progress: Progress) -> socket.socket:
        while True:
            try:
                return await self.dial(host, port, progress)
            except Faulty as error:
                # An idle connection is worth less than the one that is needed now.
                if error.fault.reason is not Reason.NO_SOCKETS or not self._pool.drop_oldest():
                    raise

    def _drop(self, connection: Connection) -> None:
        if connection in self._busy:
            self._busy.remove(connection)
            self._close(connection)

    def _close(self, connection: Connection) -> None:
        self._bytes_in += connection.stream.received
        self._bytes_out += connection.stream.sent
        connection.close()


def _had_died(connection: Connection, error: Faulty) -> bool:
    return error.fault.reason is Reason.RESET and connection.is_untouched()


def _most_idle() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_IDLE if soft == resource.RLIM_INFINITY else max(1, min(MOST_IDLE, soft // 4))
