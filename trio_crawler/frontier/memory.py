"""The frontier in memory."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime

import trio

from trio_crawler.frontier.gate import Gate
from trio_crawler.frontier.jobs import Jobs
from trio_crawler.frontier.join import Join
from trio_crawler.frontier.line import Order, breadth_first
from trio_crawler.frontier.pacer import Pacer
from trio_crawler.frontier.protocol import FrontierStatistics
from trio_crawler.frontier.seen import Seen
from trio_crawler.frontier.turns import Turns
from trio_crawler.model import Fault, Job, Outcome, Page, Purpose, Reason, Response
from trio_crawler.policy.limits import Limits
from trio_crawler.policy.manners import troubled
from trio_crawler.policy.politeness import HostStatistics, Politeness
from trio_crawler.policy.retry import retry_after
from trio_crawler.policy.robots import Robots


class MemoryFrontier:
    """Keep the frontier of one crawl in memory.

    It has no bound: every consumer of URLs also produces them, so a bounded channel would
    deadlock. What bounds it is what the scope admits.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        politeness: Politeness | None = None,
        *,
        order: Order = breadth_first,
    ) -> None:
        limits = limits or Limits()
        self._jobs = Jobs(self._choose)
        self._join = Join()
        self._gate = Gate(limits, order)
        self._turns = Turns(politeness, order=order, max_tries=limits.max_tries)
        self._pacer = Pacer()
        self._wakes = math.inf
        self._woken = trio.Event()
        self.seen = Seen(limits.max_redirects)
        self._sitemaps: set[str] = set()
        self._admitted = 0
        self._hurried = False

    def __repr__(self) -> str:
        figures = self.statistics()
        return f"<MemoryFrontier: {figures.admitted} admitted, {figures.unsettled} unsettled>"

    @property
    def jobs(self) -> Jobs:
        """Receive jobs here; it ends when every admitted URL is settled."""
        return self._jobs

    def knows(self, urls: Collection[str]) -> set[str]:
        """Tell which of `urls` were admitted so that no path to them can call for more."""
        return self.seen.knows(urls)

    async def run(self, seeds: Iterable[Job], robots: Robots | None = None) -> None:
        """Admit the seeds and release jobs as they fall due; return when all are settled.

        Closing the channel is what ends the workers' loops. Raises RuntimeError when called
        again: a frontier serves one crawl.
        """
        if robots is not None:
            self._turns.robots = robots
        try:
            self._admit(seeds)
            self._join.done()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._keep_time)
                await self._join.wait()
                nursery.cancel_scope.cancel("every admitted URL has its outcome")
        finally:
            self._jobs.end()

    async def _keep_time(self) -> None:
        """Release what falls due, again and again."""
        while True:
            now = trio.current_time()
            for job in self._pacer.due(now):
                self._turns.put(job, now)
            self._jobs.hand_out()
            self._wakes = min(self._pacer.next_due, self._turns.wake(now))
            self._woken = trio.Event()
            with trio.move_on_at(self._wakes):
                await self._woken.wait()

    def _choose(self, last: bool) -> Job | None:
        job = self._turns.next(trio.current_time(), last=last)
        self._note_wakes()
        return job

    def _hand_out(self) -> None:
        self._jobs.hand_out()
        self._note_wakes()

    def _note_wakes(self) -> None:
        if self._turns.wakes < self._wakes:
            self._woken.set()

    def answered(self, job: Job, answer: Response | Fault, seconds: float) -> None:
        """Note what came for a job, after so many seconds: its host may be asked again."""
        asked = 0.0
        if isinstance(answer, Response) and answer.status >= 400 and troubled(answer):
            asked = retry_after(answer.headers, datetime.now(UTC)) or 0.0
        self._turns.answered(job, answer, seconds, trio.current_time(), asked=asked)
        self._hand_out()

    def learned(self, url: str, trouble: Response | Fault | None) -> None:
        """Note that `robots` knows what this robots.txt says, or what trouble there was."""
        self._turns.learned(url, trouble, trio.current_time())
        self._hand_out()

    async def hop(self, job: Job) -> None:
        """Ask for what a robots.txt was redirected to."""
        await trio.lowlevel.checkpoint_if_cancelled()
        self._turns.put(job, trio.current_time())
        self._hand_out()

    async def add(self, jobs: Sequence[Job]) -> int:
        """Admit what is unseen among pages and sitemaps found elsewhere; return how many were."""
        await trio.lowlevel.checkpoint_if_cancelled()
        # A robots.txt may still be read when the crawl has been stopped and all URLs are settled.
        admitted = self._admit(jobs) if self._join.statistics().unfinished else 0
        await trio.lowlevel.cancel_shielded_checkpoint()
        return admitted

    async def settle(self, outcome: Outcome | None, successors: Sequence[Job]) -> None:
        """Admit the unseen successors, then count the outcome's URL out, in one atomic step."""
        # No more of a checkpoint: whoever settles waits for the next outcome anyway.
        await trio.lowlevel.checkpoint_if_cancelled()
        self._settle(outcome, successors)

    def _settle(self, outcome: Outcome | None, successors: Sequence[Job]) -> None:
        if outcome is not None:
            self._gate.settle(outcome)
            if not isinstance(outcome, Page):
                successors = [self._followed(outcome.url, job) for job in successors]
        else:
            self._turns.sitemap_done(trio.current_time())
        if self._gate.spent:
            self.hurry(Reason.PAGE_BUDGET)
        self._admit(successors)
        self._join.done()

    def _followed(self, url: str, job: Job) -> Job:
        # A redirect's target depends on the path; a link starts a new one.
        return self.seen.follow(url, job) if job.referrer == url else job

    def _admit(self, jobs: Iterable[Job]) -> int:
        now = trio.current_time()
        count = 0
        for job in jobs:
            if job.purpose is Purpose.SITEMAP:
                count += self._admit_sitemap(job, now)
            elif (fresh := self.seen.admit(job)) is not None:
                count += 1
                self._admitted += 1
                self._gate.put(fresh)
        self._join.add(count)
        for job in self._gate.take():
            self._turns.put(job, now)
        self._hand_out()
        return count

    def _admit_sitemap(self, job: Job, now: float) -> bool:
        if job.url in self._sitemaps:
            return False
        self._sitemaps.add(job.url)
        self._turns.put(job, now)
        return True

    async def retry(self, job: Job, seconds: float) -> None:
        """Put back a job that was taken; it comes again after `seconds`, or later."""
        await trio.lowlevel.checkpoint_if_cancelled()
        now = trio.current_time()
        self._pacer.put(job, now if self._hurried else now + seconds)
        if job.purpose is Purpose.SITEMAP:
            self._turns.sitemap_done(now)
        if self._pacer.next_due < self._wakes:
            self._woken.set()
        await trio.lowlevel.cancel_shielded_checkpoint()

    def hurry(self, reason: Reason | None = None) -> None:
        """Release all jobs at once, refused for a `reason`: the crawl is ending."""
        if not self._hurried:
            self._hurried = True
            self._turns.hurry(reason)
            self._pacer.hurry()
            self._woken.set()
            self._hand_out()

    def statistics(self) -> FrontierStatistics:
        """Tell the counts at this moment."""
        return FrontierStatistics(
            admitted=self._admitted,
            unsettled=self._join.statistics().unfinished,
            ready=len(self._turns),
            held=len(self._gate),
            delayed=len(self._pacer),
        )

    def hosts(self) -> list[HostStatistics]:
        """Tell of each host at this moment."""
        return list(self._turns.hosts(trio.current_time()))
