"""Parse Link fields of a response (RFC 8288, 3): `<target>; name=token; name="quoted", <target>`.

Every expression is possessive and every search goes forward, so the time is linear for every
field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from trio_crawler.page import urls

_QUOTED = r'" (?P<quoted> (?: [^"\\]++ | \\. )*+ ) "?+'
# One link of a field: a comma ends it, but not between "<" and ">" or in quotes.
_LINKS = re.compile(
    rf"""(?: [^",<]++ | < [^>]*+ >?+ | {_QUOTED} )++""", re.DOTALL | re.VERBOSE
).finditer
_TARGET = re.compile(r"[ \t]*+<([^>]*+)>").match
_PARAMETERS = re.compile(
    rf"""
    (?P<name> [^ \t;="]++ ) [ \t]*+
    (?: = [ \t]*+ (?: {_QUOTED} | (?P<token> [^ \t;]*+ ) ) )?+
    """,
    re.DOTALL | re.VERBOSE,
).finditer
_UNQUOTE = re.compile(r"\\(.)", re.DOTALL).sub


class FieldLink(NamedTuple):
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


def links(field: str) -> Iterator[FieldLink]:
    """Yield the links of one Link field; the first parameter of each name counts."""
    for link in _LINKS(field):
        if (target := _TARGET(link[0])) is not None:
            found = _parameters(link[0][target.end() :])
            parameters = (found.get(name, "") for name in ("rel", "anchor", "title"))
            yield FieldLink(target[1], *parameters)


def _parameters(source: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for match in _PARAMETERS(source):
        quoted, token = match.group("quoted", "token")
        found.setdefault(match["name"].lower(), _UNQUOTE(r"\1", quoted or "") or token or "")
    return found
