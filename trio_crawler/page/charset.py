"""Which encoding a body is in, by the WHATWG Encoding and HTML Standards, and its text.

A page's own words only ever choose from the standard's label table (`webencodings`). They
never name a Python codec: `rot13`, `zlib`, `utf-7` or `punycode` would let a page raise
whatever it likes, or burn a minute.
"""

from __future__ import annotations

import codecs
import re
from functools import cache, lru_cache

import webencodings

_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16le"), (b"\xfe\xff", "utf-16be"))
_MULTI_BYTE = frozenset(
    {"big5", "euc-jp", "euc-kr", "gb18030", "gbk", "iso-2022-jp", "shift_jis"}
    | {"utf-16be", "utf-16le", "utf-8"}
)
_PRESCAN_BYTES = 1024

_HEADER = re.compile(
    r"""(?:^|[;,\s])charset\s*=\s*(?:"([^"]*)|'([^']*)|([^\s;,"']+))""", re.IGNORECASE
)
_SPACE = rb"[\t\n\f\r ]"
# A comment, a meta, another tag, or something bogus that ends at the first ">"
# (HTML Standard 13.2.3.2, "prescan a byte stream").
_PRESCAN = re.compile(
    rb"<(?:!--(?:-?>|[\s\S]*?-->)|(meta)(?=[\t\n\f\r /])|/?[a-z][^\t\n\f\r >]*+|[!/?][^>]*+>)",
    re.IGNORECASE,
)
_ATTRIBUTE = re.compile(
    rb"[\t\n\f\r /]*+([^\t\n\f\r />][^\t\n\f\r />=]*+)"
    rb"(?:[\t\n\f\r ]*+=[\t\n\f\r ]*+"
    rb"""(?:"([^"]*+)"|'([^']*+)'|([^\t\n\f\r >"'][^\t\n\f\r >]*+)|(?=>))"""
    rb"|(?![\t\n\f\r ]*+=))"
)
# White space and text, declarations, tags: the simple ones, each with its end.
_CLOSED = re.compile(
    rb"""(?:[^<>]*+<(?:[!?](?!--)[^<>]*+|/?[a-z][a-z0-9]*+"""
    rb"""(?:[\t\n\f\r ]++[a-z:-]++(?:="[^"<>]*+"|=[a-z0-9-]++)?+)*+[\t\n\f\r ]*+/?+)>)*+""",
    re.IGNORECASE,
).fullmatch
_IN_CONTENT = re.compile(
    rb"charset"
    + _SPACE
    + rb"*+="
    + _SPACE
    + rb"""*+(?:"([^"]*+)"|'([^']*+)'|([^\t\n\f\r ;"']++))""",
    re.IGNORECASE,
)
_XML_DECLARATION = re.compile(
    rb"""<\?xml[^>]*?[\t\n\f\r ]encoding[\t\n\f\r ]*=[\t\n\f\r ]*(?:"([^">]*)"|'([^'>]*)')"""
)


def decide(body: bytes, content_type: str, *, markup: bool) -> str:
    """Decide a body's encoding; the answer is a name of the WHATWG Encoding Standard.

    In this order: byte order mark, the `charset` of the Content-Type header, for markup what
    the first 1,024 bytes declare (a meta element or an XML declaration), UTF-8 if the body
    fits it, else windows-1252. Labels the standard does not know do not count.
    """
    return (
        _by_bom(body)
        or _by_header(content_type)
        or (_by_markup(body[:_PRESCAN_BYTES]) if markup else None)
        or ("utf-8" if _fits_utf_8(body) else "windows-1252")
    )


def decode(body: bytes, encoding: str) -> tuple[str, bool]:
    """Decode a body by an encoding from `decide`, without its byte order mark.

    Returns the text and whether every byte had a meaning; where one had none stands U+FFFD.
    """
    for bom, name in _BOMS:
        if encoding == name and body.startswith(bom):
            body = body[len(bom) :]
    if encoding == "replacement":
        # Encodings known only from attacks on browsers: the standard reads nothing in them.
        return ("\ufffd", False) if body else ("", True)
    if encoding not in _MULTI_BYTE:
        text = codecs.charmap_decode(body, "strict", _single_byte(encoding))[0]
        return text, "\ufffd" not in text
    codec = _codec(encoding).name
    try:
        return body.decode(codec), True
    except UnicodeDecodeError:
        return body.decode(codec, "replace"), False


def _by_bom(body: bytes) -> str | None:
    return next((name for bom, name in _BOMS if body.startswith(bom)), None)


def _by_header(content_type: str) -> str | None:
    match = _HEADER.search(content_type)
    return None if match is None else _name(match[match.lastindex or 0])


def _by_markup(head: bytes) -> str | None:
    # An encoding of two bytes a character cannot have been read as ASCII: the standard
    # recognises its "<?x" instead.
    if head.startswith(b"<\0?\0x\0"):
        return "utf-16le"
    if head.startswith(b"\0<\0?\0x"):
        return "utf-16be"
    declaration = _XML_DECLARATION.match(head)
    return _by_meta(head) or (
        None if declaration is None else _declared(declaration[declaration.lastindex or 0])
    )


def _by_meta(head: bytes) -> str | None:
    # As far as the first declaration the pages of a site are often the same, byte for byte.
    return _by_beginning(head[: head.find(b">", head.find(b"charset")) + 1]) or _prescan(head)


@lru_cache(64)
def _by_beginning(beginning: bytes) -> str | None:
    # What follows must not change what this means, as the end of a comment or value would.
    return _prescan(beginning) if _CLOSED(beginning) else None


def _prescan(head: bytes) -> str | None:
    at = 0
    while (tag := _PRESCAN.search(head, at)) is not None:
        at = tag.end()
        if tag[0].startswith((b"<!", b"<?")) or not (tag[1] or tag[0].strip(b"</")[:1].isalpha()):
            continue
        attributes, at = _attributes(head, at)
        if tag[1] and (encoding := _of_meta(attributes)) is not None:
            return encoding
    return None


def _attributes(head: bytes, at: int) -> tuple[dict[bytes, bytes], int]:
    """Read the attributes that begin at a place; the first of a name counts."""
    found: dict[bytes, bytes] = {}
    while (match := _ATTRIBUTE.match(head, at)) is not None:
        found.setdefault(match[1].lower(), match[2] or match[3] or match[4] or b"")
        at = match.end()
    return found, at


def _of_meta(attributes: dict[bytes, bytes]) -> str | None:
    if b"charset" in attributes:
        return _declared(attributes[b"charset"])
    if attributes.get(b"http-equiv", b"").lower() != b"content-type":
        return None
    match = _IN_CONTENT.search(attributes.get(b"content", b""))
    return None if match is None else _declared(match[match.lastindex or 0])


def _declared(label: bytes) -> str | None:
    """Name the encoding a page declares for itself.

    Whoever could read the declaration as ASCII was not reading UTF-16, and the standard
    takes x-user-defined for windows-1252.
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
        # Not final: a body cut in the middle of a character is still UTF-8.
        codecs.getincrementaldecoder("utf-8")().decode(body)
    except UnicodeDecodeError:
        return False
    return True


def _codec(encoding: str) -> codecs.CodecInfo:
    found = webencodings.lookup(encoding)
    if found is None:
        raise LookupError(f"{encoding!r} is no name of the WHATWG Encoding Standard")
    return found.codec_info


@cache
def _single_byte(encoding: str) -> str:
    """Give the 256 characters of a single-byte encoding.

    Python leaves bytes 80 to 9F undefined where the standard has the C1 controls, and takes
    4 s for 10 MiB of undefined bytes, where a full table takes 0.02 s.
    """
    characters = _codec(encoding).decode(bytes(range(256)), "replace")[0]
    return "".join(
        chr(byte) if character == "\ufffd" and 0x80 <= byte <= 0x9F else character
        for byte, character in enumerate(characters)
    )
