"""What every frontier must do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

from trio_crawler.frontier.jobs import Jobs
from trio_crawler.model import Fault, Job, Outcome, Reason, Response
from trio_crawler.policy.politeness import HostStatistics
from trio_crawler.policy.robots import Robots


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


class Frontier(Protocol):
    """Keep what is to be fetched; every URL admitted comes out of `jobs` once.

    A crawl calls `run` once. For each job it took it calls `answered` when it has asked for it,
    and then `settle` once, or `retry` to get the job again later. `jobs` ends by itself when
    every admitted URL is settled.

    Jobs for robots.txt, and probes, come out of `jobs` too; for them there is `learned` (or
    `hop`, where a robots.txt was redirected to) in place of `settle`.
    """

    @property
    def jobs(self) -> Jobs:
        """Receive jobs here; any number of workers may. One that is `refused` is not asked for."""

    def knows(self, urls: Collection[str]) -> AbstractSet[str]:
        """Tell which of `urls` need no judging: they were admitted before. May leave some out."""

    async def run(self, seeds: Iterable[Job], robots: Robots) -> None:
        """Admit the seeds and release jobs as they fall due; return when all are settled."""

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

    async def settle(self, outcome: Outcome | None, successors: Sequence[Job]) -> None:
        """Admit the unseen successors, then count the outcome's URL out, in one atomic step.

        None stands for a sitemap, which has no outcome.
        """

    async def retry(self, job: Job, seconds: float) -> None:
        """Put back a job that was taken; it comes again after `seconds`, or later."""

    def hurry(self, reason: Reason | None = None) -> None:
        """Release all jobs at once, refused for a `reason`: the crawl is ending."""

    def statistics(self) -> FrontierStatistics:
        """Tell the counts at this moment."""

    def hosts(self) -> list[HostStatistics]:
        """Tell of each host at this moment."""
