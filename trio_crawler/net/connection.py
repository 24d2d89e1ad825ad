"""Connection: one socket to one origin, one request and its answer at a time."""

from __future__ import annotations

import ssl
from typing import TypeAlias

from trio_crawler.model import Fault, Phase, Reason
from trio_crawler.net.chunks import Chunks
from trio_crawler.net.errors import Faulty, broken, socket_fault
from trio_crawler.net.head import (
    MOST_BYTES,
    MOST_INTERIM,
    MOST_LINES,
    Head,
    bad,
    check_start,
    end_of_head,
    parse,
)
from trio_crawler.net.progress import Progress
from trio_crawler.net.stream import Stream

Origin: TypeAlias = tuple[str, str, int]
"""Scheme, host (an IPv6 address without brackets) and port."""

PORTS = {"http": 80, "https": 443}


class Connection:
    """Ask over a stream, which it owns, and tell whether it can be asked again.

    `ask`, then `read` until it gives no bytes: then, and only if `reusable`, `ask` again. At
    most `most` bytes are taken from the socket for one answer, give or take 64 KiB.

    Raises Faulty.
    """

    __slots__ = (
        "_before",
        "_buffer",
        "_chunks",
        "_head",
        "_left",
        "_most",
        "_progress",
        "_untouched",
        "asked",
        "origin",
        "reusable",
        "since",
        "stream",
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
        self._untouched = True
        self._most = 0
        self._left: int | None = 0
        self._chunks: Chunks | None = None

    def is_spoilt(self) -> bool:
        """Tell whether an idle connection was closed by the server, or sent to unasked."""
        return not self.stream.is_quiet()

    def is_untouched(self) -> bool:
        """Tell whether not one byte has come of the answer."""
        return self._untouched

    def close(self) -> None:
        """Close the socket; nothing is sent."""
        self.reusable = False
        self.stream.close()

    async def ask(
        self, request: bytes, progress: Progress, most: int, *, bodiless: bool = False
    ) -> Head:
        """Send a request and return the head of its answer; interim answers are passed over."""
        self.reusable = False
        self.asked += 1
        self._progress = progress
        self._before = self.stream.received
        self._untouched = True
        self._most = most
        progress.phase = Phase.SEND
        try:
            await self.stream.send(request)
        except OSError as error:
            raise self._fault(error) from error
        progress.phase = Phase.WAIT
        head = await self._final_head(bodiless)
        progress.phase = Phase.READ
        progress.received = 0
        self._begin(head)
        return head

    async def read(self) -> bytes:
        """Return the next bytes of the body, none when all of it has come."""
        while True:
            if piece := self._take():
                self._count(piece)
                return piece
            if self._is_over():
                self._end()
                return b""
            data = await self._receive()
            if not data:
                self._cut_off()
                return b""
            self._buffer = data

    def drain(self) -> None:
        """Read what is left of a body if it has come already; a body not read spoils the rest."""
        try:
            while self._take():
                pass
        except Faulty:
            return
        if self._is_over():
            self._end()

    async def _final_head(self, bodiless: bool) -> Head:
        spent = lines = 0
        for _ in range(MOST_INTERIM + 1):
            raw = await self._raw_head(MOST_BYTES - spent)
            head = parse(raw, bodiless=bodiless)
            spent += len(raw)
            lines += len(head.fields)
            if lines > MOST_LINES:
                raise bad(f"the answer has more than {MOST_LINES} header lines")
            if head.status >= 200:
                return head
            if head.status == 101:
                raise bad("the server changes to a protocol that was not asked for")
        raise bad(f"the answer begins with more than {MOST_INTERIM} interim answers")

    async def _raw_head(self, most: int) -> bytes:
        looked = 0
        end = end_of_head(self._buffer) if self._buffer else None
        if end is None:
            check_start(self._buffer)
        while end is None:
            # An empty line that is cut in two begins at most three bytes before the end.
            looked = max(0, len(self._buffer) - 3)
            data = await self._receive()
            if not data:
                raise self._no_answer()
            # Not counted at the socket: TLS says farewell in bytes that are of no answer.
            self._untouched = False
            self._buffer = self._buffer + data if self._buffer else data
            if (end := end_of_head(self._buffer, looked)) is None:
                check_start(self._buffer)
                if len(self._buffer) > most:
                    break
        if end is None or end.end() > most:
            raise bad(f"the header of the answer has more than {MOST_BYTES} bytes")
        head, self._buffer = self._buffer[: end.end()], self._buffer[end.end() :]
        return head

    def _begin(self, head: Head) -> None:
        self._left = head.length
        self._chunks = Chunks() if head.chunked else None
        self._head = head

    def _take(self) -> bytes:
        """Return what the buffer holds of the body."""
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

    def _count(self, piece: bytes) -> None:
        self._progress.received = (self._progress.received or 0) + len(piece)

    def _is_over(self) -> bool:
        return self._left == 0 if self._chunks is None else self._chunks.ended

    def _end(self) -> None:
        clean = not self._buffer if self._chunks is None else self._chunks.clean
        self.reusable = clean and self._head.keep

    def _cut_off(self) -> None:
        """Judge the end of the connection: only a body of no stated length may end with it."""
        if self._chunks is not None or self._left is not None:
            raise Faulty(Reason.INCOMPLETE, self._short(), Phase.READ)

    def _short(self) -> str:
        received = self._progress.received or 0
        if self._left is None:
            return f"the body was cut off after {received} bytes"
        return f"{received} of {received + self._left} bytes of the body came"

    async def _receive(self) -> bytes:
        if self.stream.received - self._before > self._most:
            detail = f"more than {self._most} bytes were sent for one answer"
            raise Faulty(Reason.TOO_LARGE, detail, self._progress.phase)
        try:
            return await self.stream.receive()
        except ssl.SSLEOFError as error:
            # RFC 9112, 9.8: without the closing word, what came may not be all.
            if self._progress.phase is not Phase.READ:
                raise self._no_answer() from error
            raise Faulty(Reason.INCOMPLETE, self._short(), Phase.READ) from error
        except OSError as error:
            raise self._fault(error) from error

    def _no_answer(self) -> Faulty:
        return Faulty(Reason.RESET, broken(self._progress.peer, None), Phase.WAIT)

    def _fault(self, error: OSError) -> Faulty:
        fault: Fault = socket_fault(error, self._progress)
        return Faulty(fault.reason, fault.detail, fault.phase)
