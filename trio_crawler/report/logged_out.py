"""Whether a crawl seems to be logged out: most URLs of a host have become one and the same."""

from __future__ import annotations

import re
from collections import Counter

from trio_crawler.model import Outcome, Page, Redirect
from trio_crawler.page.urls import WEB, origin
from trio_crawler.report.readable import readable
from trio_crawler.report.summary import is_good
from trio_crawler.report.visible import count, visible

_FEWEST = 5
_MAX_TARGETS = 10_000
_IS_LOGIN = re.compile(
    r"(?<![a-z]) (?:user|wp|web)? [-_:]? (?: log[-_]?(?:in|on) | sign[-_]?(?:in|on) ) (?![a-z])"
    r"| /(?:auth|sso|session|sessions|cas)(?![a-z])",
    re.IGNORECASE | re.VERBOSE,
).search
# Each of them has one of these.
_LOGIN_WORDS = ("log", "sign", "auth", "sso", "session", "cas")


class LoggedOut:
    """The redirects of each host by their targets, the copies by their originals, and the rest.

    A target counts without its query: each page has its own `?next=`, and so the page of a login,
    which is not counted, has many URLs. At most 10,000 targets and originals are counted.
    """

    def __init__(self) -> None:
        # By the origin of the URL, and the target or original: how many, and the first of them.
        self._redirects: dict[tuple[str, str], tuple[int, str]] = {}
        self._copies: dict[tuple[str, str], tuple[int, str]] = {}
        self._all_redirects: Counter[str] = Counter()
        self._all: Counter[str] = Counter()
        self._good: Counter[str] = Counter()

    def add(self, outcome: Outcome) -> None:
        """Record an outcome."""
        if not outcome.url.startswith(WEB):
            return
        if isinstance(outcome, Redirect):
            home = origin(outcome.url)
            self._all[home] += 1
            self._all_redirects[home] += 1
            _count(self._redirects, (home, _without_query(outcome.target)), outcome.url)
        elif isinstance(outcome, Page) and is_good(outcome) and not _is_login(outcome.url):
            home = origin(outcome.url)
            self._all[home] += 1
            if outcome.duplicate_of and not outcome.folded_into:
                _count(self._copies, (home, outcome.duplicate_of), outcome.url)
            else:
                self._good[home] += 1

    def lines(self) -> list[str]:
        """Return a line for each host where most URLs lead to one page, but not all do."""
        found = []
        for (home, target), (number, first) in self._redirects.items():
            alone = self._all_redirects[home] == number
            if self._are_most(home, number, 1) and (alone or _is_login(target)):
                found.append((home, number, f"lead to {readable(target)}", first))
        for (home, original), (number, first) in self._copies.items():
            # The original itself is a good page.
            if self._are_most(home, number, 2):
                found.append((home, number, f"are the same page as {readable(original)}", first))
        return [
            f"The crawl seems to be logged out: {count(number)} of {count(self._all[home])} URLs "
            f"of {visible(home)} {what}, such as {readable(first)}"
            for home, number, what, first in sorted(found)
        ]

    def _are_most(self, home: str, number: int, others: int) -> bool:
        most = number >= _FEWEST and 2 * number > self._all[home]
        return most and self._good[home] >= others


def _is_login(url: str) -> bool:
    named = _without_query(url)
    # ▶ The expression takes 6 us, the words together a fifth.
    lower = named.lower()
    words = [word for word in _LOGIN_WORDS if word in lower]
    return bool(words) and _IS_LOGIN(named) is not None


def _without_query(url: str) -> str:
    return url.partition("#")[0].partition("?")[0]


def _count(table: dict[tuple[str, str], tuple[int, str]], key: tuple[str, str], url: str) -> None:
    number, first = table.get(key, (0, url))
    if number or len(table) < _MAX_TARGETS:
        # The shortest, then by the alphabet: of numbered pages this is the first, in any order of
        # the outcomes.
        table[key] = number + 1, min(first, url, key=lambda each: (len(each), each))
