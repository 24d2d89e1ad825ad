"""The shape of a URL, and a regular expression for the URLs of one shape and no other."""

from __future__ import annotations

import re

from trio_crawler.page.urls import is_web
from trio_crawler.policy.traps.patterns import may_have_long_number, url_shape

OTHERS = ""
"""The shape of all URLs that are not counted apart."""

_MAX_SHAPE = 1_000

# What `pattern` writes as "0", if no shorter expression will do.
_LONG = "[0-9A-Fa-f]{16,}"
_UUID = "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
_LONG_ALONE = rf"(?<![0-9A-Za-z%]){_LONG}(?![0-9A-Za-z])"
_found = re.compile(f"{_UUID}|{_LONG_ALONE}").search
_NUMBER = "[0-9]+"
_ANY_NUMBER = f"(?:{_UUID}|{_LONG_ALONE}|{_NUMBER})"
# The rest of a URL without a number and without a query.
_PLAIN = "(?:[^/?%0-9]|%..)*"
_PART = re.compile("(%[0-9A-Fa-f]{2}|0)")
_meaning = re.compile(r"[\\.^$*+?{}\[\]|()]")


def shape_of(url: str) -> str:
    """Return the shape of a URL; of any other text its scheme, and `OTHERS` if that is unknown."""
    if not (is_web(url) and url.isascii()) or url.find("/", 8) < 0:
        scheme, colon, _ = url.partition(":")
        return f"{scheme}:*" if colon and scheme.isalnum() else OTHERS
    found = url_shape(url)
    return found if len(found) <= _MAX_SHAPE else OTHERS


def has_long_number(url: str) -> bool:
    """Whether a URL has a UUID, or a hexadecimal number of 16 digits and more."""
    return may_have_long_number(url) and _found(url) is not None


def exclusion(shape: str, *, long_numbers: bool = False) -> str:
    """Return a regular expression for the URLs of a web shape, and for those of no other.

    With `long_numbers` some of its numbers are UUIDs, or hexadecimal numbers of 16 digits and
    more.
    """
    start = shape.index("/", 8)
    begin, (path, query, names) = f"^{_escaped(shape[:start])}", shape[start:].partition("?")
    if not query and path.endswith("/*") and "0" not in _PART.sub(_without_escape, path):
        return f"{begin}{_escaped(path[:-1])}{_PLAIN}$"
    number = _ANY_NUMBER if long_numbers else _NUMBER
    parts = (number if part == "0" else _escaped(part) for part in _PART.split(path))
    return f"{begin}{''.join(parts)}{_query(names) if query else ''}$"


def _without_escape(match: re.Match[str]) -> str:
    return "0" if match[0] == "0" else ""


def _query(names: str) -> str:
    """Return an expression for a query of these names, in any order and with any values."""
    wanted = [_escaped(name) for name in names.split("&")]
    if len(wanted) == 1:
        (name,) = wanted
        return rf"\?{name}(=[^&]*)?(&{name}(=[^&]*)?)*"
    each = "".join(f"(?=(.*&)?{name}([=&]|$))" for name in wanted)
    one = f"({'|'.join(wanted)})(=[^&]*)?"
    return rf"\?{each}{one}(&{one})*"


def _escaped(text: str) -> str:
    # Not `re.escape`, which also escapes characters that have a meaning only elsewhere.
    return _meaning.sub(r"\\\g<0>", text)
