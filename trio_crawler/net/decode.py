"""Decode the body of a response in bounded steps, with a bound on concurrent decoders."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO
from math import inf
from time import thread_time
from typing import TypeAlias

import trio

from trio_crawler.model import Phase, Reason
from trio_crawler.net.errors import FetchError, bad_reply
from trio_crawler.page.sitemap.read import (
    DEFLATE_WINDOW,
    GZIP,
    GZIP_WINDOW,
    ZLIB_WINDOW,
    ZlibStream,
)

OFFERED = "gzip, deflate, br, zstd"
"""The value of Accept-Encoding: only codings that can be decoded in bounded steps."""

MAX_CODINGS = 2
MAX_SECONDS = 1.0
"""The most CPU seconds to decode one body; a tenth is enough for 10 MiB of any real page."""

SLICE_SECONDS = 0.001
"""CPU seconds of decoding after which other tasks run."""

_ALIASES = {"x-gzip": "gzip", "x-deflate": "deflate"}
_KNOWN = frozenset({"gzip", "deflate", "br", "zstd", *_ALIASES})
_BLOCK = 16 * 1024
# A block that is being decoded counts twice for a moment, and stored blocks have headers.
_SPARE = 64 * 1024

MAX_MEMBERS = 10_000

STEP = 64 * 1024

# The most expensive bytes (brotli's context maps, for one byte of output) take a microsecond each,
# so a slice cannot block the event loop for long. Each member copies the rest of its slice, so
# with short slices the time for many members is linear, too.
SLICE = 4 * 1024

# brotli returns up to 32,752 bytes for any smaller limit, and 98,272 for 64 KiB.
_BROTLI_STEP = 16 * 1024
# 8 MiB: a server must not need a larger window (RFC 9659); Chromium refuses one, too.
_ZSTD_WINDOW_LOG = 23


class Body:
    """The body of one response: at most `limit` bytes as sent, after each coding, and decoded.

    `codings` are content codings in the order in which they were applied (RFC 9110, 8.4): gzip,
    deflate, br or zstd, at most two. Such a body is decoded after all of it was received:
    otherwise a server that stops in the middle would occupy the window of a decoder (16 MiB for
    brotli) besides the decoded bytes. `SLOTS` bounds the number of windows.
    `size` is the number of bytes that were fed, `cpu_seconds` the time that their decoding took.

    With `truncate` a longer body is not a fault: the first `limit` bytes are returned, and `cut`
    is set. A caller that ends the body early sets `cut` itself.

    The body takes at most `limit` bytes and 64 KiB of memory if chunks are not longer than that;
    the window comes on top, and an eighth of the memory that is reserved but not touched.

    The constructor, `feed`, `decode` and `finish` raise FetchError; then the body is unusable.
    """

    __slots__ = (
        *("_buffer", "_decoded", "_done", "_limit", "_room", "_sent", "_stages", "_truncate"),
        *("cpu_seconds", "cut", "encoded", "size"),
    )

    def __init__(self, limit: int, codings: Sequence[str] = (), truncate: bool = False) -> None:
        self._limit = limit
        self._truncate = truncate
        # Encoded random bytes are longer than the bytes themselves.
        self._room = limit + _SPARE if truncate and codings else limit
        self.size = 0
        self._decoded = 0
        # It returns its bytes without a second copy.
        self._buffer = BytesIO()
        self._stages = _stages(codings, self._room)
        self._sent = bytearray()
        self.cut = self._done = False
        self.cpu_seconds = 0.0
        self.encoded = bool(codings)

    def feed(self, chunk: bytes) -> None:
        """Add the next bytes as they were sent."""
        room = self._room - self.size
        self.size += len(chunk)
        if len(chunk) > room:
            if not self._truncate:
                raise _too_large(f"the body has more than {self._limit} bytes")
            chunk, self.cut = chunk[: max(room, 0)], True
        if self._stages:
            self._sent += chunk
        else:
            self._append(chunk)

    def decode(
        self,
        *,
        slice_seconds: float = SLICE_SECONDS,
        max_seconds: float = MAX_SECONDS,
        clock: Callable[[], float] = thread_time,
    ) -> Iterator[None]:
        """Decode the body after its last byte was fed; yield after each slice of work.

        A single call of a coding's library is not divided: it may take 5 ms (50 ms for brotli with
        its largest window). More than `max_seconds` in all are a fault.
        """
        if not self._stages or self._done:
            return
        began = clock()
        pieces: Iterable[bytes] = self._stored()
        for stage in self._stages:
            pieces = stage.undo(pieces)
        for piece in self._truncated(pieces) if self._truncate else pieces:
            self._append(piece)
            seconds = clock() - began
            if self.cpu_seconds + seconds > max_seconds:
                raise bad_reply(
                    f"the body takes more than {max_seconds:g} CPU seconds to decode", Phase.READ
                )
            if seconds > slice_seconds:
                self.cpu_seconds += seconds
                yield
                began = clock()
        if not self.cut:
            for stage in reversed(self._stages):
                stage.finish()
        self._done = True

    def finish(self) -> bytes:
        """Return the decoded body after its last byte was fed; decode it if `decode` has not."""
        for _ in self.decode():
            pass
        return self._buffer.getvalue()

    def _stored(self) -> Iterator[bytes]:
        """Remove and yield what was stored, in blocks of one size.

        So the result does not depend on the sizes of the chunks, and the memory is freed.
        """
        while self._sent:
            block = bytes(self._sent[:_BLOCK])
            yield block
            del self._sent[:_BLOCK]

    def _truncated(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield up to `limit` bytes; fewer if the bytes between two codings are too many."""
        try:
            for piece in pieces:
                left = self._limit - self._decoded
                yield piece[:left]
                if len(piece) > left:
                    self.cut = True
                    return
        except FetchError as error:
            if error.fault.reason is not Reason.TOO_LARGE:
                raise
            self.cut = True

    def _append(self, piece: bytes) -> None:
        self._decoded += len(piece)
        room = self._limit + _SPARE - self._decoded
        if self._stages and len(self._sent) > room:
            # Bytes do not become fewer when they are decoded: the rest would exceed the limit.
            if not self._truncate:
                raise _too_large(f"the decoded body has more than {self._limit} bytes")
            self.cut = True
            del self._sent[max(room, 0) :]
        self._buffer.write(piece)


SLOTS = 2
"""The most bodies that are decoded at the same time, and so the most windows of decoders."""


async def decoded(body: Body, slots: trio.Semaphore, deadline: float = inf) -> bytes:
    """Return the decoded body, after its last byte was fed.

    Raises FetchError, also if it would have to wait longer than until the deadline.

    This is not a checkpoint for a body without codings, nor for one that is decoded in one slice
    while one of the `slots` is free. Other tasks run after each slice.
    """
    if not body.encoded:
        return body.finish()
    if slots.value:
        slots.acquire_nowait()
    else:
        with trio.CancelScope(deadline=deadline) as scope:
            await slots.acquire()
        if scope.cancelled_caught:
            raise _late()
    try:
        for _ in body.decode():
            await trio.lowlevel.checkpoint()
            if trio.current_time() >= deadline:
                raise _late()
        return body.finish()
    finally:
        slots.release()


def _late() -> FetchError:
    return FetchError(Reason.TIMEOUT, "the deadline has passed", Phase.READ)


def _too_large(detail: str) -> FetchError:
    return FetchError(Reason.TOO_LARGE, detail, Phase.READ)


def _stages(codings: Sequence[str], limit: int) -> tuple[Coding, ...]:
    if len(codings) > MAX_CODINGS:
        raise bad_reply(
            f"the body has {len(codings)} content codings; {MAX_CODINGS} are the limit", Phase.READ
        )
    for coding in codings:
        if coding not in _KNOWN:
            raise bad_reply(
                f"the body has a content coding that was not offered: {coding[:40]!a}", Phase.READ
            )
    # The coding that was applied last is undone first.
    return tuple(Coding(_ALIASES.get(coding, coding), limit) for coding in reversed(codings))


class Coding:
    """A decoder of `gzip`, `deflate`, `br` or `zstd` that returns at most `limit` bytes.

    gzip may have several members (RFC 1952, 2.2), and zstd several frames (RFC 8878, 3.1);
    skippable frames have no content.

    Raises FetchError from `undo`, while it is iterated, and from `finish`.
    """

    def __init__(self, name: str, limit: int) -> None:
        self._name = name
        self._limit = limit
        self._size = 0
        self._members = 0
        self._engine: _Engine | None = None
        # The first bytes of a member, until there are enough to recognise its format.
        self._held = b""
        self._over = False

    def undo(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the decoded bytes, in pieces of at most 64 KiB, some of them empty.

        For each piece the library of the coding is called at most once.
        """
        for piece in pieces:
            if not piece:
                yield b""
            for start in range(0, len(piece), SLICE):
                yield from self._undo(self._held + piece[start : start + SLICE])

    def finish(self) -> None:
        """Raise FetchError if the end is missing; no bytes at all are a valid empty body."""
        begun = self._engine is not None or (self._held and not self._members)
        if begun or self._held == b"\x1f":
            detail = f"the {self._name} body is cut off before its end"
            raise FetchError(Reason.INCOMPLETE, detail, Phase.READ)

    def _undo(self, data: bytes) -> Iterator[bytes]:
        self._held = b""
        engine = self._engine
        while not self._over and (data or (engine is not None and engine.more)):
            if engine is None:
                engine = self._engine = self._next(data)
                if engine is None:
                    return
            piece = self._step(engine, data)
            data = engine.rest
            if engine.over:
                engine = self._engine = None
            yield piece

    def _next(self, data: bytes) -> _Engine | None:
        """Begin a member. Returns None for too few bytes, and for bytes after the last member."""
        if len(data) < 2 and self._name in ("gzip", "deflate"):
            self._held = data
            return None
        if self._members and self._ends(data):
            self._over = True
            return None
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise bad_reply(
                f"the {self._name} body has more than {MAX_MEMBERS} members", Phase.READ
            )
        if self._name == "br":
            return _Brotli()
        if self._name == "zstd":
            return _Zstd()
        if self._name == "gzip":
            if data[:2] != GZIP:
                raise bad_reply("the body is labelled gzip and is not gzip", Phase.READ)
            return ZlibStream(GZIP_WINDOW, STEP)
        # "deflate" is the zlib format (RFC 9110, 8.4.1.2; RFC 1950, 2.2: method 8, a multiple of
        # 31). Many servers send a bare deflate stream, which never begins with such a header.
        zlib = data[0] & 0x0F == 8 and data[0] >> 4 <= 7 and int.from_bytes(data[:2]) % 31 == 0
        return ZlibStream(ZLIB_WINDOW if zlib else DEFLATE_WINDOW, STEP)

    def _ends(self, data: bytes) -> bool:
        """Whether bytes after a complete stream end the body.

        After gzip and deflate they are padding and are ignored, as in browsers. After zstd only
        another frame is valid: curl and Chromium pass all bytes to the library, which refuses
        others. After br Chromium ignores them and curl refuses them; here they raise FetchError,
        since the library does not report where the stream ended.
        """
        if self._name == "gzip":
            return data[:2] != GZIP
        if self._name == "br":
            raise bad_reply("the br body has bytes behind its end", Phase.READ)
        return self._name == "deflate"

    def _step(self, engine: _Engine, data: bytes) -> bytes:
        try:
            piece = engine.step(data)
        except engine.error as error:
            raise bad_reply(f"the {self._name} body is damaged: {error}", Phase.READ) from error
        self._size += len(piece)
        if self._size > self._limit:
            raise _too_large(f"the decoded body has more than {self._limit} bytes")
        return piece


class _Zstd:
    """A decoder of one member, as `ZlibStream` is one.

    After a step, `over` is whether the member has ended, `more` whether there is output without
    further data; `rest` is the data to pass again, or the data after the end.
    """

    def __init__(self) -> None:
        # Imported late, like brotli: few sites send it, and other crawls need not load it.
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
        window: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG}
        self._engine = zstd.ZstdDecompressor(options=window)
        self.error: type[Exception] = zstd.ZstdError
        self.more = self.over = False
        self.rest = b""

    def step(self, data: bytes) -> bytes:
        engine = self._engine
        piece = engine.decompress(data, STEP)
        self.over = engine.eof
        self.rest = engine.unused_data if self.over else b""
        self.more = not self.over and not engine.needs_input
        return piece


class _Brotli:
    rest = b""

    def __init__(self) -> None:
        import brotli  # type: ignore[import-untyped]

        self._engine = brotli.Decompressor()
        self.error: type[Exception] = brotli.error
        self.more = self.over = False

    def step(self, data: bytes) -> bytes:
        engine = self._engine
        piece: bytes = engine.process(data, output_buffer_limit=_BROTLI_STEP)
        self.over = engine.is_finished()
        full = len(piece) >= _BROTLI_STEP or not engine.can_accept_more_data()
        self.more = full and not self.over
        return piece


_Engine: TypeAlias = ZlibStream | _Zstd | _Brotli
