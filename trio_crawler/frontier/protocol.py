"""What every frontier must do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

from trio_crawler.frontier.jobs import Jobs
from trio_crawler.model import (
    Fault,
    Job,
    Listing,
    Outcome,
    Reason,
    Response,
    Sitemap,
    Statistics,
)
from trio_crawler.page.read import Facts
from trio_crawler.policy.politeness import HostStatistics
from trio_crawler.policy.robots.store import Robots


@dataclass(frozen=True, slots=True)
class FrontierStatistics:
    """Count a frontier at one moment.

    `unsettled` jobs are waiting, delayed or with a worker. Of these `ready` wait for the turn of
    their host, `held` for a level or the page budget, `delayed` to be tried again.
    """

    admitted: int
    unsettled: int
    ready: int
    held: int
    delayed: int


@dataclass(frozen=True, slots=True)
class Past:
    """Hold what earlier runs of the same crawl have left.

    `urls` gives the URLs of all pages that were admitted, in portions; `bodies` the URL and the
    SHA-1 of each HTML page that came and is no duplicate; `outcomes` what was settled, the pages
    without bodies. Each may be gone through once, in any thread but not in two at a time.
    """

    statistics: Statistics
    sitemaps: Sequence[Sitemap]
    listings: Mapping[str, Listing]
    urls: Iterable[Sequence[str]]
    bodies: Iterable[tuple[str, bytes]]
    outcomes: Iterable[Outcome]


class Frontier(Protocol):
    """Keep what is to be fetched; every URL admitted comes out of `jobs` once.

    A crawl calls `past` and then `run` once. For each job it took it calls `answered` when it has
    asked for it, and then `settle` once, or `retry` to get the job again later. `jobs` ends by
    itself when every admitted URL is settled.

    Jobs for sitemaps, robots.txt and probes come out of `jobs` too. For a sitemap there is
    `finish` in place of `settle`, for the others `learned` (or `hop`, where a robots.txt was
    redirected to).
    """

    @property
    def lasting(self) -> bool:
        """Tell whether another crawl can go on with what waits when this one is ended early.

        Then nothing is skipped for such an end: `jobs` ends, and what waits stays.
        """

    @property
    def jobs(self) -> Jobs:
        """Receive jobs here; any number of workers may. One that is `refused` is not asked for."""

    def knows(self, urls: Collection[str]) -> AbstractSet[str]:
        """Tell which of `urls` need no judging: they were admitted before. May leave some out."""

    async def past(self) -> Past | None:
        """Return what earlier runs have left, if there were any."""

    async def facts(self, url: str) -> Facts | None:
        """Return what a page said that has not changed since an earlier walk, if it is known."""

    async def run(self, seeds: Iterable[Job], robots: Robots, workers: int) -> None:
        """Admit the seeds and release jobs as they fall due; return when all are settled.

        So many workers take jobs.
        """

    def answered(self, job: Job, answer: Response | Fault, seconds: float) -> None:
        """Note what came for a job, after so many seconds: its host may be asked again."""

    def learned(self, url: str, trouble: Response | Fault | None) -> None:
        """Note that `robots` knows what this robots.txt says, or what trouble there was.

        The same for a page that was asked for as a probe.
        """

    async def hop(self, job: Job) -> None:
        """Ask for what a robots.txt was redirected to."""

    async def add(self, jobs: Sequence[Job]) -> int:
        """Admit what is unseen among pages and sitemaps found elsewhere; return how many were."""

    async def settle(self, outcome: Outcome, successors: Sequence[Job]) -> None:
        """Admit the unseen successors, then count the outcome's URL out, in one atomic step."""

    async def finish(
        self, job: Job, sitemap: Sitemap | None, listings: Mapping[str, Listing]
    ) -> None:
        """Count a sitemap out: what came of it, and what it says of URLs, by their seen keys.

        None is for one that led elsewhere, or was dropped.
        """

    def note(self, sitemap: Sitemap) -> None:
        """Keep that a sitemap is not asked for, and why."""

    async def retry(self, job: Job, seconds: float) -> None:
        """Put back a job that was taken; it comes again after `seconds`, or later."""

    def hurry(self, reason: Reason | None = None) -> None:
        """Release all jobs at once, refused for a `reason`: the crawl is ending.

        A lasting frontier keeps them instead, and ends when nothing is in flight.
        """

    def statistics(self) -> FrontierStatistics:
        """Tell the counts at this moment."""

    def hosts(self) -> list[HostStatistics]:
        """Tell of each host at this moment."""
