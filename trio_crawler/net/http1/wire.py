"""HTTP/1.1 over Trio, with one request at a time on a connection.

▶ CPU seconds for 1,000 pages of a real site: stock httpx 3.9, this wire 0.52.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import trio

from trio_crawler.arguments import check_flag, check_whole, several_strings
from trio_crawler.model import Reason
from trio_crawler.net.dial.addresses import AddressPolicy
from trio_crawler.net.dial.connector import Connector, Dialer, Resolve, Resolver, descriptors
from trio_crawler.net.dial.stream import Stream
from trio_crawler.net.errors import FetchError
from trio_crawler.net.http1.connection import Connection, Origin, Pool, Reusable
from trio_crawler.net.http1.message import Head
from trio_crawler.net.proxy import Proxies
from trio_crawler.net.statistics import WireStatistics
from trio_crawler.net.tls import HTTP1, Security
from trio_crawler.net.turn import Deadlines, Progress

if TYPE_CHECKING:
    import httpx

MAX_BYTES = 10 * 1024 * 1024
"""The default bound on the bytes of a body."""

MAX_IDLE = 4_000
"""The default bound on idle connections, if the process may have twice as many descriptors.

▶ An idle connection takes 8 KiB, with TLS 43: that is 170 MiB at most.
"""

FRAMING_BYTES = 128 * 1024
"""The most bytes of a response besides its body: heads, and the framing of chunks."""

_EVERYWHERE = ("0.0.0.0/0", "::/0")


class Wire:
    """HTTP/1.1 with one connection for each request in flight.

    At most `max_idle` idle connections are kept (default: 4,000, or half of the file
    descriptors that the process may have). They are not reused after `keepalive` seconds; expired
    ones are closed when another request begins or ends.

    The wire connects to public addresses; `seeds`, which are normalised, `allow_private` and
    `public_only` are as in `HttpFetch`, and so are `proxy` and `trust_env`. `security` verifies
    certificates, `resolve` looks up names, except those that a proxy looks up itself.

    The caller closes the wire by `aclose`, which also ends the requests in flight. The constructor
    raises TypeError or ValueError, naming the argument, for an invalid value.
    """

    def __init__(
        self,
        *,
        seeds: Iterable[str] = (),
        allow_private: Iterable[str] = (),
        public_only: bool = False,
        security: Security | None = None,
        resolve: Resolve | None = None,
        max_idle: int | None = None,
        keepalive: float = 30.0,
        proxy: str | httpx.URL | None = None,
        trust_env: bool = False,
    ) -> None:
        if max_idle is not None:
            check_whole("max_idle", max_idle)
        allowed = several_strings("allow_private", allow_private)
        check_flag("public_only", public_only)
        policy = AddressPolicy(seeds, allowed, public_only=public_only)
        check_flag("trust_env", trust_env)
        proxies = Proxies(proxy, trust_env=trust_env)
        resolve = resolve or Resolver()
        # The user has named the proxies, so they may have any address.
        anywhere = Dialer(AddressPolicy((), _EVERYWHERE), resolve, kind="the proxy ")
        dial = Dialer(policy, resolve)
        self.connector = Connector(dial, security or Security(), proxies, anywhere)
        # The other descriptors are for the connections in use and for lookups.
        idle = max(1, descriptors(2 * MAX_IDLE) // 2) if max_idle is None else max_idle
        self._pool: Pool[Connection] = Pool(idle, keepalive, self.close)
        # The connections in use, and what keeps the deadline of each, if not a cancel scope.
        self._busy: dict[Connection, Deadlines | None] = {}
        self._made = self._reused = self._retried = 0
        self._bytes_in = self._bytes_out = 0
        self._closed = False

    def statistics(self) -> WireStatistics:
        """Return the counts at this moment."""
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

    async def ask(
        self,
        origin: Origin,
        request: bytes,
        progress: Progress,
        max_bytes: int,
        *,
        bodiless: bool = False,
        stream: Stream | None = None,
    ) -> tuple[Connection, Head, bytes]:
        """Send a `request` to an `origin`; return its connection, the head of the answer, and it.

        `progress` is told how far it is, and `bodiless` says that no body will come. The caller
        reads the body from the connection, then calls `release`. If the server had closed the
        connection that was reused, the request is sent again on a new connection (RFC 9112,
        9.3.1): at once, or when the delay of its host has passed. Raises FetchError, and
        RuntimeError after `aclose`. With `stream`, which was opened for it, the request is sent
        over that.
        """
        if self._closed:
            raise RuntimeError("this Wire is closed: make another one")
        limit = max_bytes + FRAMING_BYTES
        connection = self._pool.pop(origin) if stream is None else None
        reused = connection is not None
        self._reused += reused
        while True:
            if connection is None:
                if stream is None:
                    with trio.CancelScope(deadline=progress.deadline):
                        stream = await self.open(origin, progress)
                    if stream is None:
                        raise FetchError(Reason.TIMEOUT, "the deadline has passed", progress.phase)
                self._made += 1
                if self._closed:
                    stream.close()
                connection = self.connector.connection(origin, stream)
            deadlines = self._busy[connection] = progress.deadlines
            if deadlines is not None:
                deadlines.add(connection, progress.deadline, self._drop)
            try:
                head = await connection.ask(request, progress, limit, bodiless=bodiless)
                return connection, head, request
            except FetchError as error:
                # Else `aclose` or a deadline has closed it.
                lost = self._drop(connection) and connection.unanswered
                if not (lost and reused and error.fault.reason is Reason.RESET):
                    raise
            except BaseException:
                self._drop(connection)
                raise
            connection, stream, reused = None, None, False
            self._retried += 1
            await progress.wait_for_turn()

    def release(self, connection: Connection) -> None:
        """Keep a connection if its response was read to its end, else close it."""
        if not self._take_back(connection):
            # `aclose` or a deadline has closed it already.
            return
        if not connection.reusable:
            connection.drain()
        if connection.reusable and not self._closed:
            self._pool.push(connection)
        else:
            self.close(connection)

    async def aclose(self) -> None:
        """Close every connection, also those of requests in flight."""
        self._closed = True
        for connection in list(self._busy):
            self._drop(connection)
        while self._pool.drop_oldest():
            pass

    def _take_back(self, connection: Connection) -> bool:
        """Record that a connection is not in use; return False if it was not before."""
        if connection not in self._busy:
            return False
        if (deadlines := self._busy.pop(connection)) is not None:
            deadlines.remove(connection)
        return True

    def _drop(self, connection: Connection) -> bool:
        """Close a connection that is in use. Returns False if it is not."""
        found = self._take_back(connection)
        if found:
            self.close(connection)
        return found

    async def open(
        self,
        origin: Origin,
        progress: Progress,
        protocols: Sequence[str] = HTTP1,
        *pools: Pool[Any],
    ) -> Stream:
        """Return a new stream to an `origin`, by one of `protocols`; the caller owns it.

        `progress` is told how far it is; see `Connector`.

        Without a file descriptor an idle connection is closed, of the wire or of other `pools`.
        """
        while True:
            try:
                return await self.connector(origin, progress, protocols)
            except FetchError as error:
                out_of_sockets = error.fault.reason is Reason.NO_SOCKETS
                if not (
                    out_of_sockets and any(each.drop_oldest() for each in (self._pool, *pools))
                ):
                    raise

    def close(self, connection: Reusable) -> None:
        """Close a connection, and keep the counts of its bytes."""
        self._bytes_in += connection.stream.received
        self._bytes_out += connection.stream.sent
        connection.close()
