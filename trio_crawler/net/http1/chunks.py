"""Decode the body of a chunked message, by llhttp."""

from __future__ import annotations

import httptools

from trio_crawler.model import Phase, Reason
from trio_crawler.net.errors import FetchError
from trio_crawler.net.http1.head import MAX_HEAD_BYTES, MAX_HEAD_LINES

_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
_END = b"\r\n\r\n"


class ChunkDecoder:
    """A decoder of one chunked body (RFC 9112, 7.1).

    `ended` is set after the last chunk and the trailers, which are dropped. `clean` is False if
    any byte follows them.
    """

    __slots__ = ("_idle", "_parser", "_pieces", "_tail", "_trailers", "clean", "ended")

    def __init__(self) -> None:
        self.ended = False
        self.clean = True
        self._pieces: list[bytes] = []
        self._tail = b""
        self._idle = 0
        self._trailers = -1
        self._parser = httptools.HttpResponseParser(self)
        # Some servers reserve spaces for the digits of the size; curl, h11 and browsers skip them.
        self._parser.set_dangerous_leniencies(lenient_spaces_after_chunk_size=True)
        self._parser.feed_data(_HEAD)

    def feed(self, data: bytes) -> bytes:
        """Return the bytes of the body in `data`. Raises FetchError(BAD_REPLY)."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            # Bytes after the end do not belong to this response, so they need not be valid.
            if not self.ended:
                raise _bad(f"the chunks of the body are damaged: {error}") from None
            self.clean = False
        if self.ended:
            self._check_tail(data)
        self._check_framing(data)
        pieces, self._pieces = self._pieces, []
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _check_tail(self, data: bytes) -> None:
        """Detect the line ends that llhttp skips between messages: a body ends in at most two."""
        tail = (self._tail + data)[-5:]
        if not tail.endswith(_END) or tail[0] in _END:
            self.clean = False

    def _check_framing(self, data: bytes) -> None:
        """Raise FetchError for too many bytes of chunk extensions and trailers."""
        self._tail = (self._tail + data[-5:])[-5:]
        self._idle = 0 if self._pieces else self._idle + len(data)
        if self._idle > MAX_HEAD_BYTES or self._trailers > MAX_HEAD_LINES:
            self.clean = False
            raise _bad("the chunks of the body have too many bytes of extensions or trailers")

    def on_body(self, piece: bytes) -> None:
        """Collect a piece (httptools calls this)."""
        if not self.ended:
            self._pieces.append(piece)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a trailer (httptools calls this); the first is the field of `_HEAD`."""
        self._trailers += not self.ended

    def on_message_begin(self) -> None:
        """Record that another response follows the end (httptools calls this)."""
        self.clean = not self.ended

    def on_message_complete(self) -> None:
        """Record the end (httptools calls this)."""
        self.ended = True


def _bad(detail: str) -> FetchError:
    return FetchError(Reason.BAD_REPLY, detail, Phase.READ)
