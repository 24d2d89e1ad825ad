"""The frontier in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import trio

from trio_crawler.frontier.jobs import Jobs
from trio_crawler.frontier.join import Join
from trio_crawler.frontier.protocol import FrontierStatistics, Past
from trio_crawler.frontier.queues import Order, breadth_first
from trio_crawler.frontier.scheduler import Dispatch
from trio_crawler.frontier.seen import Seen
from trio_crawler.model import (
    Fault,
    Job,
    Listing,
    Outcome,
    Page,
    Purpose,
    Reason,
    Response,
    Sitemap,
)
from trio_crawler.page.read import Facts
from trio_crawler.policy.limits import Limits
from trio_crawler.policy.politeness import HostStatistics, Politeness
from trio_crawler.policy.robots.store import Robots


class MemoryFrontier:
    """Keep the frontier of one crawl in memory.

    It has no bound: every consumer of URLs also produces them, so a bounded channel would
    deadlock. What bounds it is what the scope admits.
    """

    lasting = False

    def __init__(
        self,
        limits: Limits | None = None,
        politeness: Politeness | None = None,
        *,
        order: Order = breadth_first,
    ) -> None:
        limits = limits or Limits()
        self._dispatch = Dispatch(limits, politeness, order=order)
        self._join = Join()
        self.seen = Seen(limits.max_redirects)
        self._sitemaps: set[str] = set()
        self._admitted = 0
        self._began = False

    def __repr__(self) -> str:
        figures = self.statistics()
        return f"<MemoryFrontier: {figures.admitted} admitted, {figures.unsettled} unsettled>"

    @property
    def jobs(self) -> Jobs:
        """Receive jobs here; it ends when every admitted URL is settled."""
        return self._dispatch.jobs

    def knows(self, urls: Collection[str]) -> set[str]:
        """Tell which of `urls` were admitted so that no path to them can call for more."""
        return self.seen.knows(urls)

    async def past(self) -> Past | None:
        """Return None: there was no earlier run."""
        await trio.lowlevel.checkpoint()
        return None

    async def facts(self, url: str) -> Facts | None:
        """Return None: nothing is known of earlier walks."""
        await trio.lowlevel.checkpoint()
        return None

    async def run(
        self, seeds: Iterable[Job], robots: Robots | None = None, workers: int = 10
    ) -> None:
        """Admit the seeds and release jobs as they fall due; return when all are settled.

        Closing the channel is what ends the workers' loops. Raises RuntimeError when called
        again: a frontier serves one crawl.
        """
        if self._began:
            raise RuntimeError("a frontier serves one crawl: make another MemoryFrontier")
        self._began = True
        if robots is not None:
            self._dispatch.obey(robots)
        try:
            self._admit(seeds)
            self._join.done()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._dispatch.keep_time)
                await self._join.wait()
                nursery.cancel_scope.cancel("every admitted URL has its outcome")
        finally:
            self.jobs.end()

    def answered(self, job: Job, answer: Response | Fault, seconds: float) -> None:
        """Note what came for a job, after so many seconds: its host may be asked again."""
        self._dispatch.answered(job, answer, seconds)

    def learned(self, url: str, trouble: Response | Fault | None) -> None:
        """Note that `robots` knows what this robots.txt says, or what trouble there was."""
        self._dispatch.learned(url, trouble)

    async def hop(self, job: Job) -> None:
        """Ask for what a robots.txt was redirected to."""
        await trio.lowlevel.checkpoint_if_cancelled()
        self._dispatch.hop(job)

    async def add(self, jobs: Sequence[Job]) -> int:
        """Admit what is unseen among pages and sitemaps found elsewhere; return how many were."""
        await trio.lowlevel.checkpoint_if_cancelled()
        # A robots.txt may still be read when the crawl has been stopped and all URLs are settled.
        admitted = self._admit(jobs) if self._join.statistics().unfinished else 0
        await trio.lowlevel.cancel_shielded_checkpoint()
        return admitted

    async def settle(self, outcome: Outcome, successors: Sequence[Job]) -> None:
        """Admit the unseen successors, then count the outcome's URL out, in one atomic step."""
        # No more of a checkpoint: whoever settles waits for the next outcome anyway.
        await trio.lowlevel.checkpoint_if_cancelled()
        self._settle(outcome, successors)

    def _settle(self, outcome: Outcome, successors: Sequence[Job]) -> None:
        self._dispatch.settle(outcome)
        if not isinstance(outcome, Page):
            successors = followed(self.seen, outcome, successors)
        if self._dispatch.gate.spent:
            self.hurry(Reason.PAGE_BUDGET)
        self._admit(successors)
        self._join.done()

    async def finish(
        self, job: Job, sitemap: Sitemap | None, listings: Mapping[str, Listing]
    ) -> None:
        """Count a sitemap out."""
        await trio.lowlevel.checkpoint_if_cancelled()
        self._dispatch.sitemap_done()
        self._join.done()

    def note(self, sitemap: Sitemap) -> None:
        """Keep nothing: what was noted is known as long as the crawl."""

    def _admit(self, jobs: Iterable[Job]) -> int:
        fresh = [job for job in map(self._fresh, jobs) if job is not None]
        self._join.add(len(fresh))
        self._dispatch.admit(fresh)
        return len(fresh)

    def _fresh(self, job: Job) -> Job | None:
        """Return what is new of a job, and remember it."""
        if job.purpose is Purpose.PAGE:
            fresh = self.seen.admit(job)
            self._admitted += fresh is not None
            return fresh
        if job.url in self._sitemaps:
            return None
        self._sitemaps.add(job.url)
        return job

    async def retry(self, job: Job, seconds: float) -> None:
        """Put back a job that was taken; it comes again after `seconds`, or later."""
        await trio.lowlevel.checkpoint_if_cancelled()
        self._dispatch.retry(job, seconds)
        await trio.lowlevel.cancel_shielded_checkpoint()

    def hurry(self, reason: Reason | None = None) -> None:
        """Release all jobs at once, refused for a `reason`: the crawl is ending."""
        self._dispatch.hurry(reason)

    def statistics(self) -> FrontierStatistics:
        """Tell the counts at this moment."""
        return FrontierStatistics(
            admitted=self._admitted,
            unsettled=self._join.statistics().unfinished,
            ready=self._dispatch.ready,
            held=len(self._dispatch.gate),
            delayed=self._dispatch.delayed,
        )

    def hosts(self) -> list[HostStatistics]:
        """Tell of each host at this moment."""
        return list(self._dispatch.hosts())


def followed(seen: Seen, outcome: Outcome, successors: Iterable[Job]) -> list[Job]:
    """Give what a URL led to the redirects of the fullest path to it; a link starts a new one."""
    url = outcome.url
    return [seen.follow(url, job) if job.referrer == url else job for job in successors]
