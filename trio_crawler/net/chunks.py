"""Chunks: the body out of a chunked message, read by llhttp."""

from __future__ import annotations

import httptools

from trio_crawler.model import Phase, Reason
from trio_crawler.net.errors import Faulty
from trio_crawler.net.head import MOST_BYTES, MOST_LINES

_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
_END = b"\r\n\r\n"


class Chunks:
    """Take a chunked body as it comes, give what is in it (RFC 9112, 7.1).

    `ended` after the last chunk and the trailers, which are dropped; `clean` says that no byte
    came behind them.
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
        # Servers that write a size before they know it leave room for its digits; curl, h11 and
        # the browsers pass over it.
        self._parser.set_dangerous_leniencies(lenient_spaces_after_chunk_size=True)
        self._parser.feed_data(_HEAD)

    def feed(self, data: bytes) -> bytes:
        """Return what `data` holds of the body. Raises Faulty(BAD_REPLY)."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            # Behind the end anything may come; it is not ours to read.
            if not self.ended:
                raise _bad(f"the chunks of the body are damaged: {error}") from None
            self.clean = False
        if self.ended:
            self._look_behind(data)
        self._bound(data)
        pieces, self._pieces = self._pieces, []
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _look_behind(self, data: bytes) -> None:
        """See the line ends that llhttp skips between messages: no body ends in more than two."""
        tail = (self._tail + data)[-5:]
        if not tail.endswith(_END) or tail[0] in _END:
            self.clean = False

    def _bound(self, data: bytes) -> None:
        """Bound what comes without being body: chunk extensions, trailers."""
        self._tail = (self._tail + data[-5:])[-5:]
        self._idle = 0 if self._pieces else self._idle + len(data)
        if self._idle > MOST_BYTES or self._trailers > MOST_LINES:
            self.clean = False
            raise _bad("the chunks of the body have too much around them")

    def on_body(self, piece: bytes) -> None:
        """Collect a piece (httptools calls this)."""
        if not self.ended:
            self._pieces.append(piece)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a trailer; the first is the Transfer-Encoding of our own making."""
        self._trailers += not self.ended

    def on_message_begin(self) -> None:
        """Notice an answer behind the end."""
        self.clean = not self.ended

    def on_message_complete(self) -> None:
        """Notice the end."""
        self.ended = True


def _bad(detail: str) -> Faulty:
    return Faulty(Reason.BAD_REPLY, detail, Phase.READ)
