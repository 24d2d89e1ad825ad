"""Character references, by the HTML Standard (13.2.5.72 and on).

`html.unescape` is not used: it raises ValueError for a number of 5,000 digits, and it does not
know that in an attribute `?a=1&copy=2` holds no copyright sign.
"""

from __future__ import annotations

import re
from html.entities import html5

_REFERENCE = re.compile(
    r"&(?:#(?:[xX]([0-9a-fA-F]++)|([0-9]++));?|([A-Za-z][A-Za-z0-9]*+)(;?)(=?))"
)
_LONGEST_BARE = max(len(name) for name in html5 if not name.endswith(";"))
_DIGITS = 8  # more significant ones are beyond Unicode, in both bases


def in_attribute(source: str) -> str:
    """Decode the references in an attribute's value."""
    if "&" not in source:
        return _clean(source)
    if source.count("&") == source.count("&amp;"):
        return _clean(source.replace("&amp;", "&"))
    return _clean(_REFERENCE.sub(_attribute, source))


def in_text(source: str) -> str:
    """Decode the references in text."""
    return _clean(_REFERENCE.sub(_text, source) if "&" in source else source)


def _clean(text: str) -> str:
    return text.replace("\0", "\ufffd") if "\0" in text else text


def _attribute(match: re.Match[str]) -> str:
    hexadecimal, decimal, name, semicolon, equals = match.groups()
    if name is None:
        return _number(hexadecimal, decimal)
    # A name without its semicolon, before "=" or a letter, is taken for part of a query.
    found = None if equals and not semicolon else html5.get(name + semicolon)
    return match[0] if found is None else found + equals


def _text(match: re.Match[str]) -> str:
    hexadecimal, decimal, name, semicolon, equals = match.groups()
    if name is None:
        return _number(hexadecimal, decimal)
    if semicolon and (whole := html5.get(name + ";")) is not None:
        return whole + equals
    for end in range(min(len(name), _LONGEST_BARE), 1, -1):
        if (prefix := html5.get(name[:end])) is not None:
            return prefix + match[0][1 + end :]
    return match[0]


def _number(hexadecimal: str | None, decimal: str | None) -> str:
    digits = (hexadecimal or decimal or "").lstrip("0")
    if len(digits) > _DIGITS:
        return "\ufffd"
    number = int(digits or "0", 16 if hexadecimal else 10)
    if number == 0 or 0xD800 <= number <= 0xDFFF or number > 0x10FFFF:
        return "\ufffd"
    if 0x80 <= number <= 0x9F:
        # Old pages number the characters of windows-1252.
        return bytes([number]).decode("cp1252", "ignore") or chr(number)
    return chr(number)
