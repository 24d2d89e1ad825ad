"""Parse the values that have several URLs, or more than a URL.

- `srcset` and `imagesrcset`: HTML Standard, 4.8.4.3.10, "parse a srcset attribute";
- the Refresh header and `<meta http-equiv=refresh>`: the shared declarative refresh steps of the
  HTML Standard, 4.2.5.3;
- the body of a web application manifest (W3C, Web Application Manifest);
- a Link field of a response: `<target>; name=token; name="quoted", <target>` (RFC 8288, 3).

Every expression is possessive and every search goes forward, so the time is linear for any value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from trio_crawler.expressions import lazy
from trio_crawler.link import LinkKind
from trio_crawler.page import urls

_SPACE = "\\t\\n\\f\\r "
# One candidate after the white space and commas before it: a URL, which may contain commas but not
# end in one, and its descriptors, in which a comma in parentheses ends nothing:
#
#   text                        url            descriptors
#   a.png 1x,                   a.png          1x
#   a.png,                      a.png
#   data:image/png;x,AA 2x      data:image…    2x
#   a.png (x, y) 2w,            a.png          (x, y) 2w
_CANDIDATE = lazy(
    rf"""
    [{_SPACE},]*+
    (?P<url> [^{_SPACE}]++ )
    (?: (?<=,) | (?P<descriptors> (?: [^,(]++ | \( [^)]*+ (?: \) | \Z ) )*+ ) (?: , | \Z ) )
    """,
    re.VERBOSE,
)
# A density that is not negative; a width, with or without a height, neither of them zero.
_DESCRIPTORS = lazy(
    rf"""
    (?: (?: [0-9]++ (?: \.[0-9]++ )?+ | \.[0-9]++ ) (?: [eE][+-]?+[0-9]++ )?+ x
    |   0*+[1-9][0-9]*+w (?: [{_SPACE}]++ 0*+[1-9][0-9]*+h )?+
    |   0*+[1-9][0-9]*+h [{_SPACE}]++ 0*+[1-9][0-9]*+w
    )?+
    """,
    re.VERBOSE,
)


def in_srcset(value: str) -> Iterator[str]:
    """Yield the URL of each candidate of a srcset, as it is written there.

    A candidate whose descriptors are not those of the standard is left out, as in a browser.
    """
    at = 0
    while (match := _CANDIDATE.match(value, at)) is not None:
        at = match.end()
        url, descriptors = match.group("url", "descriptors")
        if descriptors is None:
            yield url.rstrip(",")
        elif _DESCRIPTORS.fullmatch(descriptors.strip("\t\n\f\r ")):
            yield url


# The time, and then the URL behind a separator:
#
#   5   5.7   5; x   5, url=x   5 URL = 'x' y   .5;x
_REFRESH = lazy(
    rf"""
    [{_SPACE}]*+
    (?: [0-9]++ | (?=\.) ) [0-9.]*+
    (?: (?= [;,{_SPACE}] ) [{_SPACE}]*+ [;,]?+ [{_SPACE}]*+ (?P<rest> .* ) )?+
    \Z
    """,
    re.DOTALL | re.VERBOSE,
)
_URL = lazy(rf"[uU][rR][lL][{_SPACE}]*+=[{_SPACE}]*+")


def in_refresh(value: str) -> str | None:
    """Return the URL of a refresh as written; "" if it reloads the page, None if it is invalid.

    The URL is everything up to the end of the value, or in quotes up to the next such quote.
    """
    found = _REFRESH.match(value)
    if found is None:
        return None
    rest = found["rest"] or ""
    if (prefix := _URL.match(rest)) is not None:
        rest = rest[prefix.end() :]
    if rest[:1] in ("'", '"'):
        return rest[1:].partition(rest[0])[0]
    return rest


_MAX_BYTES = 1 << 20
_BOM = b"\xef\xbb\xbf"


def in_manifest(body: bytes) -> Iterator[tuple[LinkKind, str]]:
    """Yield the kind and the value of each URL in a manifest.

    These are `start_url`, the `src` of icons and screenshots, and the `url` and icons of
    shortcuts. A member of another type is ignored, as the standard says; a manifest that is not
    JSON, or has more than 1 MiB, has none.
    """
    try:
        found = msgspec.json.decode(body.removeprefix(_BOM)) if len(body) <= _MAX_BYTES else None
    # A document of a million brackets is too deep.
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    if not isinstance(found, dict):
        return
    yield from _of(found, "start_url", LinkKind.LINK)
    for icon in _several(found, "icons"):
        yield from _of(icon, "src", LinkKind.ICON)
    for picture in _several(found, "screenshots"):
        yield from _of(picture, "src", LinkKind.IMAGE)
    for shortcut in _several(found, "shortcuts"):
        yield from _of(shortcut, "url", LinkKind.LINK)
        for icon in _several(shortcut, "icons"):
            yield from _of(icon, "src", LinkKind.ICON)


def _several(member: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = member.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _of(member: dict[str, Any], name: str, kind: LinkKind) -> Iterator[tuple[LinkKind, str]]:
    if isinstance(value := member.get(name), str) and value:
        yield kind, value


_QUOTED = r'" (?P<quoted> (?: [^"\\]++ | \\. )*+ ) "?+'
# One link of a field: a comma ends it, but not between "<" and ">" or in quotes.
_LINKS = lazy(rf"""(?: [^",<]++ | < [^>]*+ >?+ | {_QUOTED} )++""", re.DOTALL | re.VERBOSE)
_TARGET = lazy(r"[ \t]*+<([^>]*+)>")
_PARAMETERS = lazy(
    rf"""
    (?P<name> [^ \t;="]++ ) [ \t]*+
    (?: = [ \t]*+ (?: {_QUOTED} | (?P<token> [^ \t;]*+ ) ) )?+
    """,
    re.DOTALL | re.VERBOSE,
)
_UNQUOTE = lazy(r"\\(.)", re.DOTALL)


class FieldLink(msgspec.Struct, frozen=True):
    """One link of a Link field, as written; "" for a parameter that is missing."""

    target: str
    rel: str
    anchor: str
    title: str

    def is_about(self, url: str) -> bool:
        """Whether the context of the link is the page at `url` itself (RFC 8288, 3.2)."""
        if not self.anchor:
            return True
        try:
            return urls.normalise(self.anchor, url) == url
        except ValueError:
            return False


def in_link_field(field: str) -> Iterator[FieldLink]:
    """Yield the links of one Link field; the first parameter of each name counts."""
    for link in _LINKS.finditer(field):
        if (target := _TARGET.match(link[0])) is not None:
            found = _parameters(link[0][target.end() :])
            parameters = (found.get(name, "") for name in ("rel", "anchor", "title"))
            yield FieldLink(target[1], *parameters)


def _parameters(source: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for match in _PARAMETERS.finditer(source):
        quoted, token = match.group("quoted", "token")
        found.setdefault(match["name"].lower(), _UNQUOTE.sub(r"\1", quoted or "") or token or "")
    return found
