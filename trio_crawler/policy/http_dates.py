"""Dates in header fields, parsed as leniently as browsers parse them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_DELIMITERS = re.compile(r"[\t -/;-@\[-`{-~]+")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_KINDS = {
    "time": re.compile(r"([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?![0-9])"),
    "day": re.compile(r"([0-9]{1,2})(?![0-9])"),
    "month": re.compile(rf"({'|'.join(_MONTHS)})"),
    "year": re.compile(r"([0-9]{2,4})(?![0-9])"),
}


def parse_http_date(text: str) -> datetime | None:
    """Return a date parsed by the rules for cookies (RFC 6265, 5.1.1), as UTC; None if invalid.

    These rules accept all three formats of HTTP (RFC 9110, 5.6.7), and more.
    """
    found = _parts(text.lower())
    if len(found) < len(_KINDS):
        return None
    (month,), (day,), (digits,) = found["month"], found["day"], found["year"]
    hour, minute, second = map(int, found["time"])
    year, number = _in_full(int(digits)), _MONTHS.index(month) + 1
    try:
        date = datetime(year, number, int(day), hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return date if year > 1600 else None


def _parts(text: str) -> dict[str, tuple[str, ...]]:
    """Return the parts of a date; each word becomes the first kind that fits and is missing."""
    found: dict[str, tuple[str, ...]] = {}
    for word in _DELIMITERS.split(text):
        for kind, pattern in _KINDS.items():
            if kind not in found and (match := pattern.match(word)):
                found[kind] = match.groups()
                break
    return found


def _in_full(year: int) -> int:
    if year < 70:
        return year + 2000
    return year + 1900 if year < 100 else year
