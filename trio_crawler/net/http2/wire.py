"""Send requests by HTTP/2 to servers that support it, and all others by the wire."""

from __future__ import annotations

import trio
from msgspec.structs import replace

from trio_crawler.model import Phase
from trio_crawler.net.dial.stream import Stream
from trio_crawler.net.errors import no_answer
from trio_crawler.net.http1.connection import Connection, Origin, Pool
from trio_crawler.net.http1.message import Head
from trio_crawler.net.http1.wire import FRAMING_BYTES, Wire
from trio_crawler.net.http2.connection import Http2Connection
from trio_crawler.net.http2.stream import Http2Stream, block_of
from trio_crawler.net.statistics import WireStatistics
from trio_crawler.net.turn import Progress

MAX_IDLE = 100
"""The most idle connections."""

KEEPALIVE = 30.0
"""The most seconds for which an idle connection is kept."""

MAX_ORIGINS = 10_000
"""The most origins that are recorded as being without HTTP/2."""

ALONE_AFTER = 2
"""A request that was sent again so often, because of others, gets a connection for itself."""

_PROTOCOLS = ("h2", "http/1.1")


class Http2Wire:
    """A wire that chooses HTTP/2 for https where the server does (ALPN, RFC 9113, 3.2).

    The other requests go over `wire`, which `aclose` closes too. Requests to one origin share a
    connection. One that the server did not process is not a fault: `ask` raises AskAgain.
    """

    def __init__(self, wire: Wire, *, max_idle: int = MAX_IDLE) -> None:
        self.wire = wire
        # The connections to each origin that are in use; one task at a time opens another.
        self._sites: dict[Origin, tuple[list[Http2Connection], trio.Lock]] = {}
        self._pool: Pool[Http2Connection] = Pool(max_idle, KEEPALIVE, wire.close)
        self._without: dict[Origin, None] = {}
        self._made = self._reused = self._retried = 0
        self._closed = False

    closes_late = False

    async def ask(
        self,
        origin: Origin,
        request: bytes,
        progress: Progress,
        max_bytes: int,
        *,
        bodiless: bool = False,
    ) -> tuple[Http2Stream | Connection, Head, bytes]:
        """Send the bytes of a request in HTTP/1.1 form; return its source, its head, and them.

        It is a GET request, or with `bodiless` a HEAD request. The caller passes the source to
        `release`. Raises FetchError, AskAgain, and RuntimeError
        after `aclose`.
        """
        if self._closed:
            raise RuntimeError("this Http2Wire is closed: make another one")
        self._retried += bool(progress.repeats)
        if origin[0] != "https" or progress.http1 or origin in self._without:
            return await self.wire.ask(origin, request, progress, max_bytes, bodiless=bodiless)
        alone = progress.repeats >= ALONE_AFTER
        while True:
            found = await self._connection(origin, progress, alone)
            if not isinstance(found, Http2Connection):
                return await self.wire.ask(
                    origin, request, progress, max_bytes, bodiless=bodiless, stream=found
                )
            if progress.turn is None or progress.turn.is_held:
                break
            # Others may use it meanwhile, or the server may end it: it is looked for again.
            self._put_back(found)
            await progress.wait_for_turn()
        found.alone = alone
        self._reused += found.started > 0
        block, limit = block_of(request), max_bytes + FRAMING_BYTES
        stream = found.begin(block, progress, limit, bodiless=bodiless)
        if progress.turn is not None:
            progress.turn.start()
        try:
            return stream, await stream.answer(), request
        except BaseException:
            self.release(stream)
            raise

    def release(self, source: Http2Stream | Connection) -> None:
        """Keep the connection of a response; what was not read of it is refused."""
        if isinstance(source, Connection):
            self.wire.release(source)
            return
        source.connection.end(source)
        self._put_back(source.connection)

    def statistics(self) -> WireStatistics:
        """Return the counts of connections and bytes, with those of the wire."""
        wire = self.wire.statistics()
        active = [each for active, _ in self._sites.values() for each in active]
        alive = [*active, *self._pool]
        return replace(
            wire,
            open=wire.open + len(alive),
            idle=wire.idle + len(self._pool),
            made=wire.made + self._made,
            reused=wire.reused + self._reused,
            retried=wire.retried + self._retried,
            bytes_in=wire.bytes_in + sum(each.stream.received for each in alive),
            bytes_out=wire.bytes_out + sum(each.stream.sent for each in alive),
        )

    async def aclose(self) -> None:
        """Close every connection, also those of requests in flight, and the wire."""
        self._closed = True
        for active, _ in self._sites.values():
            for connection in active:
                self.wire.close(connection)
            active.clear()
        while self._pool.drop_oldest():
            pass
        await self.wire.aclose()

    async def _connection(
        self, origin: Origin, progress: Progress, alone: bool
    ) -> Http2Connection | Stream | None:
        """Return a connection on which a request may begin at this moment.

        For a server without HTTP/2 return a new stream to it, or None.
        """
        if len(self._sites) > MAX_ORIGINS:
            self._sites = {
                key: site for key, site in self._sites.items() if site[0] or site[1].locked()
            }
        active, opening = self._sites.setdefault(origin, ([], trio.Lock()))

        def with_room() -> Http2Connection | None:
            return next((each for each in active if each.room > 0 and not alone), None)

        # Before the lock, too: the task that has it may wait for its connection for long.
        if (connection := with_room()) is not None:
            return connection
        progress.phase = Phase.CONNECT
        async with opening:
            if self._closed:
                raise no_answer(progress.server, Phase.CONNECT)
            if origin in self._without:
                return None
            if (connection := with_room()) is not None:
                return connection
            connection = self._pool.pop(origin)
            if connection is None:
                stream = await self.wire.open(origin, progress, _PROTOCOLS, self._pool)
                if self._closed:
                    stream.close()
                    raise no_answer(progress.server, Phase.CONNECT)
                if stream.protocol != "h2":
                    self._without[origin] = None
                    if len(self._without) > MAX_ORIGINS:
                        del self._without[next(iter(self._without))]
                    return stream
                self._made += 1
                connection = Http2Connection(origin, stream, progress.server)
            active.append(connection)
            return connection

    def _put_back(self, connection: Http2Connection) -> None:
        """Keep a connection for other requests if it has none now."""
        active, _ = self._sites.get(connection.origin, ([], None))
        if connection not in active:
            # `aclose` has closed it already.
            return
        if connection.in_flight:
            return
        active.remove(connection)
        connection.alone = False
        if connection.closed or connection.ending:
            self.wire.close(connection)
            return
        self._pool.push(connection)
