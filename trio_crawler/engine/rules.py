"""Admission: which URLs become part of a crawl, and whether it takes any more."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from trio_crawler.engine.counters import Tally
from trio_crawler.model import Job, Reason
from trio_crawler.page.urls import normalise, web, without_userinfo
from trio_crawler.policy.limits import Limits
from trio_crawler.policy.robots.store import Robots
from trio_crawler.policy.scope import Admits
from trio_crawler.policy.traps.watch import Traps, Watch


class Admission:
    """Judge URLs by everything that was asked for: scope, limits, robots.txt and traps.

    What a `lasting` frontier keeps is admitted also when the crawl takes no more: it will wait.
    """

    def __init__(
        self,
        scope: Admits,
        limits: Limits,
        robots: Robots,
        watch: Watch | None,
        tally: Tally,
        *,
        lasting: bool = False,
    ) -> None:
        self._lasting = lasting
        self.stopped: Reason | None = None
        self._scope = scope
        self._limits = limits
        self._max_depth = limits.max_depth
        # The clock takes longer than all else that is asked here of most links.
        self._ends = min(limits.max_pages, limits.max_seconds) < math.inf
        self._robots = robots
        self._watch = watch
        self._tally = tally

    def outside(self, job: Job) -> Reason | None:
        """Say why a job lies outside of what may be crawled, whoever links to it."""
        if not web(job.url):
            return Reason.OTHER_SCHEME
        if job.depth > self._max_depth:
            return Reason.TOO_DEEP
        return self._scope(job) or self._robots.refusal(job.url)

    def refusal(self, job: Job) -> Reason | None:
        """Say why a job that was found is not admitted; None when it is, which traps count."""
        return self.outside(job) or self.trapped(job)

    def trapped(self, job: Job) -> Reason | None:
        """Say why a job that is not outside is not admitted all the same."""
        reason = None if self._watch is None else self._watch.refusal(job)
        return reason or (None if self._lasting else self.over())

    def over(self) -> Reason | None:
        """Say why nothing more is asked for; None while the crawl goes on."""
        if self.stopped or not self._ends:
            return self.stopped
        if self._tally.spent >= self._limits.max_pages:
            return Reason.PAGE_BUDGET
        return Reason.TIME_BUDGET if self._tally.seconds >= self._limits.max_seconds else None


def watch_for(traps: Traps | None, limits: Limits) -> Watch | None:
    """Watch for traps; who says how deep to go, means it."""
    if traps is None:
        return None
    deep = limits.max_depth < math.inf
    return Watch(replace(traps, max_hops=math.inf) if deep else traps)


def seeds_of(urls: Iterable[str], name: str) -> tuple[str, ...]:
    """Normalise the URLs to begin with.

    Raises ValueError, naming it, for what is no http or https URL, and TypeError for a str.
    """
    if isinstance(urls, str):
        raise TypeError(f"{name} must be several URLs: write [{without_userinfo(urls)!r}]")
    return tuple(dict.fromkeys(_seed(url) for url in urls))


def _seed(url: str) -> str:
    if not isinstance(url, str):
        raise TypeError(f"a URL must be a str, not {url!r}")
    try:
        seed = normalise(url)
    except ValueError:
        raise ValueError(f"not a URL: {without_userinfo(url)!r}") from None
    if not web(seed):
        raise ValueError(f"not an http or https URL: {without_userinfo(url)!r}")
    return seed
