"""The frontier that lasts: it decides in memory, and writes each change to a crawl directory.

▶ To look up the seen URLs in SQLite costs a CPU core. So they are kept in memory, as 64-bit keys,
and only new and settled URLs are written. A thread writes them, with all changes since the last
transaction in one transaction.
"""

import time
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

import trio
from msgspec.structs import replace

from trio_crawler.arguments import check_flag, check_json, check_kind, check_path, public
from trio_crawler.frontier.lasting import Kept, StoredJob, UrlIndex, known_rules
from trio_crawler.frontier.memory import Join
from trio_crawler.frontier.protocol import FrontierStatistics, Past, admit_first
from trio_crawler.in_trio import check_in_trio, start_soon
from trio_crawler.model import Attempt, Job, Purpose, Reason, Statistics
from trio_crawler.policy.plan import Plan
from trio_crawler.policy.settings import breadth_first
from trio_crawler.schedule.hosts import Hosts, JobChannel
from trio_crawler.schedule.queues import make_queue
from trio_crawler.settlement import Settlement
from trio_crawler.store.compact import MEMORY, DiskQueue, DiskQueueFile
from trio_crawler.store.runs import End
from trio_crawler.store.walk import WaitingRow

# Stored jobs that are admitted at once, before other tasks can run.
_TURN = 500


@public("trio_crawler")
class SqliteFrontier(Kept):
    """The frontier of a crawl in a directory, so that a later run can resume the crawl.

    An async context manager: entering opens the directory, creates it if it does not exist, and
    locks it until the block is left. If the process is killed, no settled outcome is lost, and at
    most twice as many URLs are fetched again as the crawler has workers. The records of a `stream`
    are written together with the outcomes.

    When a crawl ends early, the waiting URLs are not skipped but kept for a later run. A walk is
    one pass over the site, in one run or more. With `refresh` a new walk begins if the last one
    has ended; it makes conditional requests from the stored validators.

    `meaning` identifies the crawl: a mapping of names to values that JSON can represent. A
    directory that has another meaning is rejected. `settings` are stored with the run, for
    information only.

    Waiting URLs of some 32 MiB are in memory, and all others on disk.

    Raises StoreError, when it is entered or from the crawl, if the directory cannot be used; its
    text is one line with the cause and the remedy. DifferentCrawl, a StoreError, is raised for
    another `meaning`. Raises TypeError or ValueError, naming the argument, for an invalid value.

    >>> web = Web({"/": html("/a"), "/a": html()})
    >>> async def kept() -> int:
    ...     async with SqliteFrontier("kept", meaning={"seed": web.url}) as frontier:
    ...         return (await Crawler([web.url], fetch=web, frontier=frontier).crawl()).pages
    >>> trio.run(kept)
    2
    >>> with closing(History("kept")) as history:
    ...     sorted(outcome.url for outcome in history.outcomes())
    ['http://site.test/', 'http://site.test/a']
    """

    hosts: Hosts

    def __init__(
        self,
        directory: str | Path,
        *,
        meaning: Mapping[str, Any] | None = None,
        refresh: bool = False,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        check_path("directory", directory)
        check_flag("refresh", refresh)
        for name, given in (("meaning", meaning), ("settings", settings)):
            if given is not None:
                check_json(name, given)
        super().__init__(directory, meaning=meaning, refresh=refresh, settings=settings)
        self._file = DiskQueueFile(self.directory, kind=StoredJob, memory=MEMORY)
        self._index = UrlIndex(10, self._journal)
        self._join = Join()
        self._plan: Plan | None = None
        self._ended: Reason | None = None
        self._over = trio.Event()
        # The number of pages not restored yet, and of pages left for a later run.
        self._stored = self._left = 0
        self._past_urls: Iterator[list[str]] = iter(())
        self._waiting: Iterator[list[WaitingRow]] = iter(())

    async def __aenter__(self) -> Self:
        check_in_trio("SqliteFrontier")
        await self._journal.open()
        return self

    async def __aexit__(self, *error: object) -> None:
        self._file.close()
        hosts = None if self._plan is None else self.hosts
        how = End.CUT_SHORT
        if self._over.is_set():
            early = End.SPENT if self.hosts.is_spent else End.STOPPED
            how = early if self._join.unfinished else End.FINISHED
        reason = None if how is End.FINISHED else self._ended
        await self._journal.close(how, hosts, reason)  # noqa: ASYNC102 - it shields itself

    def __repr__(self) -> str:
        name, now = str(self.directory), self.statistics()
        return f"<SqliteFrontier({name!r}): {now.admitted} admitted, {now.unsettled} unsettled>"

    @property
    def jobs(self) -> JobChannel:
        """The channel from which the workers receive; it ends when the crawl is over."""
        return self.hosts.jobs

    async def open(self, plan: Plan) -> Past | None:
        """Begin a crawl of this plan; return the state that earlier runs left, None if none.

        In the first walk, if it is breadth first, the first of the URLs that wait can be received
        at once.

        Raises RuntimeError when called again, or if the frontier was not entered.
        """
        store = self._journal.store
        if self._plan is not None:
            raise RuntimeError("a frontier serves one crawl: open its directory again")
        check_kind("plan", plan, Plan, "a Plan")
        self._plan = plan
        self._index = UrlIndex(plan.limits.max_redirects, self._journal)
        queue = partial(make_queue, plan.order, partial(DiskQueue, self._file))
        self.hosts = Hosts(plan, end=self.end, queue=queue, choose=self._choose)
        # Bodies are compared by what is stored of them.
        self.hosts.restore_bodies(())
        # While the answers to one set of workers are written, the next set is asked for.
        self._journal.max_at_risk = 2 * plan.workers
        if not (store.resumed or store.walk.number > 1):
            await trio.lowlevel.checkpoint()
            return None
        self._past_urls = self._index.restore(store, plan.checks)
        past = await self._journal.call(self._past)
        # Until `run` has restored each of them.
        self._index.admitted = past.statistics.admitted
        self._stored = past.statistics.waiting
        await self._restore_hosts(plan, past.statistics)
        self._waiting = store.walk.waiting()
        # A refresh asks with validators, which are restored with the URLs. Another order may begin
        # with any of the URLs that wait.
        if store.walk.number == 1 and plan.order is breadth_first:
            await self._admit_waiting(await self._journal.call(partial(next, self._waiting, [])))
        return past

    def _past(self) -> Past:
        """Return the state that earlier runs of this walk left."""
        store, walk = self._journal.store, self._journal.store.walk
        bodies = walk.bodies(originals=True)
        return Past(
            statistics=store.statistics(),
            sitemaps=walk.sitemaps(),
            listings=walk.listings(),
            urls=self._past_urls,
            bodies=((url, digest) for rows in bodies for url, digest, _ in rows),
            outcomes=walk.outcomes(found=False, brief=True),
            facts=self._index.facts,
            redirected=walk.redirected(),
            texts_before=walk.texts_before(),
            texts=walk.texts(),
            checked=self._index.checked,
        )

    async def _restore_hosts(self, plan: Plan, past: Statistics) -> None:
        """Restore the rules of the hosts, and what earlier runs used of the page budget."""
        self.hosts.spend(past.pages + past.failures)
        clocks = trio.current_time(), time.time()
        found = partial(known_rules, self._journal.store, plan.agent, *clocks)
        for origin, rules in await self._journal.call(found):
            self.hosts.restore_rules(f"{origin}/", rules)
        if self.hosts.is_spent:
            self.end(Reason.PAGE_BUDGET)

    async def run(self) -> None:
        """Resume the crawl; return when every job is settled, or the crawl was ended early.

        All changes are written then. Raises StoreError if one cannot be written, and RuntimeError
        before `open`.
        """
        if self._plan is None:
            raise RuntimeError("open the frontier first: await frontier.open(plan)")
        try:
            # All else that earlier runs left: the URLs that the crawler has not asked for, too.
            await self._journal.call(partial(deque, self._past_urls, 0))
            while rows := await self._journal.call(partial(next, self._waiting, None)):
                await self._admit_waiting(rows)
            self.hosts.restored()
            await admit_first(self._plan, self._index.admit, self._admit)
            self._join.done()
            async with trio.open_nursery() as nursery:
                start_soon(nursery, self.hosts.keep_time)
                start_soon(nursery, self._journal.keep_writing, self._written)
                self._written()
                await self._over.wait()
                nursery.cancel_scope.cancel("every admitted URL has its outcome, or waits")
            await self._journal.write()
        finally:
            self.hosts.jobs.end()

    def known(self, urls: Collection[str]) -> set[str]:
        """Return the URLs among `urls` that were admitted with all the redirects of the limit."""
        return self._index.seen.known(urls)

    async def add(self, jobs: Sequence[Job]) -> int:
        """Admit the new pages and sitemaps among `jobs`; return how many were new."""
        # The checkpoint comes first, so that the settlement that follows is in the same batch.
        await trio.lowlevel.checkpoint()
        return 0 if self._join.is_over else self._admit(self._index.admit(jobs))

    async def settle(self, settlement: Settlement) -> None:
        """Admit the successors of a `settlement`, then count its job out, in one atomic step.

        A checkpoint only if too many bytes wait to be written. The change is written later, in one
        transaction.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._journal.is_full:
            await self._journal.wait_for_room()
        counts = self.hosts.settled(settlement)
        if not self._join.unfinished:
            # The robots.txt of a crawl that is over may still arrive.
            settlement = replace(settlement, successors=())
        fresh = self._index.settle(settlement)
        # Also without successors: a page that is settled may release pages that are held.
        self.hosts.admit(fresh)
        if fresh:
            self._join.add(len(fresh))
        if counts:
            self._join.done()

    async def retry(self, attempt: Attempt, seconds: float) -> None:
        """Retry the job of an `attempt`, after `seconds` or later, or else in a later run."""
        await trio.lowlevel.checkpoint_if_cancelled()
        stored = self._index.requeue(attempt.job)
        if self._ended is not None or trio.current_time() + seconds >= self.hosts.deadline:
            self._left += stored.purpose is not Purpose.SITEMAP
            self.hosts.drop(attempt)
        else:
            self.hosts.retry(replace(attempt, job=stored), seconds)
        await trio.lowlevel.cancel_shielded_checkpoint()

    def end(self, reason: Reason) -> None:
        """End the run early: start no more jobs, and keep the waiting URLs for a later run.

        The first reason is kept, as `Run.reason`.
        """
        check_kind("reason", reason, Reason, "a Reason")
        if self._ended is None:
            self._ended = reason
        self._journal.record()
        self._journal.write_soon()

    def statistics(self) -> FrontierStatistics:
        """Return the counts at this moment."""
        if self._plan is None:
            return FrontierStatistics()
        return FrontierStatistics(
            admitted=self._index.admitted,
            waiting=self._stored + self.hosts.waiting + self._left,
            unsettled=self._join.unfinished,
            ready=self.hosts.ready,
            held=self.hosts.held,
            delayed=self.hosts.delayed,
            retries=self.hosts.retries,
        )

    async def _admit_waiting(self, rows: Sequence[WaitingRow]) -> None:
        for start in range(0, len(rows), _TURN):
            jobs = [self._index.recalled(_stored_job(*row)) for row in rows[start : start + _TURN]]
            self._stored -= sum(job.purpose is not Purpose.SITEMAP for job in jobs)
            self._admit(jobs)
            await trio.lowlevel.checkpoint()

    def _admit(self, fresh: Sequence[StoredJob]) -> int:
        self._join.add(len(fresh))
        self.hosts.admit(fresh)
        return len(fresh)

    def _written(self) -> None:
        """Hand out jobs after a transaction, or end the run."""
        ended = self._ended is not None or self._join.is_over
        if ended and not self._journal.at_risk:
            self._over.set()
        self.jobs.hand_out()

    def _choose(self, last: bool) -> Job | None:
        """Return the job to start now; None if no more URLs may be at risk."""
        journal = self._journal
        if self._ended is not None or journal.at_risk >= journal.max_at_risk:
            return None
        job = self.hosts.next_job(last)
        return self._index.hand_out(job) if isinstance(job, StoredJob) else job


def _stored_job(
    number: int,
    url: str,
    purpose: str,
    depth: int,
    redirects: int,
    referrer: str | None,
    priority: float | None,
    tries: int,
    again: int,
) -> StoredJob:
    """Return the job of a stored row."""
    about = (Purpose(purpose), priority, None, None, bool(again), False, False)
    return StoredJob(url, depth, redirects, referrer, tries, *about, number)
