"""Robots: which origin of a crawl allows what, and which robots.txt must be asked for first."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from trio_crawler.model import Fault, Job, Reason, Response, Validator
from trio_crawler.page.urls import origin
from trio_crawler.policy.robots.parse import MOST_BYTES, MOST_DELAY, parse_rules, product_token
from trio_crawler.policy.robots.rules import ALLOW_ALL, DISALLOW_ALL, Rules

__all__ = [
    "ALLOW_ALL",
    "DISALLOW_ALL",
    "FRESH",
    "MOST_BYTES",
    "MOST_DELAY",
    "MOST_REDIRECTS",
    "Robots",
    "Rules",
    "interpret",
    "named_itself",
    "parse_rules",
    "product_token",
]

MOST_REDIRECTS = 5
"""Redirects on the way to a robots.txt that are followed (RFC 9309, 2.3.1.2)."""

FRESH = 86_400.0
"""Seconds for which a robots.txt is good (RFC 9309, 2.4)."""

_TOO_MANY_REQUESTS = 429
_MOST_SIZE = 3 * 1024 * 1024
# Characters of patterns; nearly all files have fewer.
_LONG = 16 * 1024
_MOST_TIMES = 3


class _Known(NamedTuple):
    rules: Rules
    since: float
    validator: Validator | None


class Robots:
    """Remember what the origins of one crawl allow.

    `token` is the product token the rules were read for. With `obey` false everything is allowed
    and nothing must be asked before. Times are seconds of any one clock. URLs are normalised
    http(s) URLs; an origin is `scheme://authority`.
    """

    def __init__(self, token: str, *, obey: bool = True) -> None:
        self.token = token
        self.obey = obey
        self._known: dict[str, _Known] = {}
        # Of the origins whose files are long: how much they say, the oldest first.
        self._sized: dict[str, int] = {}
        self._size = 0
        # How often a long file had to be forgotten.
        self._forgotten: Counter[str] = Counter()

    def __len__(self) -> int:
        """Count the origins whose rules are known."""
        return len(self._known)

    def __repr__(self) -> str:
        obeying = "" if self.obey else ", obey=False"
        return f"<Robots({self.token!r}{obeying}): {len(self)} origins>"

    def before(self, url: str, now: float, at: str = "") -> str | None:
        """Give the URL of the robots.txt that must be asked for before this URL.

        None when its rules are known and not older than `FRESH`, and for a robots.txt itself. `at`
        is the origin of the URL, if that is at hand.
        """
        if not self.obey:
            return None
        at = at or origin(url)
        known = self._known.get(at)
        if known is not None and now - known.since <= FRESH:
            return None
        file = at + "/robots.txt"
        return None if url == file else file

    def refusal(self, url: str, at: str = "") -> Reason | None:
        """Say why a URL may not be asked for; None if it may, or its rules are not known."""
        if not self.obey:
            return None
        known = self._known.get(at or origin(url))
        return None if known is None or known.rules.allows(url) else Reason.ROBOTS

    def knows(self, origin: str) -> bool:
        """Tell whether the rules of an origin are known, however old they are."""
        return origin in self._known

    def delay(self, url: str) -> float:
        """Give the seconds that the URL's origin wants between requests, 0 for none."""
        known = self._known.get(origin(url)) if self.obey else None
        return 0.0 if known is None else known.rules.delay

    def is_old(self, origin: str, now: float) -> bool:
        """Tell whether the rules of an origin are known, and older than `FRESH`."""
        known = self._known.get(origin)
        return known is not None and now - known.since > FRESH

    def store(
        self, origin: str, rules: Rules, now: float, validator: Validator | None = None
    ) -> None:
        """Keep the rules of an origin, in place of older ones.

        Of long files 3 MiB of patterns are kept, which take 60: then the oldest go, to be asked
        for again. One that had to go three times allows nothing from then on: else many such
        origins would be asked for their files for ever, and for nothing else.
        """
        self._forget(origin)
        if rules.size >= _LONG and self._forgotten[origin] >= _MOST_TIMES:
            rules = Rules({"/": False}, rules.delay, rules.sitemaps)
        self._known[origin] = _Known(rules, now, validator)
        if rules.size >= _LONG:
            self._sized[origin] = rules.size
            self._size += rules.size
        while self._size > _MOST_SIZE and len(self._sized) > 1:
            oldest = next(iter(self._sized))
            self._forgotten[oldest] += 1
            self._forget(oldest)

    def _forget(self, origin: str) -> None:
        self._known.pop(origin, None)
        self._size -= self._sized.pop(origin, 0)

    def renew(self, origin: str, now: float, seconds: float = FRESH) -> None:
        """Keep the old rules for so many more seconds; if they are forgotten they stay so.

        After a 304; or for a while, where the file cannot be had any more (RFC 9309, 2.4).
        """
        known = self._known.get(origin)
        if known is not None:
            self._known[origin] = known._replace(since=now + seconds - FRESH)

    def validator(self, origin: str) -> Validator | None:
        """Give what makes the next request for this origin's robots.txt conditional."""
        known = self._known.get(origin)
        return None if known is None else known.validator


def named_itself(job: Job) -> bool:
    """Tell whether a sitemap was given, or named by the robots.txt that would have to allow it."""
    return job.referrer in (None, origin(job.url) + "/robots.txt")


def interpret(answer: Response | Fault, token: str) -> Rules | None:
    """Read the rules out of what came for a robots.txt (RFC 9309, 2.3.1).

    2xx is parsed; 4xx other than 429 allows everything, as does a redirect too many. None says
    that the file cannot be had now: faults, 429, 5xx, and what no request of ours asks for. For
    the 304 of a conditional request see `Robots.renew`.
    """
    if isinstance(answer, Fault) or answer.status in (304, _TOO_MANY_REQUESTS):
        return None
    if 200 <= answer.status < 300:
        return parse_rules(answer.body, token)
    return ALLOW_ALL if 300 <= answer.status < 500 else None
