"""What kind of thing a body is: the media type, by its header or by its first bytes."""

from __future__ import annotations

import re

HTML = "text/html"
XHTML = "application/xhtml+xml"
XML = frozenset({"application/xml", "text/xml"})

_TYPE = re.compile(r"[\s;,]*([!#$%&'*+.^_`|~0-9a-z-]+/[!#$%&'*+.^_`|~0-9a-z-]+)")
_UNKNOWN = frozenset({"unknown/unknown", "application/unknown", "*/*"})
_TEXTUAL = re.compile(
    r"text/.*|application/(?:json|xml|javascript|ecmascript|x-javascript|x-json|x-ndjson)"
    r"|.*\+(?:json|xml)"
)
# MIME Sniffing Standard 7.1, the patterns of text/html: white space, one of these without
# regard to case, then a byte that ends a tag.
_LOOKS_LIKE_HTML = re.compile(
    rb"(?:\xef\xbb\xbf)?[\t\n\f\r ]*+<(?:!doctype html|html|head|script|iframe|h1|div|font|table"
    rb"|a|style|title|br?|body|p|!--)[ >]",
    re.IGNORECASE,
)
_LOOKS_LIKE_XML = re.compile(rb"(?:\xef\xbb\xbf)?[\t\n\f\r ]*+<\?xml")
_SNIFFED_BYTES = 1445
_PROLOGUE = 65_536  # characters
_XML_ROOT = re.compile(
    r"(?:[\t\n\r ]++|<\?(?s:.*?)\?>|<!--(?s:.*?)-->|<!DOCTYPE[^>\[]*+(?:\[[^\]]*+\])?+[^>]*+>)*+"
    r"<([^\t\n\r />]++)"
)


def media_type(header: str, body: bytes) -> str:
    """Give the media type of a body, lower case and without parameters.

    The first type in the Content-Type header counts, however sloppy the rest is. A missing
    or unknown type is sniffed (MIME Sniffing Standard 7.1; a UTF-8 byte order mark is passed
    over); "" means that it looks neither like HTML nor like XML.
    """
    match = _TYPE.match(header.lower())
    if match is not None and match[1] not in _UNKNOWN:
        return match[1]
    head = body[:_SNIFFED_BYTES]
    if _LOOKS_LIKE_HTML.match(head):
        return HTML
    return "text/xml" if _LOOKS_LIKE_XML.match(head) else ""


def textual(media: str) -> bool:
    """Tell whether bodies of this type are text, so that asking for a charset makes sense."""
    return _TEXTUAL.fullmatch(media) is not None


def has_html_root(text: str) -> bool:
    """Tell whether the root element of an XML document is `html`; it must come soon."""
    match = _XML_ROOT.match(text, 0, _PROLOGUE)
    return match is not None and match[1] == "html"
