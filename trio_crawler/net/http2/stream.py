"""A stream of HTTP/2 (RFC 9113, 5): one request, and its response as it arrives."""

from __future__ import annotations

import ssl
from collections import deque
from typing import Protocol

import trio
from h2.errors import ErrorCodes

from trio_crawler.model import Phase, Reason
from trio_crawler.net.errors import AskAgain, FetchError, connection_lost, socket_fault
from trio_crawler.net.http1.message import Head, bad_reply
from trio_crawler.net.http2.frames import HEADER_BYTES, Frame, code_name
from trio_crawler.net.turn import Progress


class Carrier(Protocol):
    """The connection of some streams."""

    async def advance(self, stream: Http2Stream) -> None:
        """Wait until something has happened to a stream."""

    def acknowledge(self, stream: Http2Stream, size: int) -> None:
        """Record that so many bytes of a body were read."""


class Http2Stream:
    """One request, and its response as it arrives: a stream of a connection (RFC 9113, 5)."""

    __slots__ = (
        *("_connection", "_max_bytes", "_pieces", "_progress", "bodiless", "closed", "ended"),
        *("fault", "head", "interim", "lot", "news", "number", "received", "total", "unread"),
    )

    def __init__(
        self,
        connection: Carrier,
        number: int,
        progress: Progress,
        max_bytes: int,
        *,
        bodiless: bool = False,
    ) -> None:
        self.number = number
        self.bodiless = bodiless
        self.head: Head | None = None
        self.fault: FetchError | None = None
        # The server has sent everything; nothing more can come or be refused.
        self.ended = False
        self.closed = False
        self.news = False
        self.interim = 0
        self.received = 0
        self.total = 0
        # Bytes that count in the window until they are read.
        self.unread = 0
        self.lot = trio.lowlevel.ParkingLot()
        self._connection = connection
        self._progress = progress
        self._max_bytes = max_bytes
        self._pieces: deque[tuple[bytes, int]] = deque()

    async def answer(self) -> Head:
        """Return the head of the response. Raises FetchError."""
        progress = self._progress
        progress.phase = Phase.WAIT
        while self.head is None:
            await self._more()
        progress.phase, progress.received = Phase.READ, 0
        return self.head

    async def read(self) -> bytes:
        """Return the next bytes of the body, none at its end. Raises FetchError."""
        while not self._pieces:
            if self.ended and self.fault is None:
                return b""
            await self._more()
        piece, size = self._pieces.popleft()
        self.unread -= size
        self._connection.acknowledge(self, size)
        self._progress.received = (self._progress.received or 0) + len(piece)
        return piece

    def take_whole(self) -> None:
        """Return None: bytes of HTTP/2 are acknowledged as they are read."""

    @property
    def is_live(self) -> bool:
        """Whether more of the response is expected."""
        return not self.ended and self.fault is None

    async def _more(self) -> None:
        if self.fault is not None:
            raise self.fault
        self.news = False
        await self._connection.advance(self)

    def wake(self) -> None:
        """Record that something has happened."""
        self.news = True
        self.lot.unpark_all()

    def end(self) -> None:
        """End the response: nothing more comes, also if more was announced."""
        length = None if self.head is None else self.head.length
        if length is not None and self.received < length:
            self.fail(self.shortfall())
        self.ended = True
        self.wake()

    def fail(self, fault: FetchError) -> None:
        """End the response with a fault, unless it is complete."""
        if not self.ended and self.fault is None:
            self.fault = fault
            self.wake()

    def take(self, data: bytes, size: int) -> None:
        """Append bytes of the body, which take `size` bytes of the window."""
        self.unread += size
        if data:
            self._pieces.append((data, size))
            self.wake()

    def flaw(self, frame: Frame) -> FetchError | None:
        """Return what is wrong about a frame with data of the body, and count it."""
        self.total += frame.size + HEADER_BYTES
        self.received += frame.data_size
        if self.total > self._max_bytes:
            detail = f"more than {self._max_bytes} bytes were sent for one answer"
            return FetchError(Reason.TOO_LARGE, detail, Phase.READ)
        if self.head is None or (length := self.head.length) is None:
            return None
        if self.received > length:
            return bad_reply(f"the body has more than the {length} bytes of its Content-Length")
        return self.shortfall() if frame.ends_stream and self.received < length else None

    def shortfall(self) -> FetchError:
        """Return the error for a response that ends too early."""
        server = self._progress.server
        if self.head is None:
            return FetchError(Reason.RESET, connection_lost(server, None), Phase.WAIT)
        if self.head.length is None:
            detail = f"the body was cut off after {self.received} bytes"
        else:
            detail = f"{self.received} of {self.head.length} bytes of the body came"
        return FetchError(Reason.INCOMPLETE, detail, Phase.READ)

    def lost(self, error: OSError | None) -> FetchError:
        """Return the error for a connection that has ended, by an error or in order."""
        if error is None or isinstance(error, ssl.SSLEOFError):
            return self.shortfall()
        fault = socket_fault(error, self._progress)
        return FetchError(fault.reason, fault.detail, fault.phase)

    def refusal(self, code: int) -> FetchError:
        """Return the error for a server that has ended the stream with an error code."""
        server, name = self._progress.server, code_name(code)
        if self.head is None:
            detail, phase = f"{server} refused the request: {name} (HTTP/2)", Phase.WAIT
        else:
            detail = f"{server} broke off the body after {self.received} bytes: {name} (HTTP/2)"
            phase = Phase.READ
        error = FetchError(Reason.RESET, detail, phase)
        if code == ErrorCodes.HTTP_1_1_REQUIRED:
            return AskAgain(error.fault, http1=True)
        return AskAgain(error.fault) if code == ErrorCodes.REFUSED_STREAM else error
