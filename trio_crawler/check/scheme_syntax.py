"""Check links that are no requests: the syntax of `mailto:` (RFC 6068), and the schemes."""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches
from functools import cache
from urllib.parse import unquote_to_bytes

# ▶ All other characters are named, since a range beyond ASCII takes 4 ms to compile.
_ATOM = r"""[^\x00-\x20"(),.:;<>@\[\\\]\x7f]++"""
# An addr-spec (RFC 6068, 2), percent-decoded: a dot-atom or a quoted string, and a domain.
_ADDRESS = rf"""
    (?: {_ATOM} (?: \. {_ATOM} )*+ | " (?: [^"\\\x00-\x1f\x7f]++ | \\ [\x20-\x7e] )*+ " )
    @
    (?: {_ATOM} (?: \. {_ATOM} )*+ | \[ [\x21-\x5a\x5e-\x7e]*+ \] )
"""
_STRAY_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})").search
# RFC 3986 allows "/" and "?" in every query, and every mail program reads them.
_FIELD = re.compile(
    r"(?P<name>[\w.~!$'()*+,;:@%/?-]++)=(?P<value>[\w.~!$'()*+,;:@%/?-]*+)"
).fullmatch
_ADDRESS_FIELDS = frozenset({"to", "cc", "bcc"})
_MAX_SHOWN = 80


_MEANT = ("http", "https", "mailto")


def note_of(scheme: str) -> str:
    """Return what is odd about the scheme of a link as a sentence, "" if it is not."""
    if scheme == "file":
        return "a file: link leads to the disk of the reader"
    meant = get_close_matches(scheme, _MEANT, n=1, cutoff=0.75)
    return f"{scheme}: may be meant as {meant[0]}:" if meant and scheme not in _MEANT else ""


def mailto_fault(rest: str) -> str:
    """Return the fault of what follows the `mailto:` of a normalised URL, "" without one.

    It may be without an address (RFC 6068, 2).
    """
    addresses, _, query = rest.partition("?")
    if _STRAY_PERCENT(rest):
        return 'a "%" is not followed by two hexadecimal digits (RFC 6068)'
    if fault := _addresses_fault(addresses):
        return fault
    for field in query.split("&") if query else ():
        found = _FIELD(field)
        if found is None:
            return f"{_shown(field)} is not a header field of the form name=value (RFC 6068)"
        if _decoded(found["name"]).lower() in _ADDRESS_FIELDS and (
            fault := _addresses_fault(found["value"])
        ):
            return fault
    return ""


@cache
def _is_address() -> Callable[[str], object]:
    return re.compile(_ADDRESS, re.VERBOSE).fullmatch


def _addresses_fault(addresses: str) -> str:
    for address in addresses.split(",") if addresses else ():
        if not _is_address()(_decoded(address)):
            return f"{_shown(_decoded(address))} is not an address of e-mail (RFC 6068)"
    return ""


def _decoded(source: str) -> str:
    return unquote_to_bytes(source).decode("utf-8", "replace")


def _shown(text: str) -> str:
    return repr(text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…")
