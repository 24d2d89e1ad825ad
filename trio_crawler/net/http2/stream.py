"""What a connection by HTTP/2 carries (RFC 9113): frames, messages, and a stream for each request.

What a server sends is split into frames, within bounds, before h2 gets to see it: h2 raises an
error for the connection as a whole, does not tell the stream that caused it, and after a GOAWAY
refuses the frames of streams that may still end.
"""

from __future__ import annotations

import re
import ssl
from collections import deque
from typing import Any, NamedTuple, TypeAlias

import trio
from h2.errors import ErrorCodes
from hpack import NeverIndexedHeaderTuple

from trio_crawler.model import Phase, Reason
from trio_crawler.net.errors import (
    AskAgain,
    FetchError,
    bad_reply,
    incomplete,
    no_answer,
    socket_error,
)
from trio_crawler.net.http1.message import (
    WITHOUT_BODY,
    Fields,
    Head,
    is_name,
    parsed,
)
from trio_crawler.net.turn import Progress

FRAME_BYTES = 16 * 1024
"""The most bytes of a frame, without its header; a server may send more only if it is allowed."""

BLOCK_BYTES = 128 * 1024
"""The most bytes of a header block, compressed: a HEADERS frame and those that continue it."""

DATA, HEADERS, GOAWAY, CONTINUATION = 0, 1, 7, 9
"""The types of frames that this package looks at (RFC 9113, 6)."""

HEADER_BYTES = 9
"""The bytes of the header of a frame."""

NUMBER = 0x7FFFFFFF
"""The bits of a frame's header that are the number of a stream."""

_PADDED = 0x8

Block: TypeAlias = list[tuple[bytes, bytes]]

# RFC 9113, 8.2.2: they are about one connection of HTTP/1.1. Host is ":authority" (8.3.1).
_NOT_SENT = frozenset(
    {
        *(b"connection", b"host", b"keep-alive", b"proxy-connection"),
        *(b"te", b"transfer-encoding", b"upgrade"),
    }
)
# RFC 7541, 7.1.3: not in the table of the compressor, which proxies may share.
_SECRET = frozenset({b"authorization", b"cookie"})
_is_status = re.compile(rb"[2-9][0-9][0-9]").fullmatch
_has_break = re.compile(rb"[\r\n\0]").search


def code_name(code: int) -> str:
    """Return the name of an error code; a code without a name is named by its number."""
    return ErrorCodes(code).name if code in tuple(ErrorCodes) else f"error code {code}"


class Frame(NamedTuple):
    """One frame: `whole` has its header too, `size` is the length of its payload."""

    kind: int
    flags: int
    stream: int
    size: int
    whole: bytes

    @property
    def ends_stream(self) -> bool:
        """Whether a DATA or HEADERS frame is the last one of its stream."""
        return bool(self.flags & 0x1)

    @property
    def data_size(self) -> int:
        """The number of bytes in a DATA frame that are not padding; below 0 if it is malformed."""
        if not self.flags & _PADDED:
            return self.size
        return self.size - 1 - self.whole[HEADER_BYTES] if self.size else -1


class FrameError(Exception):
    """A frame that ends the connection; `stream` is the number of its stream."""

    def __init__(self, why: str, stream: int) -> None:
        super().__init__(why)
        self.stream = stream


class FrameReader:
    """The bytes that have arrived, frame by frame."""

    def __init__(self) -> None:
        self._buffer = b""
        self._start = 0
        self._block = 0

    def add(self, data: bytes) -> None:
        """Append bytes that have arrived."""
        self._buffer = self._buffer[self._start :] + data
        self._start = 0

    def next(self) -> Frame | None:
        """Remove and return the next frame, None if it is not complete. Raises FrameError."""
        buffer, start = self._buffer, self._start
        if len(buffer) - start < HEADER_BYTES:
            return None
        size = int.from_bytes(buffer[start : start + 3])
        kind, flags = buffer[start + 3], buffer[start + 4]
        stream = int.from_bytes(buffer[start + 5 : start + 9]) & NUMBER
        if size > FRAME_BYTES:
            raise FrameError(f"a frame has {size} bytes; {FRAME_BYTES} are the limit", stream)
        after = start + HEADER_BYTES + size
        if after > len(buffer):
            return None
        self._start = after
        if kind in (HEADERS, CONTINUATION):
            self._block = size if kind == HEADERS else self._block + size
            if self._block > BLOCK_BYTES:
                raise FrameError(f"a header block has more than {BLOCK_BYTES} bytes", stream)
        return Frame(kind, flags, stream, size, buffer[start:after])


def block_of(request: bytes) -> Block:
    """Return the header block for a request, whose head is in the form of HTTP/1.1."""
    start, *lines = request.removesuffix(b"\r\n\r\n").split(b"\r\n")
    method, target, _ = start.split(b" ")
    authority = b""
    fields: Block = []
    for line in lines:
        name, _, value = line.partition(b": ")
        name = name.lower()
        if name == b"host":
            authority = value
        elif name in _SECRET:
            fields.append(NeverIndexedHeaderTuple(name, value))
        elif name not in _NOT_SENT:
            fields.append((name, value))
    return [
        (b":method", method),
        (b":authority", authority),
        (b":scheme", b"https"),
        (b":path", target),
        *fields,
    ]


def head_of(block: Block, *, bodiless: bool = False) -> Head:
    """Return the head of a response, which is `bodiless` after HEAD. Raises FetchError(BAD_REPLY).

    Names may have upper case, which RFC 9113, 8.2.1 forbids: browsers read such responses.
    """
    statuses = [value for name, value in block if name == b":status"]
    fields: Fields = [field for field in block if not field[0].startswith(b":")]
    if len(statuses) != 1 or not _is_status(statuses[0]):
        raise bad_reply("the answer has no final status, or more than one")
    if len(block) - len(fields) != 1:
        raise bad_reply("the answer has a pseudo-header that only requests have")
    if any(not is_name(name) or _has_break(value) for name, value in fields):
        raise bad_reply("a header line has a control character in it, or no valid name")
    return parsed(int(statuses[0]), 0, fields, bodiless=bodiless)


class Http2Stream:
    """One request, and its response as it arrives: a stream of a connection (RFC 9113, 5).

    `connection` is the `Http2Connection` that carries it.
    """

    __slots__ = (
        *("_max_bytes", "_pieces", "_progress", "bodiless", "closed", "connection", "ended"),
        *("fault", "head", "interim", "lot", "news", "number", "received", "total", "unread"),
    )

    def __init__(
        self,
        connection: Any,
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
        self.connection = connection
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
        self.connection.acknowledge(self, size)
        self._progress.received = (self._progress.received or 0) + len(piece)
        return piece

    async def _more(self) -> None:
        if self.fault is not None:
            raise self.fault
        self.news = False
        await self.connection.advance(self)

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

    def begin(self, block: Block) -> None:
        """Record the head of the response. Raises FetchError(BAD_REPLY)."""
        self.head = head_of(block, bodiless=self.bodiless)
        # A body may be announced, and h2 would miss it.
        self.ended = self.ended or self.head.status in WITHOUT_BODY
        self.wake()

    def take(self, data: bytes, size: int) -> None:
        """Append bytes of the body, which take `size` bytes of the window."""
        self.unread += size
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
        if self.head is None:
            return no_answer(self._progress.server)
        return incomplete(self.received, self.head.length)

    def lost(self, error: OSError | None) -> FetchError:
        """Return the error for a connection that has ended, by an error or in order."""
        if error is None or isinstance(error, ssl.SSLEOFError):
            return self.shortfall()
        return socket_error(error, self._progress)

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
