"""Percent-encode queries in the encoding of their document (URL Standard 1.3, "encoding-parse").

The encoders are those of the WHATWG Encoding Standard. Python's codecs differ from them, so the
tables are made from codecs that have all characters, with the differences listed here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from trio_crawler.page import charset

# The characters of a cache; a page may contain a million different ones.
_MAX_CACHED = 8_192

# The special-query percent-encode set.
_ENCODED = frozenset(b"\"#'<> ")
_PERCENT = [
    f"%{byte:02X}" if byte <= 0x20 or byte > 0x7E or byte in _ENCODED else chr(byte)
    for byte in range(256)
]
AS_UTF_8 = frozenset({"", "utf-8", "utf-16le", "utf-16be", "replacement"})
"""The encodings of documents whose queries are encoded as UTF-8."""

# The pointers of index jis0208: rows of NEC that IBM's repeat, and the first of IBM's.
_NEC_REPEATED, _IBM, _JIS0208 = range(8272, 8836), 8836, 11104
_PRIVATE = range(0xE000, 0xF900)
_FIRST_HALF_WIDTH, _LAST_HALF_WIDTH = 0xFF61, 0xFF9F
_FULL_WIDTH_KATAKANA = (
    "。「」、・ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテト"
    "ナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン゛゜"
)
_LAST_IN_BIG5 = frozenset("\u2550\u255e\u2561\u256a\u5341\u5345")


def encode_query(text: str, encoding: str) -> str:
    """Return a query of a special URL, without "?", percent-encoded in a legacy encoding.

    A character that the encoding lacks becomes `&#N;`, percent-encoded, where N is its number.
    """
    if encoding == "iso-2022-jp":
        return "".join(_iso_2022_jp(text))
    forms = _encoder(encoding)
    if encoding == "gb18030" and len(text) > _MAX_CACHED:
        # It has all characters, which are too many for the cache.
        parts = _gb18030_changed().split(text)
        parts[::2] = [_percent(part.encode("gb18030")) for part in parts[::2]]
        parts[1::2] = map(forms.__getitem__, parts[1::2])
        return "".join(parts)
    return "".join(map(forms.__getitem__, text))


class _Encoder(dict[str, str]):
    """The percent-encoded form of each character, made when it is looked up."""

    def __init__(self, encode: Callable[[str], bytes | None]) -> None:
        self._encode = encode

    def __missing__(self, character: str) -> str:
        encoded = character.encode() if character < "\x80" else self._encode(character)
        form = _unencodable(character) if encoded is None else _percent(encoded)
        if len(self) >= _MAX_CACHED:
            self.clear()
        self[character] = form
        return form


@cache
def _encoder(encoding: str) -> _Encoder:
    if encoding in ("gb18030", "gbk"):
        return _Encoder(_gbk if encoding == "gbk" else _gb18030)
    if encoding == "euc-kr":
        return _Encoder(_euc_kr)
    tables = {"big5": _big5, "euc-jp": _euc_jp, "shift_jis": _shift_jis}
    table = tables.get(encoding)
    return _Encoder((_single_byte(encoding) if table is None else table()).get)


def _percent(encoded: bytes) -> str:
    return "".join([_PERCENT[byte] for byte in encoded])


def _unencodable(character: str) -> str:
    # The standard works on scalar values: a lone surrogate counts as U+FFFD.
    number = ord("\ufffd" if "\ud800" <= character <= "\udfff" else character)
    return f"%26%23{number}%3B"


def _single_byte(encoding: str) -> Mapping[str, bytes]:
    if encoding == "x-user-defined":
        return {chr(0xF700 + byte): bytes([byte]) for byte in range(0x80, 0x100)}
    characters = charset.single_byte(encoding)
    table = {characters[byte]: bytes([byte]) for byte in range(0xFF, 0x7F, -1)}
    # It marks the bytes that the encoding does not define.
    table.pop("\ufffd", None)
    return table


def _euc_kr(character: str) -> bytes | None:
    return _by_codec(character, "cp949")


def _gbk(character: str) -> bytes | None:
    if character == "\u20ac":
        return b"\x80"
    encoded = _gb18030(character)
    return None if encoded is None or len(encoded) > 2 else encoded


def _gb18030(character: str) -> bytes | None:
    if character == "\ue5e5":
        return None
    return charset.GB18030_CHANGES.get(character) or _by_codec(character, "gb18030")


def _by_codec(character: str, codec: str) -> bytes | None:
    if "\ud800" <= character <= "\udfff":
        character = "\ufffd"
    try:
        return character.encode(codec)
    except UnicodeEncodeError:
        return None


def _decoded(encoded: bytes, codec: str) -> str:
    """Return the character of two bytes, "" if there is none."""
    try:
        return encoded.decode(codec)
    except UnicodeDecodeError:
        return ""


@cache
def _big5() -> Mapping[str, bytes]:
    table: dict[str, bytes] = {}
    for lead in range(0xA1, 0xFF):
        for trail in (*range(0x40, 0x7F), *range(0xA1, 0xFF)):
            encoded = bytes([lead, trail])
            character = charset.BIG5_CHANGES.get(encoded) or _decoded(encoded, "big5hkscs")
            if character and (character not in table or character in _LAST_IN_BIG5):
                table[character] = encoded
    return table


def _jis0208(pointers: Iterator[int]) -> Iterator[tuple[int, str]]:
    """Yield the pointers of index jis0208 that have a character, and the characters."""
    for pointer in pointers:
        character = _decoded(charset.shift_jis_bytes(pointer), "cp932")
        if character and ord(character) not in _PRIVATE:
            yield pointer, character


@cache
def _shift_jis() -> Mapping[str, bytes]:
    table = {"\x80": b"\x80", "\xa5": b"\\", "\u203e": b"~"}
    pointers = (number for number in range(_JIS0208) if number not in _NEC_REPEATED)
    for pointer, character in _jis0208(pointers):
        table.setdefault(character, charset.shift_jis_bytes(pointer))
    for number in range(_FIRST_HALF_WIDTH, _LAST_HALF_WIDTH + 1):
        table[chr(number)] = bytes([number - _FIRST_HALF_WIDTH + 0xA1])
    table["\u2212"] = table["\uff0d"]
    return table


@cache
def _euc_jp() -> Mapping[str, bytes]:
    table = {"\xa5": b"\\", "\u203e": b"~"}
    for pointer, character in _jis0208(iter(range(_IBM))):
        lead, trail = divmod(pointer, 94)
        table.setdefault(character, bytes([lead + 0xA1, trail + 0xA1]))
    for number in range(_FIRST_HALF_WIDTH, _LAST_HALF_WIDTH + 1):
        table[chr(number)] = bytes([0x8E, number - _FIRST_HALF_WIDTH + 0xA1])
    table["\u2212"] = table["\uff0d"]
    return table


@cache
def _iso_2022_jp_table() -> Mapping[str, str]:
    """Return the percent-encoded form of each character of JIS X 0208, without escapes."""
    table = {
        character: _percent(bytes([encoded[0] - 0x80, encoded[1] - 0x80]))
        for character, encoded in _euc_jp().items()
        if len(encoded) == 2 and encoded[0] != 0x8E
    }
    for number, full_width in enumerate(_FULL_WIDTH_KATAKANA, _FIRST_HALF_WIDTH):
        table[chr(number)] = table[full_width]
    return table


def _iso_2022_jp(text: str) -> Iterator[str]:
    """Yield the parts of a query in ISO-2022-JP, the only encoding that has states."""
    ascii_, roman, kanji = "%1B(B", "%1B(J", "%1B$B"
    state, kanji_of = ascii_, _iso_2022_jp_table()
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


@cache
def _gb18030_changed() -> re.Pattern[str]:
    return re.compile(f"([\ud800-\udfff\ue5e5{''.join(charset.GB18030_CHANGES)}])")
