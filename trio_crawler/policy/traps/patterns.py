"""Patterns: what the URLs that one program makes have in common, and what its pages say.

A calendar has endless URLs of one pattern, and its pages say the same but for the date. Both
sides are folded here: the URL to its pattern, the page to a fingerprint.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from string import hexdigits

# UUIDs, long hexadecimal numbers, numbers; the digits of a percent-encoded character are none.
_TOLD_APART = re.compile(
    "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
    "|(?<![0-9A-Za-z%])[0-9A-Fa-f]{16,}(?![0-9A-Za-z])"
    "|(?<!%)(?<!%[0-9A-Fa-f])[0-9]+"
)
# A year with a month, a parameter that is called like one, or a token that nobody chose.
_MADE = re.compile(
    "(?<![0-9])(?:1[5-9]|2[0-9])[0-9]{2}[-/_.]?(?:0?[1-9]|1[0-2])"
    "(?:[-/_.]?(?:0?[1-9]|[12][0-9]|3[01]))?(?![0-9])"
    "|[?&](?:year|month|week|day|date|y(?==[0-9]{4}(?![0-9])))[a-z_-]*="
    "|(?<![0-9A-Za-z%])[0-9A-Fa-f]{8}(?:[0-9A-Fa-f]{8,}|(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})"
    "(?![0-9A-Za-z])",
    re.IGNORECASE,
).search
_MAY_BE_ONE_OF_MANY = re.compile("[0-9?]").search
_ZERO = ord("0")
_DIGITS_AS_ZERO = bytes(_ZERO if 48 <= byte <= 57 else byte for byte in range(256))
_HEX_AS_ZERO = bytes(_ZERO if chr(byte) in hexdigits else byte for byte in range(256))
_VALUE = re.compile("=[^&]*")
_LONG_NUMBER = "0" * 8  # which every UUID begins with, and every long hexadecimal number

_DIGITS = b"0123456789\0"  # and the other half of the ASCII characters in UTF-16
_WORD = frozenset(b"0123456789_<>abcdefghijklmnopqrstuvwxyz\0") | frozenset(range(128, 256))
_WORDS = bytes(byte if byte in _WORD else 32 for byte in bytes(range(256)).lower())
_SAYING_NOTHING = frozenset(
    b"jan feb mar apr may jun jul aug sep sept oct nov dec january february march april june"
    b" july august september october november december mon tue tues wed thu thur thurs fri sat"
    b" sun mo tu we th fr sa su monday tuesday wednesday thursday friday saturday sunday st nd"
    b" rd am pm nbsp".split()
)
_LONG = 16
# A picture can be all that tells two pages apart. With a query it may be drawn by a program.
_SHOWN = re.compile(rb"""src=["']?([^"'?<> ]++)""").findall

_END = 131_072
_EVERY, _ENOUGH = 4, 4_096


def pattern(url: str) -> str | None:
    """Fold a normalised http(s) URL to what it shares with others; None if that is nothing.

    Every number, UUID and long hexadecimal number of the path becomes "0"; of the query only
    the names stay, sorted. A URL with no query and nothing to fold has no pattern.
    """
    start = url.index("/", 8)
    if not _MAY_BE_ONE_OF_MANY(url, start):
        return None
    path, mark, query = url[start:].partition("?")
    folded, times = _folded(path)
    if mark:
        return f"{url[:start]}{folded}?{_names(query)}"
    return url[:start] + folded if times else None


def key_of(url: str) -> int | None:
    """Return the hash of the pattern of a normalised http(s) URL; None if it has none."""
    found = pattern(url)
    return None if found is None else hash(found)


def _keys(urls: Iterable[str]) -> Counter[int]:
    """Count the keys of URLs."""
    return Counter(key for key in map(key_of, urls) if key is not None)


def keys_of_one_host(urls: Iterable[str]) -> Counter[int]:
    """Count the keys of the URLs of one host: a tenth of the time that one by one takes."""
    plain: list[str] = []
    others: list[str] = []
    for url in urls:
        (others if "?" in url or "%" in url else plain).append(url)
    found = _keys(others)
    # Paths that differ only in their digits have one pattern, unless a digit is part of an escape.
    forms = "\n".join(plain).encode().translate(_DIGITS_AS_ZERO).split(b"\n") if plain else []
    examples = dict(zip(forms, plain, strict=True))
    for form, count in Counter(forms).items():
        if (key := key_of(examples[form])) is not None:
            found[key] += count
    return found


def _folded(path: str) -> tuple[str, int]:
    """Fold a path; the second is 0 if there was nothing to fold."""
    written = path.encode()
    if "%" in path or _LONG_NUMBER in written.translate(_HEX_AS_ZERO).decode():
        return _TOLD_APART.subn("0", path)
    # What is left are numbers of up to seven digits: a third of the time of the expression.
    folded = written.translate(_DIGITS_AS_ZERO).decode()
    folded = folded.replace("0000", "0").replace("00", "0").replace("00", "0")
    return folded, "0" in folded


def _names(query: str) -> str:
    if "&" not in query:
        return query.partition("=")[0]
    return _sorted(_VALUE.sub("", query))


@lru_cache(maxsize=256)
def _sorted(names: str) -> str:
    return "&".join(sorted(set(names.split("&"))))


def is_made(url: str) -> bool:
    """Tell whether a normalised http(s) URL holds a date, or a token, as programs make them."""
    return _MADE(url, url.index("/", 8)) is not None


def fingerprint(url: str, body: bytes) -> int:
    """Give a number for what a page says: another one for another page, the same for a day later.

    It is that of the set of the words outside its tags, in lower case and without digits,
    months, days of the week, what is in the URL, and random words (16 letters and digits or
    more); and of the files it shows. It holds in one process only. Of a body of more than 256 KiB
    the middle is passed over; 30 KB take some 0.4 ms.
    """
    if len(body) > 2 * _END:
        body = body[:_END] + body[-_END:]
    # A page may begin with text: it counts as that behind a tag.
    pieces = set((b">" + body).translate(_WORDS).split(b"<"))
    text = b" ".join([piece.partition(b">")[2] for piece in pieces])
    words = [word for word in set(text.split()) if len(word) < _LONG or not _is_random(word)]
    told = _without_digits(b" ".join(words)) - _SAYING_NOTHING
    in_url = _without_digits(url.encode().translate(_WORDS))
    return hash(frozenset(told - in_url | set(_SHOWN(body))))


def _is_random(word: bytes) -> bool:
    # Both know only ASCII: a sentence in Chinese, which is one word here, is no random word.
    return word.isalnum() and not word.isalpha()


def _without_digits(text: bytes) -> set[bytes]:
    return set(text.translate(None, _DIGITS).split())


class PatternYield:
    """Tell for how many pages in a row one pattern has brought nothing new.

    Every fourth page is looked at, and stands for four. A pattern that has brought 4,096
    different pages is no longer looked at: it is worth its budget.
    """

    __slots__ = ("_pages", "_prints", "barren")

    def __init__(self) -> None:
        self.barren = 0.0
        self._pages = 0
        self._prints: set[int] | None = set()

    def add(self, url: str, body: bytes, weight: float = 1.0) -> None:
        """Note one more page, which counts for `weight` if it says nothing new."""
        self._pages += 1
        if self._prints is not None and self._pages % _EVERY == 1:
            self._look(fingerprint(url, body), self._prints, weight)

    def _look(self, found: int, prints: set[int], weight: float) -> None:
        self.barren = self.barren + _EVERY * weight if found in prints else 0.0
        prints.add(found)
        if len(prints) >= _ENOUGH:
            self._prints = None
