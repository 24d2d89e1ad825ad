"""Decode one content coding, in small steps, with bounds on bytes and members."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from trio_crawler.model import Phase, Reason
from trio_crawler.net.errors import FetchError
from trio_crawler.page.sitemap.read import (
    DEFLATE_WINDOW,
    GZIP,
    GZIP_WINDOW,
    ZLIB_WINDOW,
    ZlibStream,
)

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
        self._begin = _BEGINNINGS[name]
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
            raise self._bad(f"the {self._name} body has more than {MAX_MEMBERS} members")
        return self._begin(data)

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
            raise self._bad("the br body has bytes behind its end")
        return self._name == "deflate"

    def _step(self, engine: _Engine, data: bytes) -> bytes:
        try:
            piece = engine.step(data)
        except engine.error as error:
            raise self._bad(f"the {self._name} body is damaged: {error}") from error
        self._size += len(piece)
        if self._size > self._limit:
            detail = f"the decoded body has more than {self._limit} bytes"
            raise FetchError(Reason.TOO_LARGE, detail, Phase.READ)
        return piece

    def _bad(self, detail: str) -> FetchError:
        return FetchError(Reason.BAD_REPLY, detail, Phase.READ)


class _Engine(Protocol):
    """The decoder of one member.

    After a step, `over` is whether the member has ended, `more` whether there is output without
    further data; `rest` is the data to pass again, or the data after the end.
    """

    error: type[Exception]
    more: bool
    over: bool
    rest: bytes

    def step(self, data: bytes) -> bytes: ...


class _Zstd:
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


def _gzip(data: bytes) -> _Engine:
    if data[:2] != GZIP:
        raise FetchError(Reason.BAD_REPLY, "the body is labelled gzip and is not gzip", Phase.READ)
    return ZlibStream(GZIP_WINDOW, STEP)


def _deflate(data: bytes) -> _Engine:
    # "deflate" is the zlib format (RFC 9110, 8.4.1.2; RFC 1950, 2.2: method 8, a multiple of 31).
    # Many servers send a bare deflate stream, which never begins with such a header.
    wrapped = data[0] & 0x0F == 8 and data[0] >> 4 <= 7 and int.from_bytes(data[:2]) % 31 == 0
    return ZlibStream(ZLIB_WINDOW if wrapped else DEFLATE_WINDOW, STEP)


_BEGINNINGS: dict[str, Callable[[bytes], _Engine]] = {
    "gzip": _gzip,
    "deflate": _deflate,
    "br": lambda data: _Brotli(),
    "zstd": lambda data: _Zstd(),
}
