"""The frontier in memory."""

from collections.abc import Collection, Sequence
from functools import partial

import trio

from trio_crawler.arguments import ArgumentError, check_kind
from trio_crawler.frontier.join import Join
from trio_crawler.frontier.protocol import FrontierStatistics, Past, admit_first
from trio_crawler.frontier.seen import Seen
from trio_crawler.in_trio import check_in_trio, start_soon
from trio_crawler.model import Attempt, Job, Reason
from trio_crawler.page.url_set import UrlSet
from trio_crawler.policy.plan import Plan
from trio_crawler.schedule.disk_queue import DiskQueue, DiskQueueFile
from trio_crawler.schedule.hosts import Hosts, JobChannel
from trio_crawler.schedule.queues import make_queue
from trio_crawler.settlement import Settlement

# The most bytes of waiting jobs in memory. ▶ To write a job to the file and read it takes 1 us.
_WAITING = 4 * 1024 * 1024


class MemoryFrontier:
    """The frontier of one crawl, in memory.

    It has no bound of its own: the workers that consume URLs also produce them, so a bounded
    channel would deadlock. The scope, the limits and the traps of the plan bound it. Waiting URLs
    beyond some 4 MiB are in a file without a name, in the directory of temporary files. Raises
    StoreError, from the crawl, if that file cannot be written.

    >>> web = Web({"/": html("/a"), "/a": html()})
    >>> frontier = MemoryFrontier()
    >>> trio.run(Crawler([web.url], fetch=web, frontier=frontier).crawl).pages
    2
    >>> frontier.statistics().admitted
    2
    """

    __module__ = "trio_crawler"

    hosts: Hosts

    def __init__(self) -> None:
        self.seen = Seen()
        self._join = Join()
        self._file = DiskQueueFile(memory=_WAITING)
        self._plan: Plan | None = None
        self._ended: Reason | None = None

    def __repr__(self) -> str:
        figures = self.statistics()
        return f"<MemoryFrontier: {figures.admitted} admitted, {figures.unsettled} unsettled>"

    @property
    def jobs(self) -> JobChannel:
        """The channel from which the workers receive; it ends when every job is settled."""
        return self.hosts.jobs

    async def open(self, plan: Plan) -> Past | None:
        """Begin a crawl of this plan; return None, since no earlier run has left any state.

        Raises RuntimeError under asyncio, and when called again: a frontier serves one crawl; and
        ValueError for checks with a `max_age`, since there is no earlier walk.
        """
        check_in_trio("MemoryFrontier")
        if self._plan is not None:
            raise RuntimeError("a frontier serves one crawl: make another MemoryFrontier")
        check_kind("plan", plan, Plan, "a Plan")
        if plan.checks.max_age:
            raise ArgumentError(
                "max_age", " needs a directory: Crawler(frontier=SqliteFrontier(...))"
            )
        self._plan = plan
        self.seen = Seen(plan.limits.max_redirects, UrlSet())
        queue = partial(make_queue, plan.order, partial(DiskQueue, self._file))
        self.hosts = Hosts(plan, end=self.end, queue=queue)
        if self._ended is not None:
            self.hosts.end(self._ended)
        await trio.lowlevel.checkpoint()
        return None

    async def run(self) -> None:
        """Admit the first jobs of the plan; return when every admitted URL is settled.

        Then it closes the channel, which ends the loops of the workers. Raises RuntimeError before
        `open`.
        """
        if self._plan is None:
            raise RuntimeError("open the frontier first: await frontier.open(plan)")
        try:
            await admit_first(self._plan, self.seen.admit_all, self._admit)
            self._join.done()
            async with trio.open_nursery() as nursery:
                start_soon(nursery, self.hosts.keep_time)
                await self._join.wait()
                nursery.cancel_scope.cancel("every admitted URL has its outcome")
        finally:
            self.hosts.jobs.end()
            self._file.close()

    def known(self, urls: Collection[str]) -> set[str]:
        """Return those of `urls` that were admitted with the full budget of redirects."""
        return self.seen.known(urls)

    async def add(self, jobs: Sequence[Job]) -> int:
        """Admit the new pages and sitemaps among `jobs`; return how many were new."""
        await trio.lowlevel.checkpoint_if_cancelled()
        admitted = 0 if self._join.is_over else self._admit(self.seen.admit_all(jobs))
        await trio.lowlevel.cancel_shielded_checkpoint()
        return admitted

    async def settle(self, settlement: Settlement) -> None:
        """Admit the successors of a `settlement`, then count its job out, in one atomic step."""
        # No full checkpoint: the caller waits for the next outcome anyway.
        await trio.lowlevel.checkpoint_if_cancelled()
        successors: list[Job] = []
        # A robots.txt may still arrive when the crawl is over; its sitemaps are not admitted.
        if settlement.successors and self._join.unfinished:
            successors = self.seen.admit_all(self.seen.successors(settlement))
        counts = self.hosts.settled(settlement)
        # Also without successors: a page that is settled may release pages that are held.
        self.hosts.admit(successors)
        if successors:
            self._join.add(len(successors))
        if counts:
            self._join.done()

    async def retry(self, attempt: Attempt, seconds: float) -> None:
        """Retry the job of an `attempt`, after `seconds` or later."""
        await trio.lowlevel.checkpoint_if_cancelled()
        self.hosts.retry(attempt, seconds)
        await trio.lowlevel.cancel_shielded_checkpoint()

    def end(self, reason: Reason) -> None:
        """End the crawl early: block every waiting job for this reason; the first call counts.

        If called before `open`, the crawl ends as soon as it begins.
        """
        check_kind("reason", reason, Reason, "a Reason")
        if self._ended is None:
            self._ended = reason
            if self._plan is not None:
                self.hosts.end(reason)

    def statistics(self) -> FrontierStatistics:
        """Return the counts at this moment."""
        if self._plan is None:
            return FrontierStatistics()
        return FrontierStatistics(
            admitted=len(self.seen),
            waiting=self.hosts.waiting,
            unsettled=self._join.unfinished,
            ready=self.hosts.ready,
            held=self.hosts.held,
            delayed=self.hosts.delayed,
            retries=self.hosts.retries,
        )

    def _admit(self, fresh: Sequence[Job]) -> int:
        self._join.add(len(fresh))
        self.hosts.admit(fresh)
        return len(fresh)
