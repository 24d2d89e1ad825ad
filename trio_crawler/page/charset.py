"""Detect the encoding of a body (WHATWG Encoding and HTML Standards), and use it.

The body is decoded, and the queries of its links are encoded (URL Standard 1.3), by Python's codec
of that name. It lacks a few characters of the standard's.

A page can only choose an encoding from the standard's table of labels (`webencodings`), never a
Python codec: with `rot13`, `zlib`, `utf-7` or `punycode` a page could raise any error, or take a
minute to decode.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

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

AS_UTF_8 = frozenset({"", "utf-8", "utf-16le", "utf-16be", "replacement"})
"""The encodings of documents whose queries are encoded as UTF-8."""

# The special-query percent-encode set of the URL Standard.
_PERCENT = [
    f"%{byte:02X}" if byte <= 0x20 or byte > 0x7E or byte in b"\"#'<>" else chr(byte)
    for byte in range(256)
]
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
_PRESCAN = lazy(
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
_ATTRIBUTE = lazy(
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
_CHARSET_RULE = lazy(rb'@charset "([\x00-\x21\x23-\x7f]*+)";')
# <?xml version="1.0" encoding="utf-8"
_XML_DECLARATION = lazy(
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
        or ("utf-8" if body.isascii() or _fits_utf_8(body) else "windows-1252")
    )


def detect_style(body: bytes, content_type: str, environment: str = "") -> str:
    """Return the encoding of a style sheet (CSS Syntax 3, 3.2).

    The first of these counts: the byte order mark; the `charset` of the Content-Type header; an
    @charset at the very beginning; the encoding of the document that links to it; UTF-8.
    """
    for bom, encoding in _BOMS:
        if body.startswith(bom):
            return encoding
    rule = _CHARSET_RULE.match(body[:_PRESCAN_BYTES])
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
    if cut and encoding in _MULTI_BYTE:
        decoder = _codec(encoding).incrementaldecoder("ignore")
        decoder.decode(body)
        held, _ = decoder.getstate()
        body = body[: len(body) - len(held)]
    for bom, name in _BOMS:
        if encoding == name and body.startswith(bom):
            body = body[len(bom) :]
    if encoding == "replacement":
        # The standard does not decode encodings that are used only in attacks on browsers.
        return ("\ufffd", False) if body else ("", True)
    if encoding not in _MULTI_BYTE:
        text = codecs.charmap_decode(body, "strict", single_byte(encoding))[0]
        return text, "\ufffd" not in text
    codec = _codec(encoding).name
    try:
        return body.decode(codec), True
    except UnicodeDecodeError:
        return body.decode(codec, "replace"), False


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
    if b"charset" not in head.lower():
        return None
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


def encode_query(text: str, encoding: str) -> str:
    """Return a query of a special URL, without "?", percent-encoded in a legacy encoding.

    A character that the encoding lacks becomes `&#N;`, percent-encoded, where N is its number.
    """
    if encoding in _MULTI_BYTE:
        encoded = text.encode(_codec(encoding).name, _REFERENCE)
    else:
        encoded = codecs.charmap_encode(text, _REFERENCE, _bytes_of(encoding))[0]
    return "".join([_PERCENT[byte] for byte in encoded])


def _refer(error: UnicodeError) -> tuple[str, int]:
    """Return the references to characters that an encoding lacks."""
    assert isinstance(error, UnicodeEncodeError)  # noqa: S101 - nothing else encodes
    lacking = error.object[error.start : error.end]
    # The standard works on scalar values: a lone surrogate counts as U+FFFD.
    numbers = [0xFFFD if "\ud800" <= each <= "\udfff" else ord(each) for each in lacking]
    return "".join([f"%26%23{number}%3B" for number in numbers]), error.end


_REFERENCE = "trio_crawler.reference"
codecs.register_error(_REFERENCE, _refer)


# The standard decodes GBK as GB18030; pages in EUC-JP have characters that only JIS X 0213 has.
_CODECS = {"gbk": "gb18030", "euc-jp": "euc_jis_2004"}


@cache
def _codec(encoding: str) -> codecs.CodecInfo:
    found = webencodings.lookup(encoding)
    if found is None:
        raise LookupError(f"{encoding!r} is no name of the WHATWG Encoding Standard")
    return codecs.lookup(_CODECS[encoding]) if encoding in _CODECS else found.codec_info


@cache
def single_byte(encoding: str) -> str:
    """Return the 256 characters of a single-byte encoding.

    The bytes 80 to 9F that Python leaves undefined are C1 controls, as in the standard. Python
    takes 4 s for 10 MiB of undefined bytes, and 0.02 s with this table, which defines all bytes.
    """
    characters = _codec(encoding).decode(bytes(range(256)), "replace")[0]
    return "".join(
        chr(byte) if character == "\ufffd" and 0x80 <= byte <= 0x9F else character
        for byte, character in enumerate(characters)
    )


@cache
def _bytes_of(encoding: str) -> Any:
    # U+FFFE is for Python what is undefined.
    return codecs.charmap_build(single_byte(encoding).replace("\ufffd", "\ufffe"))
