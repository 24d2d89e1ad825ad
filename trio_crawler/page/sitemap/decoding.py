"""A sitemap's body as text, piece by piece: unpacked, decoded, and never all of it at once."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

import webencodings

from trio_crawler.model import Reason
from trio_crawler.page import charset

PIECE = 64 * 1024
"""Bytes that are decoded at a time."""

MOST_MEMBERS = 10_000
"""Members of a gzip file; each costs some microseconds, be it empty."""

_GZIP = b"\x1f\x8b"
# Damage costs what its step would have given. A step copies what is left of its slice.
_SLICE = _STEP = 4 * 1024
# A byte order mark, a declaration in UTF-16, or one in ASCII that names an encoding.
_TELLING = re.compile(
    rb"\xef\xbb\xbf|\xff\xfe|\xfe\xff|<\0\?\0x\0|\0<\0\?\0x"
    rb"|[\t\n\r ]*+(<\?xml(?=[\t\n\r ])[\t\n\r -;=@-~]*?encoding[\t\n\r -;=@-~]*+\?>)"
)
_LONGEST_DECLARATION = 512
# The encodings of which a character may take several bytes, and be cut.
_MULTI_BYTE = ("big5", "euc-", "gb", "iso-2022-jp", "shift_jis", "utf-")
_BAD_CHARACTERS = "it holds bytes that mean nothing in its encoding"
_NO_TEXT = "most of it means nothing in its encoding"


class Pieces:
    """Give a body's text in pieces of at most 65,536 characters, once.

    A gzip file is recognised by its first bytes and unpacked; no more than `most` bytes are
    decoded. The encoding is that of the byte order mark, else what an XML declaration says,
    else, for markup, the Content-Type header, else UTF-8. Afterwards `complaints` tells what was
    wrong, each sentence with its reason; `whole` says whether all of the body was given.
    """

    def __init__(self, body: bytes, content_type: str, most: int) -> None:
        self._body = body
        self._content_type = content_type
        self._most = most
        self.complaints: dict[str, Reason] = {}

    @property
    def whole(self) -> bool:
        """Whether nothing is missing, as far as it was read."""
        return not self.complaints.keys() - {_BAD_CHARACTERS}

    def __iter__(self) -> Iterator[str]:
        pieces = self._bounded(self._unpacked() if self._body[:2] == _GZIP else self._cut())
        first = next(pieces, b"")
        decode = _decoder(_encoding(first, self._content_type))
        for piece in chain((first,), pieces):
            text = decode(piece)
            yield text
            bad = 0 if text.isascii() else text.count("\ufffd")
            if bad > len(text) // 2:
                # 50 MB of lone surrogates would take 9 s.
                self.complaints[_NO_TEXT] = Reason.BAD_CHARSET
                return
            if bad:
                self.complaints[_BAD_CHARACTERS] = Reason.BAD_CHARSET

    def _bounded(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        left = self._most
        for piece in pieces:
            if len(piece) > left:
                self.complaints[f"it has more than {self._most} bytes"] = Reason.TOO_LARGE
                yield piece[:left]
                return
            yield piece
            left -= len(piece)

    def _cut(self) -> Iterator[bytes]:
        for start in range(0, len(self._body), PIECE):
            yield self._body[start : start + PIECE]

    def _unpacked(self) -> Iterator[bytes]:
        """Join what the steps give, so that a piece is short only at the end."""
        piece = bytearray()
        for step in self._steps():
            piece += step
            if len(piece) > PIECE - _STEP:
                yield bytes(piece)
                piece.clear()
        yield bytes(piece)

    def _steps(self) -> Iterator[bytes]:
        """Undo gzip (RFC 1952, with several members) as far as that goes."""
        at = 0
        for _ in range(MOST_MEMBERS):
            engine = zlib.decompressobj(16 + zlib.MAX_WBITS)
            try:
                while not engine.eof and at < len(self._body):
                    data = self._body[at : at + _SLICE]
                    yield engine.decompress(data, _STEP)
                    at += len(data) - len(engine.unconsumed_tail or engine.unused_data)
                while not engine.eof and (rest := engine.decompress(b"", _STEP)):
                    yield rest
            except zlib.error:
                self.complaints["the gzip file is damaged"] = Reason.BAD_SITEMAP
                return
            if not engine.eof:
                self.complaints["the gzip file ends before its end"] = Reason.INCOMPLETE
                return
            if self._body[at : at + 2] != _GZIP:
                return  # what follows is padding
        self.complaints[f"the gzip file has more than {MOST_MEMBERS} members"] = Reason.BAD_SITEMAP


def _decoder(encoding: str) -> Callable[[bytes], str]:
    found = webencodings.lookup(encoding)
    if found is None or not encoding.startswith(_MULTI_BYTE):
        return lambda piece: charset.decode(piece, encoding)[0]
    decoder = found.codec_info.incrementaldecoder("replace")
    return lambda piece: str(decoder.decode(piece))


def _encoding(first: bytes, content_type: str) -> str:
    """Name the encoding; what tells it is all that `charset` gets to see of the body."""
    telling = _TELLING.match(first, 0, _LONGEST_DECLARATION)
    if telling is not None:
        return charset.decide(telling[1] or telling[0], "", markup=True)
    # The header of a list of URLs says what the server says of any text; the protocol says UTF-8.
    markup = first.lstrip().startswith(b"<")
    return charset.decide(b"", content_type if markup else "", markup=False)
