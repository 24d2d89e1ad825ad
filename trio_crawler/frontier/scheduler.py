"""The dispatch: which job of a frontier goes to a worker next, and when."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime

import trio

from trio_crawler.frontier.gate import Gate
from trio_crawler.frontier.host_scheduler import Turns
from trio_crawler.frontier.jobs import Jobs
from trio_crawler.frontier.pacer import Pacer
from trio_crawler.frontier.queues import Line, Order, breadth_first, line
from trio_crawler.model import Fault, Job, Outcome, Purpose, Reason, Response
from trio_crawler.policy.host_state import troubled
from trio_crawler.policy.limits import Limits
from trio_crawler.policy.politeness import HostStatistics, Politeness
from trio_crawler.policy.retry import retry_after
from trio_crawler.policy.robots.store import Robots


class Dispatch:
    """Keep the jobs that wait, and give each out when it may start.

    Past the gate (levels, page budget) a job waits for the turn of its host; the pacer keeps
    those that are to be tried again. `lines` makes what the jobs of one host wait in. `jobs` gives
    what `take` chooses, if it is given: it may call `choose`, or give nothing.
    """

    def __init__(
        self,
        limits: Limits,
        politeness: Politeness | None = None,
        *,
        order: Order = breadth_first,
        lines: Callable[[], Line] | None = None,
        take: Callable[[bool], Job | None] | None = None,
    ) -> None:
        make = lines or (lambda: line(order))
        self.jobs = Jobs(take or self.choose)
        self.gate = Gate(limits, make)
        self._turns = Turns(politeness, lines=make, max_tries=limits.max_tries)
        self._pacer = Pacer()
        self._wakes = math.inf
        self._woken = trio.Event()
        self._hurried = False

    @property
    def ready(self) -> int:
        """Count the jobs that wait for the turn of their host."""
        return len(self._turns)

    @property
    def delayed(self) -> int:
        """Count the jobs that wait to be tried again."""
        return len(self._pacer)

    def obey(self, robots: Robots) -> None:
        """Ask this for what robots.txt allows, from now on."""
        self._turns.robots = robots

    async def keep_time(self) -> None:
        """Release what falls due, again and again."""
        while True:
            now = trio.current_time()
            for job in self._pacer.due(now):
                self._turns.put(job, now)
            self.jobs.hand_out()
            self._wakes = min(self._pacer.next_due, self._turns.wake(now))
            self._woken = trio.Event()
            with trio.move_on_at(self._wakes):
                await self._woken.wait()

    def choose(self, last: bool) -> Job | None:
        """Take the job that is to start now; None when none may."""
        job = self._turns.next(trio.current_time(), last=last)
        self._note_wakes()
        return job

    def hand_out(self) -> None:
        """Give jobs to the workers that wait, as far as there are any that may start."""
        self.jobs.hand_out()
        self._note_wakes()

    def _note_wakes(self) -> None:
        if self._turns.wakes < self._wakes:
            self._woken.set()

    def admit(self, jobs: Iterable[Job]) -> None:
        """Let pages wait at the gate, and sitemaps at their host."""
        now = trio.current_time()
        for job in jobs:
            if job.purpose is Purpose.PAGE:
                self.gate.put(job)
            else:
                self._turns.put(job, now)
        self._release(now)

    def _release(self, now: float) -> None:
        for job in self.gate.take():
            self._turns.put(job, now)
        self.hand_out()

    def settle(self, outcome: Outcome) -> None:
        """Note that a page has its outcome: with the next `admit` the gate may open."""
        self.gate.settle(outcome)

    def sitemap_done(self) -> None:
        """Note that the sitemap which was taken takes no more memory."""
        self._turns.sitemap_done(trio.current_time())

    def answered(self, job: Job, answer: Response | Fault, seconds: float) -> None:
        """Note what came for a job, after so many seconds: its host may be asked again."""
        asked = 0.0
        if isinstance(answer, Response) and answer.status >= 400 and troubled(answer):
            asked = retry_after(answer.headers, datetime.now(UTC)) or 0.0
        self._turns.answered(job, answer, seconds, trio.current_time(), asked=asked)
        self.hand_out()

    def learned(self, url: str, trouble: Response | Fault | None) -> None:
        """Note what came of asking for this robots.txt, or probe: an answer, or only trouble."""
        self._turns.learned(url, trouble, trio.current_time())
        self.hand_out()

    def hop(self, job: Job) -> None:
        """Ask for what a robots.txt was redirected to."""
        self._turns.put(job, trio.current_time())
        self.hand_out()

    def retry(self, job: Job, seconds: float) -> None:
        """Give a job that was taken again after `seconds`, or later."""
        now = trio.current_time()
        self._pacer.put(job, now if self._hurried else now + seconds)
        if job.purpose is Purpose.SITEMAP:
            self._turns.sitemap_done(now)
        if self._pacer.next_due < self._wakes:
            self._woken.set()

    def hurry(self, reason: Reason | None = None) -> None:
        """Release all jobs at once, refused for a `reason`: the crawl is ending."""
        if not self._hurried:
            self._hurried = True
            self._turns.hurry(reason)
            self._pacer.hurry()
            self._woken.set()
            self.hand_out()

    def hosts(self) -> Iterator[HostStatistics]:
        """Tell of each host; of 100,000 that takes half a second."""
        return self._turns.hosts(trio.current_time())
