"""The robots.txt of one origin: how long its rules hold, and what an answer for it means."""

from __future__ import annotations

from collections import Counter

import msgspec
from msgspec.structs import replace

from trio_crawler.model import Answer, Fault, Job, Validator
from trio_crawler.page.urls import origin
from trio_crawler.policy.robots.parse import parse_rules
from trio_crawler.policy.robots.rules import ALLOW_ALL, Rules

MAX_REDIRECTS = 5
"""Redirects on the way to a robots.txt that are followed (RFC 9309, 2.3.1.2)."""

FRESH = 86_400.0
"""Seconds for which a robots.txt is good (RFC 9309, 2.4)."""

PATH = "/robots.txt"

_TOO_MANY_REQUESTS = 429
_MAX_SIZE = 3 * 1024 * 1024
# Characters of patterns; nearly all files have fewer.
_LONG = 16 * 1024
_MAX_TIMES = 3


class KnownRules(msgspec.Struct, frozen=True, gc=False):
    """The rules of one origin, the time since which they hold, and the file's validator.

    The time is in seconds of any one clock.
    """

    rules: Rules
    since: float
    validator: Validator | None = None

    def is_fresh(self, now: float) -> bool:
        """Whether the file need not be fetched again."""
        return now - self.since <= FRESH

    def renewed(self, now: float, seconds: float = FRESH) -> KnownRules:
        """Return the rules as they hold for so many more seconds.

        After a 304; or for a while, while the file cannot be fetched (RFC 9309, 2.4).
        """
        return replace(self, since=now + seconds - FRESH)


class LongFiles:
    """The origins whose robots.txt are long, and which of them are to be forgotten.

    Of long files 3 MiB of patterns are kept, which take 60 MiB: then the oldest go, and are
    fetched again when their origin has its turn.
    """

    def __init__(self) -> None:
        # How long each file is, the oldest first.
        self._sizes: dict[str, int] = {}
        self._size = 0
        self._times: Counter[str] = Counter()

    def accepted(self, origin: str, rules: Rules) -> Rules:
        """Return the rules to keep for an origin.

        An origin whose long file was forgotten three times allows nothing from then on: many such
        origins would have their files fetched for ever, and nothing else.
        """
        self.forget(origin)
        if rules.size >= _LONG and self._times[origin] >= _MAX_TIMES:
            return Rules({"/": False}, rules.delay, rules.sitemaps)
        return rules

    def add(self, origin: str, rules: Rules) -> list[str]:
        """Record the rules that an origin keeps; return the origins to forget the rules of."""
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
        """Record that the rules of an origin are kept no longer."""
        self._size -= self._sizes.pop(origin, 0)


def is_self_named(job: Job) -> bool:
    """Whether a sitemap was given, or named by the robots.txt that would have to allow it."""
    return job.referrer in (None, origin(job.url) + PATH)


def interpret(answer: Answer, token: str) -> Rules | None:
    """Return the rules that an answer for a robots.txt means (RFC 9309, 2.3.1).

    2xx is parsed; 4xx other than 429 allows everything, as does one redirect too many. None means
    that the file is not available now: faults, 429, 5xx, and statuses that no request of ours asks
    for. For the 304 of a conditional request see `KnownRules.renewed`.
    """
    if isinstance(answer, Fault) or answer.status in (304, _TOO_MANY_REQUESTS):
        return None
    if 200 <= answer.status < 300:
        return parse_rules(answer.body, token)
    return ALLOW_ALL if 300 <= answer.status < 500 else None


def is_lasting(answer: Answer) -> bool:
    """Whether an answer for a robots.txt need not be asked for again in a later run."""
    if isinstance(answer, Fault) or answer.status == _TOO_MANY_REQUESTS:
        return False
    return 200 <= answer.status < 300 or 400 <= answer.status < 500
