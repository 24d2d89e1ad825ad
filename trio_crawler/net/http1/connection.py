"""Connections, each for one request and its response at a time, and the pool of idle ones."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeAlias, TypeVar

import trio

from trio_crawler.model import Phase, Reason
from trio_crawler.net.dial.stream import Stream
from trio_crawler.net.errors import (
    FetchError,
    bad_reply,
    incomplete,
    no_answer,
    socket_error,
)
from trio_crawler.net.http1.message import (
    MAX_HEAD_BYTES,
    MAX_HEAD_LINES,
    ChunkDecoder,
    Head,
    check_interim,
    check_start,
    end_of_head,
    parse,
)
from trio_crawler.net.turn import Progress

Origin: TypeAlias = tuple[str, str, int]
"""Scheme, host (an IPv6 address without brackets) and port."""

DEFAULT_PORTS = {"http": 80, "https": 443}

# The first byte of an alert, and that of every version of TLS (RFC 8446, 5.1).
_TLS_ALERT = b"\x15\x03"


class Connection:
    """One request and its response at a time, over a stream that the connection owns.

    Call `ask`, then `read` until it returns no bytes; after that, and only if the connection is
    `reusable`, `ask` again. At most `max_bytes` bytes, give or take 64 KiB, are received for one
    response. `unanswered` is whether no byte of the response has come.

    Raises FetchError.
    """

    __slots__ = (
        "_before",
        "_buffer",
        "_chunks",
        "_head",
        "_left",
        "_max_bytes",
        "_progress",
        "asked",
        "origin",
        "reusable",
        "since",
        "stream",
        "unanswered",
    )

    def __init__(self, origin: Origin, stream: Stream) -> None:
        self.origin = origin
        self.stream = stream
        self.since = 0.0
        self.asked = 0
        self.reusable = False
        self._progress = Progress("")
        self._buffer = b""
        self._before = 0
        self.unanswered = True
        self._max_bytes = 0
        self._left: int | None = 0
        self._chunks: ChunkDecoder | None = None

    def is_stale(self) -> bool:
        """Whether the server has closed an idle connection, or sent bytes without a request."""
        return not self.stream.is_quiet()

    @property
    def is_clean(self) -> bool:
        """Whether no bytes have arrived that were not read."""
        return not self._buffer

    def close(self) -> None:
        """Close the socket; nothing is sent."""
        self.reusable = False
        self.stream.close()

    async def ask(
        self, request: bytes, progress: Progress, max_bytes: int, *, bodiless: bool = False
    ) -> Head:
        """Send a request and return the head of its response; interim responses are skipped."""
        self.reusable = False
        self.asked += 1
        self._progress = progress
        self._before = self.stream.received
        self.unanswered = True
        self._max_bytes = max_bytes
        if progress.turn is not None:
            await progress.wait_for_turn()
        progress.phase = Phase.SEND
        try:
            await self.stream.send(request)
        except OSError as error:
            raise socket_error(error, self._progress) from error
        finally:
            # After the first byte, so that the next start is not counted from a moment before it.
            if progress.turn is not None:
                progress.turn.start()
        progress.phase = Phase.WAIT
        interim = spent = lines = searched = 0
        while True:
            end = end_of_head(self._buffer, searched)
            size = len(self._buffer) if end is None else end.end()
            if spent + size > MAX_HEAD_BYTES:
                raise bad_reply(f"the header of the answer has more than {MAX_HEAD_BYTES} bytes")
            if end is None:
                if self._buffer:
                    self._check_start()
                # An empty line that is split begins at most three bytes before the end.
                searched = max(0, size - 3)
                data = await self._receive()
                if not data:
                    raise no_answer(progress.server)
                # Not counted at the socket: the closing alert of TLS is not part of a response.
                self.unanswered = False
                self._buffer += data
                continue
            head, self._buffer = parse(self._buffer[:size], bodiless=bodiless), self._buffer[size:]
            spent, lines, searched = spent + size, lines + len(head.fields), 0
            if lines > MAX_HEAD_LINES:
                raise bad_reply(f"the answer has more than {MAX_HEAD_LINES} header lines")
            if head.status >= 200:
                break
            interim += 1
            check_interim(interim, switches=head.status == 101)
        progress.phase = Phase.READ
        progress.received = 0
        self._begin(head)
        return head

    async def read(self) -> bytes:
        """Return the next bytes of the body, none at its end."""
        while True:
            if piece := self._take():
                self._progress.received = (self._progress.received or 0) + len(piece)
                return piece
            if self._is_over():
                self._end()
                return b""
            data = await self._receive()
            if not data:
                # A body with a length or chunks is not complete.
                if self._chunks is not None or self._left is not None:
                    raise self._incomplete()
                return b""
            self._buffer = data

    def take_whole(self) -> bytes | None:
        """Return the whole body if it has a length and was received with its head, else None."""
        size, data = self._left, self._buffer
        if size is None or len(data) < size:
            return None
        self._progress.received, self._left = size, 0
        # A slice of all bytes is no copy.
        self._buffer = data[size:]
        self._end()
        return data[:size]

    def drain(self) -> None:
        """Read the rest of a body without waiting; at its end the connection may be reusable."""
        try:
            while self._take():
                pass
        except FetchError:
            return
        if self._is_over():
            self._end()

    def _check_start(self) -> None:
        """Raise FetchError for bytes that cannot begin a head."""
        if self._buffer.startswith(_TLS_ALERT) and self.origin[0] == "http":
            told = f"{self._progress.server} speaks TLS on this port: use https://"
            raise FetchError(Reason.TLS, told, Phase.TLS)
        check_start(self._buffer)

    def _begin(self, head: Head) -> None:
        self._left = head.length
        self._chunks = ChunkDecoder() if head.chunked else None
        self._head = head

    def _take(self) -> bytes:
        """Remove and return the bytes of the body that are in the buffer."""
        data, self._buffer = self._buffer, b""
        if not data:
            return b""
        if self._chunks is not None:
            return self._chunks.feed(data)
        if self._left is None:
            return data
        if len(data) > self._left:
            data, self._buffer = data[: self._left], data[self._left :]
        self._left -= len(data)
        return data

    def _is_over(self) -> bool:
        return self._left == 0 if self._chunks is None else self._chunks.ended

    def _end(self) -> None:
        clean = not self._buffer if self._chunks is None else self._chunks.clean
        self.reusable = clean and self._head.keep_alive

    def _incomplete(self) -> FetchError:
        return incomplete(self._progress.received or 0, self._head.length)

    async def _receive(self) -> bytes:
        if self.stream.received - self._before > self._max_bytes:
            detail = f"more than {self._max_bytes} bytes were sent for one answer"
            raise FetchError(Reason.TOO_LARGE, detail, self._progress.phase)
        try:
            return await self.stream.receive()
        except ssl.SSLEOFError as error:
            # RFC 9112, 9.8: without the closing alert of TLS the body may be incomplete.
            if self._progress.phase is not Phase.READ:
                raise no_answer(self._progress.server) from error
            raise self._incomplete() from error
        except OSError as error:
            raise socket_error(error, self._progress) from error


class Reusable(Protocol):
    """A connection to an origin; a pool sets `since`, the time at which it became idle."""

    origin: Origin
    since: float
    stream: Stream

    def is_stale(self) -> bool:
        """Whether an idle connection cannot be used any more."""

    def close(self) -> None:
        """Close the stream."""


_C = TypeVar("_C", bound=Reusable)


class Pool(Generic[_C]):
    """At most `max_idle` idle connections, which are not reused after `keepalive` seconds.

    Expired connections of all origins are closed, by `close`, when a connection is pushed, or when
    there is none to pop. The most recent connection of an origin is popped first, since it is the
    likeliest to be alive. No method waits.
    """

    def __init__(self, max_idle: int, keepalive: float, close: Callable[[_C], None]) -> None:
        self._max_idle = max_idle
        self._keepalive = keepalive
        self._close = close
        self._stacks: dict[Origin, list[_C]] = {}
        # The same connections, the one idle for longest first (a dict used as an ordered set).
        self._ages: dict[_C, None] = {}

    def __len__(self) -> int:
        return len(self._ages)

    def __iter__(self) -> Iterator[_C]:
        return iter(self._ages)

    def pop(self, origin: Origin) -> _C | None:
        """Return an idle connection that is not stale, or None."""
        now = trio.current_time()
        while stack := self._stacks.get(origin):
            connection = stack.pop()
            del self._ages[connection]
            if not stack:
                del self._stacks[origin]
            if connection.since >= now - self._keepalive and not connection.is_stale():
                return connection
            self._close(connection)
        self._drop_expired(now)
        return None

    def push(self, connection: _C) -> None:
        """Store a connection; expired connections are closed, and the oldest beyond `max_idle`."""
        now = connection.since = trio.current_time()
        self._ages[connection] = None
        self._stacks.setdefault(connection.origin, []).append(connection)
        self._drop_expired(now)
        while len(self._ages) > self._max_idle:
            self.drop_oldest()

    def drop_oldest(self) -> bool:
        """Close the connection that has been idle for longest. Returns False if there is none."""
        connection = next(iter(self._ages), None)
        if connection is None:
            return False
        del self._ages[connection]
        stack = self._stacks[connection.origin]
        # It is the first of its stack, as each stack is in the order of age.
        stack.remove(connection)
        if not stack:
            del self._stacks[connection.origin]
        self._close(connection)
        return True

    def _drop_expired(self, now: float) -> None:
        oldest = now - self._keepalive
        while self._ages and next(iter(self._ages)).since < oldest:
            self.drop_oldest()
