"""The frontier that lasts: all decisions in memory, each change of them in a crawl directory.

▶ SQLite that tells what was seen costs a core of its own. So what was seen is known in memory, as
64-bit keys, and only what is new and what is finished is written: in a thread, by one transaction
for all that has come meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import trio

from trio_crawler.frontier.disk_queue import Spill, SpillFile
from trio_crawler.frontier.filed import Filed
from trio_crawler.frontier.jobs import Jobs
from trio_crawler.frontier.join import Join
from trio_crawler.frontier.journal import Ledger
from trio_crawler.frontier.protocol import FrontierStatistics, Past
from trio_crawler.frontier.queues import Line, Order, breadth_first, line
from trio_crawler.frontier.resume import past_of, recall_robots, revive
from trio_crawler.frontier.scheduler import Dispatch
from trio_crawler.frontier.url_index import Register
from trio_crawler.model import Fault, Job, Listing, Outcome, Purpose, Reason, Response, Sitemap
from trio_crawler.page.read import Facts
from trio_crawler.policy.limits import Limits
from trio_crawler.policy.politeness import HostStatistics, Politeness
from trio_crawler.policy.robots.store import Robots
from trio_crawler.store.store import Store
from trio_crawler.store.streams import Stream


class SqliteFrontier:
    """Keep the frontier of a crawl in a directory, so that a later run can go on with it.

    An async context manager: entering opens the directory, makes it if need be, and keeps others
    out until it is left. Whatever ends the process: nothing that was settled before is lost, and
    no more URLs than the crawler has workers are asked for again. What is told by `stream` is
    written together with the outcomes.

    When a crawl is ended early, what waits is not skipped but stays. `refresh` walks a site again
    whose walk has ended, asking by the validators that it knows. `meaning` says what the crawl
    is about (anything JSON can hold, by name): a directory with another meaning is refused.
    `settings` are kept with the run, for readers.

    Beyond some 50,000 URLs wait on disk, if `order` is breadth first; any other order keeps all
    in memory.

    Raises StoreError, on entering or out of the crawl, when the directory cannot be used: its text
    is one line that says why and what to do. DifferentCrawl is one for another `meaning`.
    """

    lasting = True

    def __init__(
        self,
        directory: str | Path,
        limits: Limits | None = None,
        politeness: Politeness | None = None,
        *,
        order: Order = breadth_first,
        meaning: Mapping[str, Any] | None = None,
        refresh: bool = False,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.directory = Path(directory)
        limits = limits or Limits()
        self._spilled = SpillFile(self.directory)
        lines: Callable[[], Line] = partial(Spill, self._spilled)
        if order is not breadth_first:
            lines = partial(line, order)
        self._dispatch = Dispatch(limits, politeness, lines=lines, take=self._take)
        store = partial(Store.open, meaning=meaning, refresh=refresh, settings=settings)
        self._ledger = Ledger(partial(store, self.directory))
        self._register = Register(limits.max_redirects, self._ledger)
        self._join = Join()
        self._ending = False
        self._over = trio.Event()
        self._since = 0.0

    async def __aenter__(self) -> SqliteFrontier:
        await self._ledger.open()
        self._since = trio.current_time()
        return self

    async def __aexit__(self, *error: object) -> None:
        self._spilled.close()
        seconds = trio.current_time() - self._since
        await self._ledger.close(self._how, self._dispatch.hosts(), seconds)  # noqa: ASYNC102 - it shields itself

    @property
    def _how(self) -> str:
        if not self._over.is_set():
            return "cut short"
        early = "spent" if self._dispatch.gate.spent else "stopped"
        return early if self._join.statistics().unfinished else "finished"

    def __repr__(self) -> str:
        name, now = str(self.directory), self.statistics()
        return f"<SqliteFrontier({name!r}): {now.admitted} admitted, {now.unsettled} unsettled>"

    def stream(
        self,
        path: str | Path,
        encode: Callable[[Outcome], bytes],
        head: Callable[[], bytes] = bytes,
        rest: Callable[[], bytes] = bytes,
    ) -> Stream:
        """Open a file that holds a record of each outcome, once, however often a run is killed.

        The record of an outcome given to its `add` is written when the outcome is settled:
        `encode` is called in a thread. What a killed run has left half written is cut off. `head`
        gives what a new file begins with, `rest` what else came up by each transaction. To be
        called before the crawl begins.
        """
        stream = self._ledger.store.stream(str(path), encode, head, rest)
        self._ledger.streams.append(stream)
        return stream

    def outcomes(self) -> Iterator[Outcome]:
        """Give what this walk has settled so far, the pages without bodies.

        Not while the crawl runs: that has the database for itself.
        """
        return self._ledger.store.outcomes()

    def bodies(self) -> Iterator[tuple[str, bytes, float]]:
        """Give the URL, the SHA-1 and the Unix time of each body that came; as `outcomes`."""
        return (row for rows in self._ledger.store.bodies() for row in rows)

    @property
    def jobs(self) -> Jobs:
        """Receive jobs here; it ends when every admitted URL is settled, or the crawl is ended."""
        return self._dispatch.jobs

    def knows(self, urls: Collection[str]) -> set[str]:
        """Tell which of `urls` were admitted so that no path to them can call for more."""
        return self._register.knows(urls)

    async def past(self) -> Past | None:
        """Return what earlier runs of this walk have left; None in the first."""
        if self._ledger.store.resumed or self._ledger.store.walk > 1:
            past = await self._ledger.ask(partial(past_of, self._ledger.store))
            # Until `run` knows each of them.
            self._register.admitted = past.statistics.admitted
            self._dispatch.gate.recall(past.statistics.pages + past.statistics.failures)
            return past
        await trio.lowlevel.checkpoint()
        return None

    async def facts(self, url: str) -> Facts | None:
        """Return what a page said in the last walk in which it came."""
        number = self._register.earlier(url)
        if number is None:
            await trio.lowlevel.checkpoint()
            return None
        return await self._ledger.ask(partial(self._ledger.store.facts, number))

    async def run(self, seeds: Iterable[Job], robots: Robots, workers: int) -> None:
        """Go on where the last run ended, or admit the seeds; return when all are settled.

        Returns also when the crawl was ended and nothing is in flight any more. By then all is
        written. Raises StoreError when something could not be, and RuntimeError when called again.
        """
        if self._ledger.most:
            raise RuntimeError("a frontier serves one crawl: open its directory again")
        self._ledger.most = workers
        self._dispatch.obey(robots)
        try:
            await self._recall(robots)
            self._admit(self._register.enter(seeds))
            self._join.done()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._dispatch.keep_time)
                nursery.start_soon(self._ledger.keep_writing, self._written)
                self._written()
                await self._over.wait()
                nursery.cancel_scope.cancel("every admitted URL has its outcome, or waits")
            await self._ledger.write()
        finally:
            self.jobs.end()

    async def _recall(self, robots: Robots) -> None:
        """Take over what earlier runs have left."""
        store = self._ledger.store
        await self._ledger.ask(partial(self._register.recall, store))
        clocks = trio.current_time(), time.time()
        await self._ledger.ask(partial(recall_robots, robots, store, *clocks))
        if self._dispatch.gate.spent:
            self.hurry()
        await revive(self._ledger, self._admit)
        self._dispatch.gate.recalled()

    def _written(self) -> None:
        """Go on after a transaction."""
        ended = self._ending or not self._join.statistics().unfinished
        if ended and not self._ledger.at_risk:
            self._over.set()
        self._dispatch.hand_out()

    def _take(self, last: bool) -> Job | None:
        """Choose a job, if one more may be at risk."""
        if self._ending or self._ledger.full:
            return None
        job = self._dispatch.choose(last)
        return self._register.hand_out(job) if isinstance(job, Filed) else job

    def answered(self, job: Job, answer: Response | Fault, seconds: float) -> None:
        """Note what came for a job, after so many seconds: its host may be asked again."""
        if job.purpose is Purpose.ROBOTS and isinstance(answer, Response):
            self._register.keep_robots(job.referrer or job.url, answer)
        self._dispatch.answered(job, answer, seconds)

    def learned(self, url: str, trouble: Response | Fault | None) -> None:
        """Note that `robots` knows what this robots.txt says, or what trouble there was."""
        self._register.learned(url, known=trouble is None)
        self._dispatch.learned(url, trouble)

    async def hop(self, job: Job) -> None:
        """Ask for what a robots.txt was redirected to."""
        await trio.lowlevel.checkpoint_if_cancelled()
        self._dispatch.hop(job)

    async def add(self, jobs: Sequence[Job]) -> int:
        """Admit what is unseen among pages and sitemaps found elsewhere; return how many were."""
        # Before and not after: what is settled, finished or learned next is in the same batch.
        await trio.lowlevel.checkpoint()
        if not self._join.statistics().unfinished:
            return 0
        return self._admit(self._register.enter(jobs))

    def _admit(self, fresh: Sequence[Filed]) -> int:
        self._join.add(len(fresh))
        self._dispatch.admit(fresh)
        return len(fresh)

    async def settle(self, outcome: Outcome, successors: Sequence[Job]) -> None:
        """Admit the unseen successors, then count the outcome's URL out, in one atomic step.

        A checkpoint only where too much waits to be written. It is written a little later, as one
        transaction.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        await self._ledger.room()
        self._dispatch.settle(outcome)
        if self._dispatch.gate.spent:
            self.hurry()
        self._admit(self._register.settle(outcome, successors))
        self._join.done()

    async def finish(
        self, job: Job, sitemap: Sitemap | None, listings: Mapping[str, Listing]
    ) -> None:
        """Count a sitemap out."""
        await trio.lowlevel.checkpoint_if_cancelled()
        self._register.finish(job, sitemap, listings)
        self._dispatch.sitemap_done()
        self._join.done()

    def note(self, sitemap: Sitemap) -> None:
        """Keep that a sitemap is not asked for, and why."""
        self._register.note(sitemap)

    async def retry(self, job: Job, seconds: float) -> None:
        """Put back a job that was taken; it comes again after `seconds`, or in a later run."""
        await trio.lowlevel.checkpoint_if_cancelled()
        waits = self._register.take_back(job)
        if not self._ending:
            self._dispatch.retry(waits, seconds)
        await trio.lowlevel.cancel_shielded_checkpoint()

    def hurry(self, reason: Reason | None = None) -> None:
        """Hand out nothing more: the crawl is ending, and what waits is for a later run."""
        self._ending = True
        self._ledger.note()
        self._ledger.hurry()

    def statistics(self) -> FrontierStatistics:
        """Tell the counts at this moment."""
        return FrontierStatistics(
            admitted=self._register.admitted,
            unsettled=self._join.statistics().unfinished,
            ready=self._dispatch.ready,
            held=len(self._dispatch.gate),
            delayed=self._dispatch.delayed,
        )

    def hosts(self) -> list[HostStatistics]:
        """Tell of each host at this moment."""
        return list(self._dispatch.hosts())
