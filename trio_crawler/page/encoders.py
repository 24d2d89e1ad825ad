"""Percent-encode queries in the encoding of their document (URL Standard 1.3, "encoding-parse").

The encoders are those of the WHATWG Encoding Standard: each is its decoder, read backwards, with
the differences that the standard names.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from trio_crawler.page.charset import GB18030_CHANGES, decode

# The characters that one encoder remembers.
_MAX_CACHED = 65_536

# The special-query percent-encode set.
_ENCODED = frozenset(b"\"#'<> ")
_PERCENT = [
    f"%{byte:02X}" if byte <= 0x20 or byte > 0x7E or byte in _ENCODED else chr(byte)
    for byte in range(256)
]
AS_UTF_8 = frozenset({"", "utf-8", "utf-16le", "utf-16be", "replacement"})
"""The encodings of documents whose queries are encoded as UTF-8."""

# The first bytes that an encoder uses. Those of Hong Kong in Big5, those of NEC's copies of IBM's
# characters in Shift_JIS, and the three bytes of EUC-JP are only decoded.
_LEADS = {
    "big5": range(0xA1, 0xFF),
    "euc-jp": (0x8E, *range(0xA1, 0xFF)),
    "euc-kr": range(0x80, 0xFF),
    "shift_jis": (*range(0x81, 0xED), *range(0xEF, 0xFF)),
}
_TRAILS = (*range(0x40, 0x7F), *range(0x80, 0xFF))
# The index of Big5 has these twice; the second counts.
_LAST_IN_BIG5 = frozenset("\u2550\u255e\u2561\u256a\u5341\u5345")
# Python decodes these bytes of Big5 as other characters.
_ALIASES = {"big5": {"\u2215": b"\xa2A", "\ufe68": b"\xa2B"}}
_ALIASES["shift_jis"] = _ALIASES["euc-jp"] = {"\xa5": b"\\", "\u203e": b"~"}
_HALF_WIDTH = range(0xFF61, 0xFFA0)
_FULL_WIDTH = (
    "。「」、・ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテト"
    "ナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン゛゜"
)


def encode_query(text: str, encoding: str) -> str:
    """Return a query of a special URL, without "?", percent-encoded in a legacy encoding.

    A character that the encoding lacks becomes `&#N;`, percent-encoded, where N is its number.
    """
    if encoding == "iso-2022-jp":
        return "".join(_iso_2022_jp(text))
    return "".join(map(_encoder(encoding).__getitem__, text))


class _Encoder(dict[str, str]):
    """The percent-encoded form of each character, made when it is looked up."""

    def __init__(self, encoding: str) -> None:
        self._gbk = encoding == "gbk"
        self._table = {} if encoding in ("gb18030", "gbk") else _table(encoding)

    def __missing__(self, character: str) -> str:
        if character < "\x80":
            encoded: bytes | None = character.encode()
        else:
            encoded = self._table.get(character) if self._table else self._chinese(character)
        form = _unencodable(character) if encoded is None else _percent(encoded)
        if len(self) >= _MAX_CACHED:
            self.clear()
        self[character] = form
        return form

    def _chinese(self, character: str) -> bytes | None:
        if self._gbk and character == "\u20ac":
            return b"\x80"
        if character == "\ue5e5" or "\ud800" <= character <= "\udfff":
            # A lone surrogate counts as U+FFFD.
            return None if self._gbk or character == "\ue5e5" else b"\x841\xa47"
        encoded = GB18030_CHANGES.get(character) or character.encode("gb18030")
        return None if self._gbk and len(encoded) > 2 else encoded


_encoder = cache(_Encoder)


def _percent(encoded: bytes) -> str:
    return "".join([_PERCENT[byte] for byte in encoded])


def _unencodable(character: str) -> str:
    # The standard works on scalar values: a lone surrogate counts as U+FFFD.
    number = ord("\ufffd" if "\ud800" <= character <= "\udfff" else character)
    return f"%26%23{number}%3B"


def _table(encoding: str) -> dict[str, bytes]:
    """Return the bytes of each character that one or two bytes of an encoding stand for."""
    table: dict[str, bytes] = {}
    pairs = [bytes([lead, trail]) for lead in _LEADS.get(encoding, ()) for trail in _TRAILS]
    singles = [bytes([byte]) for byte in range(0xFF, 0x7F, -1)]
    for encoded in (*singles, *pairs):
        character, valid = decode(encoded, encoding)
        if not valid or len(character) > 1 or (pairs and "\ue000" <= character <= "\uf8ff"):
            continue
        if character not in table or (encoding == "big5" and character in _LAST_IN_BIG5):
            table[character] = encoded
    if encoding in ("euc-jp", "shift_jis"):
        table["\u2212"] = table["\uff0d"]
    return table | _ALIASES.get(encoding, {})


@cache
def _kanji() -> dict[str, str]:
    """Return the percent-encoded form of each character of JIS X 0208, without escapes."""
    table = {
        character: _percent(bytes([encoded[0] - 0x80, encoded[1] - 0x80]))
        for character, encoded in _table("euc-jp").items()
        if len(encoded) == 2 and encoded[0] != 0x8E
    }
    return table | {
        chr(number): table[full] for number, full in zip(_HALF_WIDTH, _FULL_WIDTH, strict=True)
    }


def _iso_2022_jp(text: str) -> Iterator[str]:
    """Yield the parts of a query in ISO-2022-JP, the only encoding that has states."""
    ascii_, roman, kanji = "%1B(B", "%1B(J", "%1B$B"
    state, kanji_of = ascii_, _kanji()
    for character in text:
        if (encoded := kanji_of.get(character)) is not None:
            wanted = kanji
        elif character in "\xa5\u203e":
            wanted, encoded = roman, "\\" if character == "\xa5" else "~"
        elif character < "\x80":
            keeps_roman = state is roman and character not in "\\~"
            wanted, encoded = roman if keeps_roman else ascii_, _PERCENT[ord(character)]
        else:
            # An error leaves only the state of the two-byte characters.
            wanted, encoded = ascii_ if state is kanji else state, _unencodable(character)
        if wanted is not state:
            state = wanted
            yield state
        # In the standard these are errors, since they might switch the state of a decoder.
        yield _unencodable("\ufffd") if character in "\x0e\x0f\x1b" else encoded
    if state is not ascii_:
        yield ascii_
