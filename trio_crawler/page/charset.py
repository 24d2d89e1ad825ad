"""Detect the encoding of a body (WHATWG Encoding and HTML Standards) and decode it.

A page can only choose an encoding from the standard's table of labels (`webencodings`), never a
Python codec: with `rot13`, `zlib`, `utf-7` or `punycode` a page could raise any error, or take a
minute to decode.
"""

from __future__ import annotations

import codecs
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache, lru_cache

import webencodings

from trio_crawler.expressions import lazy

_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16le"), (b"\xfe\xff", "utf-16be"))
BOMS = tuple(bom for bom, _ in _BOMS)
"""The byte order marks, which count before all else."""

_MULTI_BYTE = frozenset(
    {"big5", "euc-jp", "euc-kr", "gb18030", "gbk", "iso-2022-jp", "shift_jis"}
    | {"utf-16be", "utf-16le", "utf-8"}
)
# In all others the bytes of ASCII are ASCII.
_NOT_ASCII = frozenset({"iso-2022-jp", "replacement", "utf-16be", "utf-16le"})
_PRESCAN_BYTES = 1024

# Where Python's codecs differ from the standard. In a single byte:
_SINGLE_BYTE_CHANGES = {
    "koi8-u": {0xAE: "\u045e", 0xBE: "\u040e"},
    "windows-1255": {0xCA: "\u05ba"},
}
# In two bytes; most of these characters were private ones before they were in Unicode.
_GB18030_MOVED = dict(
    zip(
        "\ue78d\ue78e\ue78f\ue790\ue791\ue792\ue793\ue794\ue795\ue796"
        "\ue81e\ue826\ue82b\ue82c\ue832\ue843\ue854\ue864",
        "\ufe10\ufe12\ufe11\ufe13\ufe14\ufe15\ufe16\ufe17\ufe18\ufe19"
        "\u9fb4\u9fb5\u9fb6\u9fb7\u9fb8\u9fb9\u9fba\u9fbb",
        strict=True,
    )
)
_GB18030_BYTES = (
    "a6d9 a6da a6db a6dc a6dd a6de a6df a6ec a6ed a6f3 fe59 fe61 fe66 fe67 fe6d fe7e fe90 fea0"
)
GB18030_CHANGES = {
    character: bytes.fromhex(code)
    for pair, code in zip(_GB18030_MOVED.items(), _GB18030_BYTES.split(), strict=True)
    for character in pair
} | {"\u1e3f": b"\xa8\xbc", "\ue7c7": b"\x815\xf47"}
"""Bytes in GB18030, by character; the old and the new character have the same bytes."""

BIG5_CHANGES = dict(
    zip(
        map(bytes.fromhex, "a145 a14e a1c2 a1e3 a1f2 a1f3 a241 a242 a244 a246 a247".split()),
        "\u2027\ufe51\xaf\uff5e\u2295\u2299\u2215\ufe68\uffe5\uffe0\uffe1",
        strict=True,
    )
)
BIG5_CHANGES |= {bytes([0xA3, 0xC0 + number]): chr(0x2400 + number) for number in range(32)}
BIG5_CHANGES |= {b"\xa3\xe0": "\u2421", b"\xa3\xe1": "\u20ac"}
_LATE = "c6cf c6d3 c6d5 c6d7 c6df fb48 fbf9 fc6c fe52".split()
BIG5_CHANGES |= zip(map(bytes.fromhex, _LATE), "廴无癶隶仝嘅廐悤猪", strict=True)
"""Characters of Big5, by bytes."""

_JIS_CHANGES = (
    ("\u301c", "\uff5e"),
    ("\u2016", "\u2225"),
    ("\u2212", "\uff0d"),
    ("\xa2", "\uffe0"),
    ("\xa3", "\uffe1"),
    ("\xac", "\uffe2"),
)
_BIG5_WRONG = "\u2022\uff64\u203e\u223c\u2641\u2609\xa5\xa2\xa3"
_BIG5_RIGHT = "\u2027\ufe51\xaf\uff5e\u2295\u2299\uffe5\uffe0\uffe1"
_DECODED_CHANGES = {
    "big5": tuple(zip(_BIG5_WRONG, _BIG5_RIGHT, strict=True)),
    "euc-jp": _JIS_CHANGES,
    "iso-2022-jp": _JIS_CHANGES,
    "gb18030": (*_GB18030_MOVED.items(), ("\ue5e5", "\u3000"), ("\ue7c7", "\u1e3f")),
}
_DECODED_CHANGES["gbk"] = _DECODED_CHANGES["gb18030"]
# The most headers, and beginnings of pages, that are cached: on one site most are the same.
_MAX_CACHED = 64

# The parameter of a Content-Type header: charset=utf-8 or charset="utf-8", even without the second
# quote.
_HEADER = lazy(
    r"""
    (?: ^ | [;,\s] ) charset \s* = \s*
    (?: "(?P<double> [^"]* ) | '(?P<single> [^']* ) | (?P<bare> [^\s;,"']+ ) )
    """,
    re.IGNORECASE | re.VERBOSE,
)
# What a "<" begins (HTML Standard 13.2.3.2, "prescan a byte stream"):
#
#   text                        captured   it is
#   <!-->  <!--->  <!--…-->                a comment
#   <meta                       meta       a meta tag; its attributes follow
#   <p  </p                     tag        any other tag; its attributes follow
#   <!…>  <?…>  </1>                       a bogus comment, which ends at the first ">"
_PRESCAN = re.compile(
    rb"""
    <
    (?: !-- (?: -?> | [\s\S]*?--> )
    |   (?P<meta> meta ) (?= [\t\n\f\r /] )
    |   (?P<tag> /? [a-z] [^\t\n\f\r >]*+ )
    |   [!/?] [^>]*+ >
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_ATTRIBUTE = re.compile(
    rb"""
    [\t\n\f\r /]*+
    (?P<name> [^\t\n\f\r />] [^\t\n\f\r />=]*+ )
    (?: [\t\n\f\r ]*+ = [\t\n\f\r ]*+
        (?: "(?P<double> [^"]*+ )"
        |   '(?P<single> [^']*+ )'
        |   (?P<bare> [^\t\n\f\r >"'] [^\t\n\f\r >]*+ )
        |   (?=>)
        )
    |   (?! [\t\n\f\r ]*+ = )
    )
    """,
    re.VERBOSE,
)
# Nothing but text, declarations and tags of a simple form, each with its end:
#
#   text  <!doctype html>  <?xml version="1.0"?>  <meta charset=utf-8>  <p class="c">  </p>  <br/>
_CLOSED = lazy(
    rb"""
    (?: [^<>]*+
        <
        (?: [!?] (?!--) [^<>]*+
        |   /? [a-z][a-z0-9]*+
            (?: [\t\n\f\r ]++ [a-z:-]++ (?: ="[^"<>]*+" | =[a-z0-9-]++ )?+ )*+
            [\t\n\f\r ]*+ /?+
        )
        >
    )*+
    """,
    re.IGNORECASE | re.VERBOSE,
)
# In the content of a meta element: text/html; charset=utf-8.
_IN_CONTENT = lazy(
    rb"""
    charset [\t\n\f\r ]*+ = [\t\n\f\r ]*+
    (?: "(?P<double> [^"]*+ )" | '(?P<single> [^']*+ )' | (?P<bare> [^\t\n\f\r ;"']++ ) )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_CHARSET_RULE = re.compile(rb'@charset "([\x00-\x21\x23-\x7f]*+)";').match
# <?xml version="1.0" encoding="utf-8"
_XML_DECLARATION = re.compile(
    rb"""
    <\?xml [^>]*? [\t\n\f\r ] encoding [\t\n\f\r ]* = [\t\n\f\r ]*
    (?: "(?P<double> [^">]* )" | '(?P<single> [^'>]* )' )
    """,
    re.VERBOSE,
)


def detect(body: bytes, content_type: str, *, markup: bool) -> str:
    """Return the encoding of a body: a name of the WHATWG Encoding Standard.

    The first of these counts: the byte order mark; the `charset` of the Content-Type header; for
    markup, the declaration in the first 1,024 bytes (a meta element or an XML declaration); UTF-8
    if the body is valid UTF-8; windows-1252. Labels that the standard does not list are ignored.
    """
    for bom, encoding in _BOMS:
        if body.startswith(bom):
            return encoding
    return (
        by_header(content_type)
        or (_by_markup(body[:_PRESCAN_BYTES]) if markup else None)
        or ("utf-8" if _fits_utf_8(body) else "windows-1252")
    )


def detect_style(body: bytes, content_type: str, environment: str = "") -> str:
    """Return the encoding of a style sheet (CSS Syntax 3, 3.2).

    The first of these counts: the byte order mark; the `charset` of the Content-Type header; an
    @charset at the very beginning; the encoding of the document that links to it; UTF-8.
    """
    for bom, encoding in _BOMS:
        if body.startswith(bom):
            return encoding
    rule = _CHARSET_RULE(body[:_PRESCAN_BYTES])
    declared = None if rule is None else _name(rule[1].decode("latin-1"))
    if declared in ("utf-16le", "utf-16be"):
        declared = "utf-8"
    return by_header(content_type) or declared or environment or "utf-8"


def decode(body: bytes, encoding: str, *, cut: bool = False) -> tuple[str, bool]:
    """Return the text of a body in an encoding from `detect`, and whether all bytes were valid.

    The byte order mark is dropped. U+FFFD replaces invalid bytes. The last character of a body
    that was `cut` is dropped if it is incomplete.
    """
    if body.isascii() and encoding not in _NOT_ASCII:
        # ▶ For 90 KB this takes 17 us, and a table for single bytes 126.
        return body.decode("ascii"), True
    if cut:
        body = _without_incomplete(body, encoding)
    for bom, name in _BOMS:
        if encoding == name and body.startswith(bom):
            body = body[len(bom) :]
    if encoding == "replacement":
        # The standard does not decode encodings that are used only in attacks on browsers.
        return ("\ufffd", False) if body else ("", True)
    if encoding not in _MULTI_BYTE:
        text = codecs.charmap_decode(body, "strict", single_byte(encoding))[0]
        return text, "\ufffd" not in text
    # The decoder of GBK is that of GB18030.
    codec = _codec("gb18030" if encoding == "gbk" else encoding).name
    try:
        text, clean = body.decode(codec), True
    except UnicodeDecodeError:
        text, clean = _decode_with_missing(body, codec)
    for wrong, right in _DECODED_CHANGES.get(encoding, ()):
        text = text.replace(wrong, right)
    return text, clean


def _without_incomplete(body: bytes, encoding: str) -> bytes:
    """Return a body without the bytes of an incomplete character at its end."""
    if encoding not in _MULTI_BYTE:
        return body
    decoder = _codec(encoding).incrementaldecoder("ignore")
    decoder.decode(body)
    held, _ = decoder.getstate()
    return body[: len(body) - len(held)]


def chunk_decoder(encoding: str) -> Callable[[bytes], str]:
    """Return a function that decodes one chunk of a body after another.

    A character may be divided between chunks. U+FFFD replaces invalid bytes. A byte order mark
    is decoded like any other character.
    """
    if encoding not in _MULTI_BYTE:
        return lambda chunk: decode(chunk, encoding)[0]
    decoder = _codec(encoding).incrementaldecoder("replace")
    return lambda chunk: str(decoder.decode(chunk))


@lru_cache(_MAX_CACHED)
def by_header(content_type: str) -> str | None:
    """Return the encoding that a Content-Type header names; None if it names none."""
    match = _HEADER.search(content_type)
    return None if match is None else _name(match[match.lastgroup or 0])


def _by_markup(head: bytes) -> str | None:
    # A declaration in UTF-16 cannot be read as ASCII: the standard recognises its "<?x" instead.
    if head.startswith(b"<\0?\0x\0"):
        return "utf-16le"
    if head.startswith(b"\0<\0?\0x"):
        return "utf-16be"
    declaration = _XML_DECLARATION.match(head)
    return _by_meta(head) or (
        None if declaration is None else _declared(declaration[declaration.lastgroup or 0])
    )


def _by_meta(head: bytes) -> str | None:
    # Up to the first declaration, the pages of one site are often the same, byte for byte.
    return _by_beginning(head[: head.find(b">", head.find(b"charset")) + 1]) or _prescan(head)


@lru_cache(_MAX_CACHED)
def _by_beginning(beginning: bytes) -> str | None:
    # In an open comment or value, the rest of the page would decide what the beginning means.
    return _prescan(beginning) if _CLOSED.fullmatch(beginning) else None


def _prescan(head: bytes) -> str | None:
    at = 0
    while (tag := _PRESCAN.search(head, at)) is not None:
        at = tag.end()
        if tag.lastgroup is None:
            continue
        attributes, at = _attributes(head, at)
        if tag["meta"] and (encoding := _in_meta(attributes)) is not None:
            return encoding
    return None


def _attributes(head: bytes, at: int) -> tuple[dict[bytes, bytes], int]:
    """Return the attributes that begin at a position, and where they end.

    The first attribute of each name counts.
    """
    found: dict[bytes, bytes] = {}
    while (match := _ATTRIBUTE.match(head, at)) is not None:
        name, double, single, bare = match.group("name", "double", "single", "bare")
        found.setdefault(name.lower(), double or single or bare or b"")
        at = match.end()
    return found, at


def _in_meta(attributes: dict[bytes, bytes]) -> str | None:
    if b"charset" in attributes:
        return _declared(attributes[b"charset"])
    if attributes.get(b"http-equiv", b"").lower() != b"content-type":
        return None
    match = _IN_CONTENT.search(attributes.get(b"content", b""))
    return None if match is None else _declared(match[match.lastgroup or 0])


def _declared(label: bytes) -> str | None:
    """Return the encoding for a label that a page declares; None for an unknown label.

    As in the standard, UTF-16 counts as UTF-8, since the declaration itself was read as ASCII, and
    x-user-defined counts as windows-1252.
    """
    name = _name(label.decode("latin-1"))
    if name in ("utf-16le", "utf-16be"):
        return "utf-8"
    return "windows-1252" if name == "x-user-defined" else name


def _name(label: str) -> str | None:
    encoding = webencodings.lookup(label)
    return None if encoding is None else str(encoding.name)


def _fits_utf_8(body: bytes) -> bool:
    try:
        # Incremental: a body that is cut in the middle of a character is still UTF-8.
        codecs.getincrementaldecoder("utf-8")().decode(body)
    except UnicodeDecodeError:
        return False
    return True


def shift_jis_bytes(pointer: int) -> bytes:
    """Return the bytes in Shift_JIS for a pointer of index jis0208."""
    lead, trail = divmod(pointer, 188)
    return bytes(
        (lead + (0x81 if lead < 0x1F else 0xC1), trail + (0x40 if trail < 0x3F else 0x41))
    )


def _decode_with_missing(body: bytes, codec: str) -> tuple[str, bool]:
    """Return a body with invalid bytes as text, and whether the standard decodes all of them."""
    if codec in _PARTIAL_CODECS:
        _calls.left = _MAX_MISSING
        # There are too many invalid bytes.
        with suppress(UnicodeDecodeError):
            text = body.decode(codec, _MISSING)
            return text, "\ufffd" not in text
    return body.decode(codec, "replace"), False


def _decode_missing(error: UnicodeError) -> tuple[str, int]:
    """Decode bytes that Python's codec does not know, or return U+FFFD."""
    _calls.left -= 1
    if not isinstance(error, UnicodeDecodeError) or _calls.left < 0:
        raise error
    pair, after = error.object[error.start : error.start + 2], error.start + 2
    if pair[:1] == b"\x80" and error.encoding == "gb18030":
        return "\u20ac", error.start + 1
    if error.encoding == "big5hkscs":
        found = BIG5_CHANGES.get(pair, "")
    else:
        found = _in_jis0208(pair) if error.encoding in ("euc_jp", "iso2022_jp") else ""
    return (found, after) if found else ("\ufffd", error.end)


def _in_jis0208(pair: bytes) -> str:
    """Return the character of two bytes of EUC-JP or ISO-2022-JP, "" if there is none.

    Only Python's codec of Shift_JIS has all characters of the standard's index.
    """
    lead, trail = [(byte & 0x7F) - 0x21 for byte in pair.ljust(2, b"\0")]
    if 0 <= lead < 94 and 0 <= trail < 94 and pair.isascii() == (pair[1] < 0x80):
        with suppress(UnicodeDecodeError):
            return shift_jis_bytes(lead * 94 + trail).decode("cp932")
    return ""


_MISSING = "trio_crawler.missing"
codecs.register_error(_MISSING, _decode_missing)
# A call for each of ten million bytes would take ten seconds.
_MAX_MISSING = 200_000
_PARTIAL_CODECS = frozenset({"big5hkscs", "euc_jp", "gb18030", "iso2022_jp"})
# A page may be read in any thread.
_calls = threading.local()


@cache
def _codec(encoding: str) -> codecs.CodecInfo:
    found = webencodings.lookup(encoding)
    if found is None:
        raise LookupError(f"{encoding!r} is no name of the WHATWG Encoding Standard")
    return found.codec_info


@cache
def single_byte(encoding: str) -> str:
    """Return the 256 characters of a single-byte encoding.

    The bytes 80 to 9F that Python leaves undefined are C1 controls, as in the standard. Python
    takes 4 s for 10 MiB of undefined bytes, and 0.02 s with this table, which defines all bytes.
    """
    characters = _codec(encoding).decode(bytes(range(256)), "replace")[0]
    changes = _SINGLE_BYTE_CHANGES.get(encoding, {})
    characters = "".join(changes.get(byte, each) for byte, each in enumerate(characters))
    return "".join(
        chr(byte)
        if character == "\ufffd" and 0x80 <= byte <= 0x9F
        else changes.get(byte, character)
        for byte, character in enumerate(characters)
    )
