"""Decompress and decode the body of a sitemap in chunks, to bound the memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from trio_crawler.model import Reason
from trio_crawler.page import charset
from trio_crawler.page.gunzip import GZIP, GZIP_WINDOW, ZlibStream

CHUNK = 64 * 1024
"""The bytes of a chunk."""

MAX_MEMBERS = 10_000
"""The most members of a gzip file; even an empty one takes some microseconds."""

# Small, since the output of a step is lost if its input is damaged, and since each step copies the
# rest of its slice.
_SLICE = _STEP = 4 * 1024
# A byte order mark, an XML declaration in UTF-16, or one in ASCII that names an encoding.
_ENCODING_MARK = re.compile(
    rb"""
    \xef\xbb\xbf | \xff\xfe | \xfe\xff
|   <\0\?\0x\0 | \0<\0\?\0x
|   [\t\n\r ]*+
    (?P<declaration>
        <\?xml (?=[\t\n\r ]) [\t\n\r -;=@-~]*? encoding [\t\n\r -;=@-~]*+ \?>
    )
    """,
    re.VERBOSE,
)
_MAX_DECLARATION = 512


class DecodedBody:
    """The text of a body in chunks of at most 65,536 characters, to be iterated over once.

    A gzip file is recognised by its first bytes and decompressed. At most `max_bytes` bytes are
    decoded. The encoding is that of the byte order mark, else of the XML declaration, else, for
    markup, of the Content-Type header, else UTF-8. After the iteration, `flaws` has a sentence and
    a reason for each flaw, and `complete` is false if a part of the body is missing.
    """

    def __init__(self, body: bytes, content_type: str, max_bytes: int) -> None:
        self._body = body
        self._content_type = content_type
        self._max_bytes = max_bytes
        self.flaws: dict[str, Reason] = {}
        self.complete = True

    def __iter__(self) -> Iterator[str]:
        chunks = self._bounded(self._decompressed() if self._body[:2] == GZIP else self._chunks())
        first = next(chunks, b"")
        decode = charset.chunk_decoder(_encoding(first, self._content_type))
        for chunk in chain((first,), chunks):
            text = decode(chunk)
            yield text
            bad = 0 if text.isascii() else text.count("\ufffd")
            if bad > len(text) // 2:
                # 50 MB of lone surrogates would take 9 s.
                self._stop("most of its bytes are invalid in its encoding", Reason.BAD_CHARSET)
                return
            if bad:
                self.flaws["it has bytes that are invalid in its encoding"] = Reason.BAD_CHARSET

    def _stop(self, sentence: str, reason: Reason) -> None:
        self.flaws[sentence] = reason
        self.complete = False

    def _bounded(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        left = self._max_bytes
        for chunk in chunks:
            if len(chunk) > left:
                self._stop(f"it has more than {self._max_bytes} bytes", Reason.TOO_LARGE)
                yield chunk[:left]
                return
            yield chunk
            left -= len(chunk)

    def _chunks(self) -> Iterator[bytes]:
        for start in range(0, len(self._body), CHUNK):
            yield self._body[start : start + CHUNK]

    def _decompressed(self) -> Iterator[bytes]:
        """Yield the output of the steps in chunks; only the last chunk is short."""
        chunk = bytearray()
        for step in self._steps():
            chunk += step
            if len(chunk) > CHUNK - _STEP:
                yield bytes(chunk)
                chunk.clear()
        yield bytes(chunk)

    def _steps(self) -> Iterator[bytes]:
        """Yield the content of all members of a gzip file (RFC 1952), as far as possible."""
        at = 0
        for _ in range(MAX_MEMBERS):
            member = ZlibStream(GZIP_WINDOW, _STEP)
            try:
                while not member.over and (at < len(self._body) or member.more):
                    data = self._body[at : at + _SLICE]
                    yield member.step(data)
                    at += len(data) - len(member.rest)
            except member.error:
                self._stop("the gzip file is damaged", Reason.BAD_SITEMAP)
                return
            if not member.over:
                self._stop("the gzip file is cut off", Reason.INCOMPLETE)
                return
            if self._body[at : at + 2] != GZIP:
                return  # the rest is padding
        self._stop(f"the gzip file has more than {MAX_MEMBERS} members", Reason.BAD_SITEMAP)


def _encoding(first: bytes, content_type: str) -> str:
    """Return the encoding of a body with this first chunk."""
    mark = _ENCODING_MARK.match(first, 0, _MAX_DECLARATION)
    if mark is not None:
        # Only the mark: the rest may look like a declaration of HTML.
        return charset.detect(mark["declaration"] or mark[0], "", markup=True)
    # A list of URLs is in UTF-8 by the protocol; its header may name the server's default charset.
    markup = first.lstrip().startswith(b"<")
    return charset.detect(b"", content_type if markup else "", markup=False)
