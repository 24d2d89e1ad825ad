"""Decode character references (HTML Standard, 13.2.5.72 to 80).

`html.unescape` is not used: it raises ValueError for a number of 5,000 digits, and it finds a
copyright sign in the attribute `?a=1&copy=2`, where the standard finds none.
"""

from __future__ import annotations

import re
from html.entities import html5

# The alternatives after "&":
#
#   #xa9;    hexadecimal               the semicolon may be missing
#   #169;    decimal                   the same
#   copy;    name, semicolon, equals   in an attribute, a name without its semicolon is no
#                                      reference if "=" follows
_REFERENCE = re.compile(
    r"""
    &
    (?: \# (?: [xX] (?P<hexadecimal> [0-9a-fA-F]++ ) | (?P<decimal> [0-9]++ ) ) ;?
    |   (?P<name> [A-Za-z][A-Za-z0-9]*+ ) (?P<semicolon> ;? ) (?P<equals> =? )
    )
    """,
    re.VERBOSE,
)
_MAX_BARE_NAME = max(len(name) for name in html5 if not name.endswith(";"))
_MAX_DIGITS = 8  # without leading zeros; longer numbers are beyond Unicode in both bases


def in_attribute(source: str) -> str:
    """Return the value of an attribute with its references decoded."""
    if "&" in source:
        if source.count("&") == source.count("&amp;"):
            source = source.replace("&amp;", "&")
        else:
            source = _REFERENCE.sub(_decode_in_attribute, source)
    return source.replace("\0", "\ufffd")


def in_text(source: str) -> str:
    """Return text with its references decoded."""
    if "&" in source:
        source = _REFERENCE.sub(_decode_in_text, source)
    return source.replace("\0", "\ufffd")


def _decode_in_attribute(match: re.Match[str]) -> str:
    name, semicolon, equals = match.group("name", "semicolon", "equals")
    if name is None:
        return _html_character(match["hexadecimal"], match["decimal"])
    # A name without its semicolon, before "=" or a letter, is part of a query.
    found = None if equals and not semicolon else html5.get(name + semicolon)
    return match[0] if found is None else found + equals


def _decode_in_text(match: re.Match[str]) -> str:
    name, semicolon, equals = match.group("name", "semicolon", "equals")
    if name is None:
        return _html_character(match["hexadecimal"], match["decimal"])
    if semicolon and (whole := html5.get(name + ";")) is not None:
        return whole + equals
    for end in range(min(len(name), _MAX_BARE_NAME), 1, -1):
        if (prefix := html5.get(name[:end])) is not None:
            return prefix + match[0][1 + end :]
    return match[0]


def character(hexadecimal: str | None, decimal: str | None) -> str:
    """Return the character with a hexadecimal or decimal number; U+FFFD for an invalid number."""
    digits = (hexadecimal or decimal or "").lstrip("0")
    if len(digits) > _MAX_DIGITS:
        return "\ufffd"
    number = int(digits or "0", 16 if hexadecimal else 10)
    if number == 0 or 0xD800 <= number <= 0xDFFF or number > 0x10FFFF:
        return "\ufffd"
    return chr(number)


def _html_character(hexadecimal: str | None, decimal: str | None) -> str:
    found = character(hexadecimal, decimal)
    if "\x80" <= found <= "\x9f":
        # Old pages use the numbers of windows-1252.
        return found.encode("latin-1").decode("cp1252", "ignore") or found
    return found
