"""The frontier in memory, and what every frontier must do."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

import trio

from trio_crawler.frontier.gate import Gate
from trio_crawler.frontier.join import Join
from trio_crawler.frontier.pacer import Pacer
from trio_crawler.frontier.seen import Seen
from trio_crawler.model import Job, Outcome, Page
from trio_crawler.policy.limits import Limits


@dataclass(frozen=True, slots=True)
class FrontierStatistics:
    """Count a frontier at one moment; `unsettled` jobs are waiting, delayed or with a worker."""

    admitted: int
    unsettled: int
    ready: int
    held: int
    delayed: int


class Frontier(Protocol):
    """Keep what is to be fetched; every URL admitted comes out of `jobs` once.

    A crawl calls `run` once and `settle` once for each job it took, or `retry` to get the job
    again later. `jobs` ends by itself when every admitted URL is settled.
    """

    @property
    def jobs(self) -> trio.MemoryReceiveChannel[Job]:
        """Receive jobs here; any number of workers may."""

    def knows(self, urls: Collection[str]) -> AbstractSet[str]:
        """Tell which of `urls` need no judging: they were admitted before. May leave some out."""

    async def run(self, seeds: Iterable[Job]) -> None:
        """Admit the seeds and release jobs as they fall due; return when all are settled."""

    async def settle(self, outcome: Outcome, successors: Sequence[Job]) -> None:
        """Admit the unseen successors, then count the outcome's URL out, in one atomic step."""

    async def retry(self, job: Job, seconds: float) -> None:
        """Put back a job that was taken; it comes again after `seconds`."""

    def hurry(self) -> None:
        """Release delayed jobs at once: the crawl is ending."""

    def statistics(self) -> FrontierStatistics:
        """Tell the counts at this moment."""


class MemoryFrontier:
    """Keep the frontier of one crawl in memory.

    It has no bound: every consumer of URLs also produces them, so a bounded channel would
    deadlock. What bounds it is what the scope admits.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        limits = limits or Limits()
        self._release, self._jobs = trio.open_memory_channel[Job](math.inf)
        self._join = Join()
        self._gate = Gate(limits)
        self._pacer = Pacer()
        self.seen = Seen(limits.max_redirects)
        self._admitted = 0

    def __repr__(self) -> str:
        figures = self.statistics()
        return f"<MemoryFrontier: {figures.admitted} admitted, {figures.unsettled} unsettled>"

    @property
    def jobs(self) -> trio.MemoryReceiveChannel[Job]:
        """Receive jobs here; it ends when every admitted URL is settled."""
        return self._jobs

    def knows(self, urls: Collection[str]) -> set[str]:
        """Tell which of `urls` were admitted so that no path to them can call for more."""
        return self.seen.knows(urls)

    async def run(self, seeds: Iterable[Job]) -> None:
        """Admit the seeds and release jobs as they fall due; return when all are settled.

        Closing the channel is what ends the workers' loops. Raises RuntimeError when called
        again: a frontier serves one crawl.
        """
        with self._release:
            self._admit(seeds)
            self._join.done()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._pacer.run, self._release.send_nowait)
                await self._join.wait()
                nursery.cancel_scope.cancel("every admitted URL has its outcome")

    async def settle(self, outcome: Outcome, successors: Sequence[Job]) -> None:
        """Admit the unseen successors, then count the outcome's URL out, in one atomic step."""
        # No more of a checkpoint: whoever settles waits for the next outcome anyway.
        await trio.lowlevel.checkpoint_if_cancelled()
        self._settle(outcome, successors)

    def _settle(self, outcome: Outcome, successors: Sequence[Job]) -> None:
        self._gate.settle(outcome)
        if not isinstance(outcome, Page):
            # A redirect's target depends on the path; a link starts a new one.
            successors = [self.seen.follow(outcome.url, job) for job in successors]
        self._admit(successors)
        self._join.done()

    def _admit(self, jobs: Iterable[Job]) -> None:
        fresh = [job for job in map(self.seen.admit, jobs) if job is not None]
        self._join.add(len(fresh))
        self._admitted += len(fresh)
        for job in fresh:
            self._gate.put(job)
        for job in self._gate.take():
            self._release.send_nowait(job)

    async def retry(self, job: Job, seconds: float) -> None:
        """Put back a job that was taken; it comes again after `seconds`."""
        await trio.lowlevel.checkpoint_if_cancelled()
        self._pacer.put(job, trio.current_time() + seconds)
        await trio.lowlevel.cancel_shielded_checkpoint()

    def hurry(self) -> None:
        """Release delayed jobs at once: the crawl is ending."""
        self._pacer.hurry()

    def statistics(self) -> FrontierStatistics:
        """Tell the counts at this moment."""
        return FrontierStatistics(
            admitted=self._admitted,
            unsettled=self._join.statistics().unfinished,
            ready=self._jobs.statistics().current_buffer_used,
            held=len(self._gate),
            delayed=len(self._pacer),
        )
