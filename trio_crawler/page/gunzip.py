"""Decompress gzip (RFC 1952), zlib (RFC 1950) and deflate (RFC 1951) in bounded steps."""

from __future__ import annotations

import zlib

GZIP = b"\x1f\x8b"
"""The first bytes of each member of a gzip file."""

GZIP_WINDOW, ZLIB_WINDOW, DEFLATE_WINDOW = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS


class ZlibStream:
    """One stream, or one member of a gzip file; `window` is one of the constants above.

    After a step, `over` is whether the stream has ended, `more` whether the next step may return
    bytes without further data. `rest` is the data that was not read: pass it to the next step
    again; at the end of the stream it is the data after the stream.
    """

    error: type[Exception] = zlib.error

    def __init__(self, window: int, max_step: int) -> None:
        self._stream = zlib.decompressobj(window)
        self._max_step = max_step
        self.more = self.over = False
        self.rest = b""

    def step(self, data: bytes) -> bytes:
        """Return at most `max_step` bytes. Raises `error` if the stream is damaged."""
        stream = self._stream
        found = stream.decompress(data, self._max_step)
        self.over = stream.eof
        self.rest = stream.unused_data if self.over else stream.unconsumed_tail
        # A full step may leave output inside zlib although all input is read.
        self.more = not self.over and len(found) == self._max_step
        return found
