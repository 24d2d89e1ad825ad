"""Determine the media type of a body, and remove the document type declaration of XHTML.

In XML the declaration may declare entities between "[" and "]", which ends it later than the first
">" (XML 1.0, 2.8). In HTML it ends there (13.2.5.53 to 68 of the HTML Standard).
"""

from __future__ import annotations

import re
from functools import lru_cache

from trio_crawler.expressions import lazy

HTML = "text/html"
XHTML = "application/xhtml+xml"
XML = frozenset({"application/xml", "text/xml"})
MARKUP = XML | {HTML, XHTML}

_NAME = r"[!#$%&'*+.^_`|~0-9a-z-]+"
_TYPE = lazy(rf"[\s;,]*(?P<type>{_NAME}/{_NAME})")
_UNKNOWN = frozenset({"unknown/unknown", "application/unknown", "*/*"})
_TEXT_TYPE = lazy(
    r"""
    text/.*
|   application/ (?: json|xml|javascript|ecmascript|x-javascript|x-json|x-ndjson )
|   .*\+ (?: json|xml )
    """,
    re.VERBOSE,
)
# MIME Sniffing Standard 7.1, the patterns of text/html: white space, the beginning of one of these
# tags in any case, and a byte that ends the name.
_LOOKS_LIKE_HTML = lazy(
    rb"""
    (?: \xef\xbb\xbf )? [\t\n\f\r ]*+
    <
    (?: !doctype[ ]html|html|head|script|iframe|h1|div|font|table|a|style|title|br?|body|p|!-- )
    [ >]
    """,
    re.IGNORECASE | re.VERBOSE,
)
_LOOKS_LIKE_XML = lazy(rb"(?:\xef\xbb\xbf)?[\t\n\f\r ]*+<\?xml")
_SNIFFED_BYTES = 1445
_PROLOGUE = 65_536  # characters
# The root element, after the XML declaration, instructions and comments.
_XML_ROOT = lazy(
    r"""
    (?: [\t\n\r ]++
    |   <\? (?s: .*? ) \?>
    |   <!-- (?s: .*? ) -->
    )*+
    < (?P<name> [^\t\n\r />]++ )
    """,
    re.VERBOSE,
)


@lru_cache(maxsize=128)
def declared_type(header: str) -> str:
    """Return the media type that a Content-Type header declares, in lower case.

    The first type counts, and any text after it is ignored. "" means that the type is missing or
    unknown.
    """
    match = _TYPE.match(header.lower())
    return "" if match is None or match["type"] in _UNKNOWN else match["type"]


def sniffed_type(body: bytes) -> str:
    """Return the media type that a body looks like (MIME Sniffing Standard 7.1).

    A UTF-8 byte order mark is skipped. "" means that the body looks neither like HTML nor like
    XML.
    """
    head = body[:_SNIFFED_BYTES]
    if _LOOKS_LIKE_HTML.match(head):
        return HTML
    return "text/xml" if _LOOKS_LIKE_XML.match(head) else ""


def is_text(media: str) -> bool:
    """Whether bodies of this media type are text, and so have a charset."""
    return _TEXT_TYPE.fullmatch(media) is not None


def is_read(media: str) -> bool:
    """Whether a crawl reads bodies of this media type; "" is one that is sniffed."""
    return not media or media in MARKUP or is_text(media)


def is_attachment(header: str) -> bool:
    """Whether a Content-Disposition says that a browser saves the body (RFC 6266, 4.2)."""
    return header.partition(";")[0].strip(" \t").lower() == "attachment"


def has_html_root(text: str) -> bool:
    """Whether the root element of an XML document, without its doctype, is `html`.

    The root must begin within the first 65,536 characters.
    """
    match = _XML_ROOT.match(text, 0, _PROLOGUE)
    return match is not None and match["name"] == "html"


_QUOTED = """ "[^"]*+" | '[^']*+' """
_COMMENT = r"<!-- (?s: .*? ) -->"
_INSTRUCTION = r"<\? (?s: .*? ) \?>"
# In the internal subset a ">" or "]" may be in a comment, an instruction or a quoted value.
_DOCTYPE = lazy(
    rf"""
    (?: [\t\n\r ]++ | {_INSTRUCTION} | {_COMMENT} )*+
    (?P<doctype>
        <!DOCTYPE (?=[\t\n\r ])
        (?: [^"'\[>]++ | {_QUOTED} )*+
        (?: \[
            (?: [^\]<]++
            |   {_COMMENT}
            |   {_INSTRUCTION}
            |   <! (?!--) (?: [^"'>]++ | {_QUOTED} )*+ >
            )*+
            \] [\t\n\r ]*+
        )?+
        >
    )
    """,
    re.VERBOSE,
)

_NOT_BLANK = re.compile("[^\n]").sub


def blank_doctype(text: str) -> str:
    """Return a document of XML with spaces for its document type declaration, lines unchanged.

    The declaration must end within the first 65,536 characters. One that is not well-formed stays
    as it is.
    """
    match = _DOCTYPE.match(text, 0, _PROLOGUE)
    if match is None:
        return text
    return text[: match.start("doctype")] + _NOT_BLANK(" ", match["doctype"]) + text[match.end() :]
