"""Body: what came for one URL, decoded as it comes, and bounded all the way."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from math import inf
from time import thread_time

import trio

from trio_crawler.model import Phase, Reason
from trio_crawler.net.errors import Faulty
from trio_crawler.net.inflate import Coding

OFFERED = "gzip, deflate, br, zstd"
"""The value of Accept-Encoding: only what can be decoded in bounded steps."""

MOST_CODINGS = 2
MOST_SECONDS = 1.0
"""CPU seconds one body may take to decode: a tenth is enough for 10 MiB of any real page."""

TURN = 0.001
"""CPU seconds after which `Body.decode` lets others run."""

SMALL = 256 * 1024
"""Encoded bytes of a body that is first tried apart from the long ones."""

QUICK = 0.01
"""CPU seconds of such a try; almost any real page takes less."""

_ALIASES = {"x-gzip": "gzip", "x-deflate": "deflate"}
_KNOWN = frozenset({"gzip", "deflate", "br", "zstd", *_ALIASES})
# A few pieces are joined at the end, or one given as it is; of many small ones the objects
# would take more memory than the bytes.
_FEW = 16
_BLOCK = 16 * 1024
# What is being decoded counts twice for a moment, and stored blocks are longer by their headers.
_SPARE = 64 * 1024


class Body:
    """Collect one body: at most `limit` bytes as sent, at each coding, and in the end.

    `codings` are content codings in the order they were applied (RFC 9110, 8.4): gzip, deflate,
    br or zstd, two at most; `encoded` says whether there are any. Such a body is decoded once
    it is here: a server that stops in the middle would else keep the window of the decoder (16
    MiB of brotli's) beside all that was decoded. `whole` sees to it that two bodies at most have
    windows. `spent` counts the CPU seconds of the decoding.

    With `cut` a longer body is no fault: its first `limit` bytes are given, or what there is of
    it when `full` is set; it sets itself when no more is wanted.

    Holds `limit` bytes and 64 KiB at most if chunks are not longer than that, besides the window
    and an eighth that is reserved but not touched.

    Raises Faulty from the constructor, `feed`, `decode` and `finish`; such a body is of no more
    use.
    """

    __slots__ = (
        "_begun",
        "_blocks",
        "_buffer",
        "_codings",
        "_cut",
        "_done",
        "_left",
        "_limit",
        "_pieces",
        "_received",
        "_room",
        "_size",
        "_stages",
        "_tail",
        "full",
        "spent",
    )

    def __init__(self, limit: int, codings: Sequence[str] = (), cut: bool = False) -> None:
        self._limit = limit
        self._codings = codings
        self._cut = cut
        # Noise is longer when it is coded.
        self._room = limit + _SPARE if cut and codings else limit
        self._received = 0
        self._size = 0
        self._pieces: list[bytes] = []
        self._buffer: BytesIO | None = None
        self._stages: tuple[Coding, ...] = ()
        if codings:
            self._stages = _stages(codings, self._room)
            self._blocks: deque[bytes] = deque()
            self._tail = bytearray()
            self._left = 0
            self._begun = self._done = False
        self.full = False
        self.spent = 0.0

    @property
    def encoded(self) -> bool:
        """Whether what was fed is to be decoded."""
        return bool(self._stages)

    @property
    def size(self) -> int:
        """How many bytes were fed."""
        return self._received

    def copy(self) -> Body:
        """Return a body that was fed the same, of an encoded one that is not yet decoded."""
        copy = Body(self._limit, self._codings, self._cut)
        copy.full = self.full
        copy._received = self._received
        copy._left = self._left
        copy._blocks = self._blocks.copy()
        copy._tail = self._tail.copy()
        return copy

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes as they were sent."""
        room = self._room - self._received
        self._received += len(chunk)
        if self._cut:
            chunk, self.full = chunk[: max(room, 0)], len(chunk) >= room
        elif len(chunk) > room:
            raise _too_large(f"the body has more than {self._limit} bytes")
        if self._stages:
            self._store(chunk)
        else:
            self._keep(chunk)

    def decode(self) -> Iterator[None]:
        """Decode what was fed, once its last byte was, stopping after every millisecond of work.

        A call of a coding's library, which may take 5 ms (of brotli with its largest window: 50),
        is not divided.

        Raises RuntimeError when it was begun before and left.
        """
        if not self._stages or self._done:
            return
        if self._begun:
            raise RuntimeError("the decoding of this body was left before its end")
        self._begun = True
        pieces: Iterable[bytes] = self._encoded()
        for stage in self._stages:
            pieces = stage.undo(pieces)
        if self._cut:
            pieces = self._beginning(pieces)
        began = thread_time()
        for piece in pieces:
            self._keep(piece)
            turn = thread_time() - began
            _check_time(self.spent + turn)
            if turn > TURN:
                self.spent += turn
                yield
                began = thread_time()
        if not self.full:
            for stage in reversed(self._stages):
                stage.finish()
        self._done = True

    def finish(self) -> bytes:
        """Return the decoded body, once its last byte was fed; decode it if that was not done."""
        for _ in self.decode():
            pass
        if self._buffer is not None:
            return self._buffer.getvalue()
        # One piece is given as it is.
        return b"".join(self._pieces)

    def _store(self, chunk: bytes) -> None:
        self._left += len(chunk)
        start, tail = 0, self._tail
        # Blocks are of one size, so that the libraries see the same however the bytes came.
        while start < len(chunk):
            end = start + _BLOCK - len(tail)
            tail += chunk[start:end]
            start = end
            if len(tail) == _BLOCK:
                self._blocks.append(bytes(tail))
                tail.clear()

    def _encoded(self) -> Iterator[bytes]:
        """Give what was stored, forgetting it."""
        self._blocks.append(bytes(self._tail))
        self._tail.clear()
        while self._blocks:
            block = self._blocks.popleft()
            yield block
            self._left -= len(block)

    def _beginning(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Give what is to be kept; it is less if what lies between two codings is too long."""
        try:
            for piece in pieces:
                yield piece[: self._limit - self._size]
                if self._size == self._limit:
                    break
            else:
                return
        except Faulty as error:
            if error.fault.reason is not Reason.TOO_LARGE:
                raise
        self.full = True

    def _keep(self, piece: bytes) -> None:
        if not piece:
            return
        self._size += len(piece)
        if self._stages and not self._cut and self._size + self._left > self._limit + _SPARE:
            # No coding makes a body longer than it was: what is left would pass the limit.
            raise _too_large(f"the decoded body has more than {self._limit} bytes")
        pieces = self._pieces
        if self._buffer is not None:
            self._buffer.write(piece)
        elif not pieces or (len(pieces) < _FEW and self._size <= self._limit // 2):
            pieces.append(piece)
        else:
            self._pour(piece)

    def _pour(self, piece: bytes) -> None:
        """Go over to a buffer, which gives its bytes away without a second copy."""
        self._buffer = BytesIO()
        self._buffer.writelines(self._pieces)
        self._buffer.write(piece)
        self._pieces.clear()


@dataclass(frozen=True, slots=True)
class Turns:
    """Bound the memory of all who decode: one body at a time is tried, and one is a long one."""

    quick: trio.Lock = field(default_factory=trio.Lock)
    long: trio.Lock = field(default_factory=trio.Lock)


async def whole(body: Body, turns: Turns) -> bytes:
    """Return what `body.finish` does, after its last byte was fed, letting others run meanwhile.

    Everyone who decodes shares `turns`: two bodies at most have a window. A small body does not
    wait for those that take long: it is tried for `QUICK` seconds, and what was tried in vain is
    thrown away. Without anything to decode, or for little of it, there is no checkpoint.

    Raises Faulty.
    """
    if not body.encoded:
        return body.finish()
    if body.size <= SMALL:
        tried = await _decoded(body.copy(), turns.quick, QUICK)
        if tried is not None:
            return tried
    decoded = await _decoded(body, turns.long, inf)
    assert decoded is not None  # noqa: S101 - nothing cut it short
    return decoded


async def _decoded(body: Body, turn: trio.Lock, seconds: float) -> bytes | None:
    """Decode a body in its turn; None if that takes longer than these CPU seconds."""
    try:
        turn.acquire_nowait()
    except trio.WouldBlock:
        await turn.acquire()
    try:
        for _ in body.decode():
            if body.spent > seconds:
                return None
            await trio.lowlevel.checkpoint()
        return body.finish()
    finally:
        turn.release()


def _too_large(detail: str) -> Faulty:
    return Faulty(Reason.TOO_LARGE, detail, Phase.READ)


def _bad(detail: str) -> Faulty:
    return Faulty(Reason.BAD_REPLY, detail, Phase.READ)


def _check_time(spent: float) -> None:
    if spent > MOST_SECONDS:
        raise _bad(f"the body takes more than {MOST_SECONDS:g} CPU seconds to decode")


def _stages(codings: Sequence[str], limit: int) -> tuple[Coding, ...]:
    if len(codings) > MOST_CODINGS:
        raise _bad(f"the body has {len(codings)} content codings; {MOST_CODINGS} are the limit")
    for coding in codings:
        if coding not in _KNOWN:
            raise _bad(f"the body has a content coding that was not offered: {coding[:40]!a}")
    # The last one applied is the first to be undone.
    return tuple(Coding(_ALIASES.get(coding, coding), limit) for coding in reversed(codings))
