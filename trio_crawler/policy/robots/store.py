"""The robots.txt of one origin: how long its rules are valid, and what each answer means."""

from __future__ import annotations

from collections import Counter

import msgspec
from msgspec.structs import replace

from trio_crawler.model import Answer, Fault, Job, Validator
from trio_crawler.page.urls import origin
from trio_crawler.policy.robots.parse import parse_rules
from trio_crawler.policy.robots.rules import ALLOW_ALL, Rules

MAX_REDIRECTS = 5
"""The most redirects that are followed for one robots.txt (RFC 9309, 2.3.1.2)."""

FRESH = 86_400.0
"""Seconds for which a robots.txt is valid (RFC 9309, 2.4)."""

PATH = "/robots.txt"

_TOO_MANY_REQUESTS = 429
_MAX_SIZE = 3 * 1024 * 1024
# Characters of patterns; nearly all files have fewer.
_LONG = 16 * 1024
_MAX_TIMES = 3


class KnownRules(msgspec.Struct, frozen=True, gc=False):
    """The rules of one origin, the time since which they are valid, and the file's validator.

    The time is in seconds, of any clock that does not change.
    """

    rules: Rules
    since: float
    validator: Validator | None = None

    def is_fresh(self, now: float) -> bool:
        """Whether the rules are still valid, so that the file need not be fetched again."""
        return now - self.since <= FRESH

    def renewed(self, now: float, seconds: float = FRESH) -> KnownRules:
        """Return the rules, valid for `seconds` from `now` on.

        For use after a 304, and while the file cannot be fetched (RFC 9309, 2.4).
        """
        return replace(self, since=now + seconds - FRESH)


class LongFiles:
    """The origins with a long robots.txt; the rules of the oldest are dropped to save memory.

    The patterns of long files are kept up to 3 MiB, which take 60 MiB of memory. A file that was
    dropped is fetched again before the next request to its origin.
    """

    def __init__(self) -> None:
        # The size of each file, the oldest first.
        self._sizes: dict[str, int] = {}
        self._size = 0
        self._times: Counter[str] = Counter()

    def accepted(self, origin: str, rules: Rules) -> Rules:
        """Return the rules to keep for an origin.

        After its long file was dropped three times an origin allows nothing. Otherwise, with many
        such origins, their files would be fetched for ever, and nothing else.
        """
        self.forget(origin)
        if rules.size >= _LONG and self._times[origin] >= _MAX_TIMES:
            return Rules({"/": False}, rules.delay, rules.sitemaps)
        return rules

    def add(self, origin: str, rules: Rules) -> list[str]:
        """Record the rules of an origin; return the origins that must drop theirs."""
        if rules.size < _LONG:
            return []
        self._sizes[origin] = rules.size
        self._size += rules.size
        forgotten = []
        while self._size > _MAX_SIZE and len(self._sizes) > 1:
            oldest = next(iter(self._sizes))
            self._times[oldest] += 1
            self.forget(oldest)
            forgotten.append(oldest)
        return forgotten

    def forget(self, origin: str) -> None:
        """Record that the rules of an origin were dropped."""
        self._size -= self._sizes.pop(origin, 0)


def is_self_named(job: Job) -> bool:
    """Whether a sitemap needs no look at robots.txt: it was given, or robots.txt names it."""
    return job.referrer in (None, origin(job.url) + PATH)


def interpret(answer: Answer, token: str) -> Rules | None:
    """Return the rules that follow from an answer for a robots.txt (RFC 9309, 2.3.1).

    2xx is parsed; 4xx other than 429 allows everything, as does a redirect too many. None means
    that the file is not available now: a fault, 429, 5xx, 1xx and 304. For the 304 of a
    conditional request use `KnownRules.renewed` instead.
    """
    if isinstance(answer, Fault) or answer.status in (304, _TOO_MANY_REQUESTS):
        return None
    if 200 <= answer.status < 300:
        return parse_rules(answer.body, token)
    return ALLOW_ALL if 300 <= answer.status < 500 else None


def is_lasting(answer: Answer) -> bool:
    """Whether a later run can use an answer for a robots.txt, so that it need not ask again."""
    if isinstance(answer, Fault) or answer.status == _TOO_MANY_REQUESTS:
        return False
    return 200 <= answer.status < 300 or 400 <= answer.status < 500
