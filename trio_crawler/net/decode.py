"""Body: what came for one URL, decoded as it comes, and bounded all the way."""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from io import BytesIO

import httpx

from trio_crawler.model import Fault, Reason

OFFERED = "gzip, deflate"
"""The value of Accept-Encoding: only what can be decoded in bounded steps."""

MOST_CODINGS = 2
MOST_MEMBERS = 10_000
STEP = 64 * 1024
# Each member or step copies what is left of the input it was given: small slices keep it linear.
_SLICE = 16 * 1024


class BadBody(Exception):
    """Carry the fault that ends the reading of a body."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.fault = Fault(reason, detail)


def codings(headers: httpx.Headers) -> list[str]:
    """Return the content codings in the order they were applied, without `identity`."""
    listed = headers.get_list("content-encoding", split_commas=True)
    named = (coding.strip().lower() for coding in listed)
    return [coding for coding in named if coding not in ("", "identity")]


class Body:
    """Collect one body: at most `limit` bytes as sent, at each coding, and in the end.

    Holds `limit` bytes and 64 KiB at most. `codings` are content codings in the order they were
    applied (RFC 9110, 8.4): gzip or deflate, two at most.

    Raises BadBody from the constructor, `feed` and `finish`.
    """

    def __init__(self, limit: int, codings: Sequence[str] = ()) -> None:
        self._limit = limit
        self._received = 0
        # BytesIO gives its buffer away without a copy; a list of chunks would need twice as much.
        self._decoded = BytesIO()
        self._stages = [_Inflater(coding, limit) for coding in _checked(codings)]

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes as they were sent."""
        self._received += len(chunk)
        if self._received > self._limit:
            raise BadBody(Reason.TOO_LARGE, f"the body has more than {self._limit} bytes")
        pieces: Iterable[bytes] = (chunk,)
        for stage in self._stages:
            pieces = stage.inflate(pieces)
        for piece in pieces:
            self._decoded.write(piece)

    def finish(self) -> bytes:
        """Return the decoded body, once its last byte was fed."""
        for stage in reversed(self._stages):
            stage.finish()
        return self._decoded.getvalue()


def _checked(codings: Sequence[str]) -> list[str]:
    if len(codings) > MOST_CODINGS:
        detail = f"the body has {len(codings)} content codings; {MOST_CODINGS} are the limit"
        raise BadBody(Reason.BAD_REPLY, detail)
    # The last one applied is the first to be undone.
    known = [coding.removeprefix("x-") for coding in reversed(codings)]
    for coding in known:
        if coding not in ("gzip", "deflate"):
            detail = f"the body has a content coding that was not offered: {coding[:40]!a}"
            raise BadBody(Reason.BAD_REPLY, detail)
    return known


class _Inflater:
    """Undo one coding. `gzip` may have several members (RFC 1952, 2.2), read in linear time."""

    def __init__(self, coding: str, limit: int) -> None:
        self._coding = coding
        self._limit = limit
        self._size = 0
        self._members = 0
        self._engine: zlib._Decompress | None = None
        # The bytes of a member's start that do not yet tell what it is.
        self._held = b""
        self._over = False

    def inflate(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Give what the pieces hold, in steps of 64 KiB at most."""
        for piece in pieces:
            for start in range(0, len(piece), _SLICE):
                yield from self._inflate(self._held + piece[start : start + _SLICE])

    def finish(self) -> None:
        """Check that the end was seen; no bytes at all are an empty body, as browsers have it."""
        begun = self._engine is not None or (self._held and not self._members)
        if begun or self._held == b"\x1f":
            raise BadBody(Reason.INCOMPLETE, f"the {self._coding} body ends before its end")

    def _inflate(self, data: bytes) -> Iterator[bytes]:
        self._held = b""
        while data and not self._over:
            if self._engine is None and not self._begin(data):
                return
            data = yield from self._step(data)

    def _begin(self, data: bytes) -> bool:
        if len(data) < 2:
            self._held = data
            return False
        window = _gzip_window(data) if self._coding == "gzip" else _deflate_window(data)
        # What follows a whole stream and is not another member is padding: it says nothing.
        self._over = self._members > 0 and (self._coding == "deflate" or window is None)
        if self._over:
            return False
        if window is None:
            raise BadBody(Reason.BAD_REPLY, "the body is said to be gzip and is not")
        self._members += 1
        if self._members > MOST_MEMBERS:
            raise BadBody(Reason.BAD_REPLY, f"the body has more than {MOST_MEMBERS} gzip members")
        self._engine = zlib.decompressobj(window)
        return True

    def _step(self, data: bytes) -> Generator[bytes, None, bytes]:
        """Inflate until the data or the member is used up; return what follows the member."""
        engine = self._engine
        while engine is not None:
            piece = self._decompress(engine, data)
            self._size += len(piece)
            if self._size > self._limit:
                detail = f"the decoded body has more than {self._limit} bytes"
                raise BadBody(Reason.TOO_LARGE, detail)
            yield piece
            if engine.eof:
                self._engine = None
                return engine.unused_data
            data = engine.unconsumed_tail
            # A full step may leave output inside zlib although all input is taken.
            if not data and len(piece) < STEP:
                return b""
        return b""

    def _decompress(self, engine: zlib._Decompress, data: bytes) -> bytes:
        try:
            return engine.decompress(data, STEP)
        except zlib.error as error:
            detail = f"the {self._coding} body is damaged: {error}"
            raise BadBody(Reason.BAD_REPLY, detail) from error


def _gzip_window(data: bytes) -> int | None:
    return 16 + zlib.MAX_WBITS if data[:2] == b"\x1f\x8b" else None


def _deflate_window(data: bytes) -> int:
    # RFC 9110 8.4.1.2 means the zlib format (RFC 1950, 2.2: method 8, a multiple of 31); many
    # servers send a bare deflate stream, which no encoder begins in such a way.
    wrapped = data[0] & 0x0F == 8 and data[0] >> 4 <= 7 and int.from_bytes(data[:2]) % 31 == 0
    return zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS
