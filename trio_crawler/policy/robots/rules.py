"""Robots rules: whether the patterns of one robots.txt allow a URL (RFC 9309, 2.2.2 and 2.2.3).

Written by hand because of what Protego 0.7 costs, measured: 40 s to parse a file of 100 KB (half
of it agents, half rules), 200 ms a URL for 500 KiB of short wildcards, 138 of Google's 152 cases
right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

MAX_STEPS = 6_000_000
"""Characters compared at most for one URL, reckoned for the worst text there is: some 3 ms."""

_FEW = 64
"""Wildcard rules up to which trying each costs less than finding those that can match."""

_ATTEMPT = 150
_SEARCH = 400
"""What it costs to try a rule, and to search for a piece of it, before a character is compared."""

# A URL has "*", "$" and "'" of its own escaped (RFC 9309, 2.2.3; the last because the WHATWG
# standard escapes it in queries, whatever the page wrote).
_PLAIN = re.compile(r"[\w\-.~:/?#\[\]@!&()+,;=]*+", re.ASCII).fullmatch
_ODD = re.compile(
    r"%([0-9A-Fa-f]{2})|(?:[^\w\-.~:/?#\[\]@!&()+,;=%]|%(?![0-9A-Fa-f]{2}))++", re.ASCII
)
_UNRESERVED = re.compile(r"[\w\-.~]", re.ASCII).fullmatch
_STARS = re.compile(r"\*+")


class _Wild(NamedTuple):
    """A pattern with stars inside: its pieces, and whether the last must end the path.

    A higher `rank` wins. `least` is the length of what matches at least, `longest` that of the
    longest piece.
    """

    rank: int
    least: int
    longest: int
    head: str
    middle: tuple[str, ...]
    tail: str
    ends: bool

    def can_fit(self, path: str) -> bool:
        return self.least <= len(path) and path.startswith(self.head)

    def steps(self, path: str) -> int:
        """Reckon what `fits` costs at the worst; `str.find` is quadratic on short texts."""
        return _SEARCH * (len(self.middle) + 1) + len(path) * self.longest

    def fits(self, path: str) -> bool:
        """Tell whether a path that can fit does."""
        at = len(self.head)
        for piece in self.middle:
            found = path.find(piece, at)
            if found < 0:
                return False
            at = found + len(piece)
        return path.endswith(self.tail, at) if self.ends else path.find(self.tail, at) >= 0


class Rules:
    """Hold what one robots.txt says to one agent: patterns, and seconds between requests.

    `patterns` says of each pattern as written whether it allows. `delay` is in seconds, 0 for
    none; `sitemaps` are as written; `size` counts the characters of all patterns. Does not change,
    and may be shared between threads.
    """

    __slots__ = (
        "_by_key",
        "_exact",
        "_lengths",
        "_prefixes",
        "_wild",
        "delay",
        "sitemaps",
        "size",
    )

    def __init__(
        self,
        patterns: Mapping[str, bool],
        delay: float = 0.0,
        sitemaps: tuple[str, ...] = (),
    ) -> None:
        self.delay = delay
        self.sitemaps = sitemaps
        self.size = sum(map(len, patterns))
        self._exact: dict[str, int] = {}
        self._prefixes: dict[str, int] = {}
        wild: list[_Wild] = []
        for pattern, allows in patterns.items():
            self._sort_in(pattern, allows, wild)
        wild.sort(reverse=True)
        self._wild = tuple(wild)
        self._lengths = tuple(sorted({len(prefix) for prefix in self._prefixes}))
        self._by_key = _by_key(wild) if len(wild) > _FEW else {}

    def __repr__(self) -> str:
        patterns = len(self._exact) + len(self._prefixes) + len(self._wild)
        sitemaps = len(self.sitemaps)
        return f"<Rules: {patterns} patterns, delay {self.delay:g} s, {sitemaps} sitemaps>"

    def allows(self, url: str) -> bool:
        """Decide whether a normalised http(s) URL may be asked for.

        The longest pattern that matches decides, of two equally long ones the allowing one;
        with none all is allowed, as `/robots.txt` always is. A file whose wildcards would need
        more than `MAX_STEPS` for a URL disallows it.
        """
        if not (self._lengths or self._wild or self._exact):
            return True
        path = _path(url)
        if path == "/robots.txt":
            return True
        best = max(self._exact.get(path, 1), self._by_prefix(path))
        return self._by_wildcard(path, best) % 2 == 1

    def _sort_in(self, pattern: str, allows: bool, wild: list[_Wild]) -> None:
        ends = pattern.endswith("$")
        body = pattern[: len(pattern) - ends]
        head, *others = pieces = [spell(piece) for piece in _STARS.sub("*", body).split("*")]
        least = sum(map(len, pieces))
        rank = 2 * (least + body.count("*") + ends) + allows
        if ends and not others:
            self._exact[head] = max(rank, self._exact.get(head, 0))
        elif not any(others):
            # A star at the end adds nothing but its length, with or without "$".
            self._prefixes[head] = max(rank, self._prefixes.get(head, 0))
        else:
            *middle, tail = others
            longest = max(map(len, pieces))
            wild.append(_Wild(rank, least, longest, head, tuple(middle), tail, ends))

    def _by_prefix(self, path: str) -> int:
        best, whole = 1, len(path)
        for length in self._lengths:
            if length > whole:
                break
            best = max(best, self._prefixes.get(path[:length], 0))
        return best

    def _by_wildcard(self, path: str, best: int) -> int:
        """Give the rank of the best rule, 0 (which disallows) when the steps run out."""
        left = MAX_STEPS
        for rules in self._candidates(path):
            for rule in rules:
                if rule.rank <= best:
                    break
                left -= _ATTEMPT
                if rule.can_fit(path):
                    left -= rule.steps(path)
                    if left < 0:
                        return 0
                    if rule.fits(path):
                        best = rule.rank
        return best

    def _candidates(self, path: str) -> Iterable[Sequence[_Wild]]:
        """Give the wildcard rules that can match, in lists with the highest ranks first."""
        if not self._by_key:
            return (self._wild,)
        found: list[Sequence[_Wild]] = []
        for length, rules in self._by_key.items():
            parts = {path[at : at + length] for at in range(len(path) - length + 1)}
            found += [rules[key] for key in rules.keys() & parts]
        return found


def spell(text: str) -> str:
    """Spell a path for comparison (RFC 9309, 2.2.2): unreserved as such, all odd escaped."""
    return text if _PLAIN(text) else _ODD.sub(_spelled, text)


def _spelled(odd: re.Match[str]) -> str:
    if odd[1] is None:
        return "%" + odd[0].encode().hex("%").upper()
    character = chr(int(odd[1], 16))
    return character if _UNRESERVED(character) else odd[0].upper()


def _path(url: str) -> str:
    """Give path and query, spelled for comparison; "/" where there is none."""
    start = url.find("/", url.find("//") + 2)
    return spell(url[start:]) if start >= 0 else "/"


def _by_key(wild: Iterable[_Wild]) -> dict[int, dict[str, list[_Wild]]]:
    """Sort rules by the end of their longest piece, which is in every path that matches.

    The lengths of the keys are powers of 2 up to 16, so that a path has few parts to look up.
    """
    sorted_in: dict[int, dict[str, list[_Wild]]] = {}
    for rule in wild:
        longest = max((rule.head, *rule.middle, rule.tail), key=len)
        length = min(1 << len(longest).bit_length() - 1, 16)
        sorted_in.setdefault(length, {}).setdefault(longest[-length:], []).append(rule)
    return sorted_in


ALLOW_ALL = Rules({})
"""What is said by a file that is empty, or is not there."""
