"""The frontier that lasts: all decisions in memory, each change of them in a crawl directory.

▶ A SQLite that knows the seen URLs costs a core of its own. So the seen URLs are known in memory,
as 64-bit keys, and only what is new and what has ended is written: in a thread, by one transaction
for all changes that came meanwhile.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

import trio
from msgspec.structs import replace

from trio_crawler.arguments import check_flag, check_function, check_kind
from trio_crawler.frontier.disk_queue import DiskQueue, DiskQueueFile
from trio_crawler.frontier.join import Join
from trio_crawler.frontier.journal import Journal
from trio_crawler.frontier.protocol import FrontierStatistics, Past
from trio_crawler.frontier.resume import known_rules, past_of
from trio_crawler.frontier.scheduler import Hosts, JobChannel
from trio_crawler.frontier.settlement import Settlement
from trio_crawler.frontier.url_index import StoredJob, UrlIndex
from trio_crawler.in_trio import check_in_trio
from trio_crawler.model import Attempt, Job, Outcome, Purpose, Reason
from trio_crawler.page.read import Facts
from trio_crawler.policy.order import breadth_first
from trio_crawler.policy.plan import Plan
from trio_crawler.store.runs import End
from trio_crawler.store.store import Store
from trio_crawler.store.streams import Stream

# Stored jobs that are admitted at once, before others have their turn.
_TURN = 500


class SqliteFrontier:
    """Keep the frontier of a crawl in a directory, so that a later run can go on with it.

    An async context manager: entering opens the directory, makes it if need be, and keeps others
    out until it is left. However the process ends, no settled outcome is lost, and no more URLs
    are fetched again than the crawler has workers. The records of a `stream` are written together
    with the outcomes.

    When a crawl is ended early, the URLs that wait are not skipped but stay. `refresh` walks a
    site again whose walk has ended, asking by the validators that are stored. `meaning` holds what
    makes it this crawl and no other (by name, anything that JSON can hold): a directory with
    another meaning is refused. `settings` are kept with the run, for readers.

    Beyond some 50,000 waiting URLs the others are on disk, if the order is breadth first; any
    other order keeps all in memory.

    Raises StoreError, on entering or out of the crawl, when the directory cannot be used: its text
    is one line that says why and what to do. DifferentCrawl is one for another `meaning`. Raises
    TypeError, naming it, for an argument that makes no sense.
    """

    __module__ = "trio_crawler"

    hosts: Hosts

    def __init__(
        self,
        directory: str | Path,
        *,
        meaning: Mapping[str, Any] | None = None,
        refresh: bool = False,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        check_kind("directory", directory, (str, Path), "a path")
        check_flag("refresh", refresh)
        for name, given in (("meaning", meaning), ("settings", settings)):
            check_kind(name, given, (Mapping, type(None)), "a mapping of what JSON can hold")
        self.directory = Path(directory)
        self._file = DiskQueueFile(self.directory)
        opened = partial(Store.open, meaning=meaning, refresh=refresh, settings=settings)
        self._journal = Journal(partial(opened, self.directory))
        self._index = UrlIndex(10, self._journal)
        self._join = Join()
        self._plan: Plan | None = None
        self._ending = False
        self._over = trio.Event()
        self._since = 0.0
        # Pages that are not restored yet, and those that are left for a later run.
        self._stored = self._left = 0

    async def __aenter__(self) -> Self:
        check_in_trio("SqliteFrontier")
        await self._journal.open()
        self._since = trio.current_time()
        return self

    async def __aexit__(self, *error: object) -> None:
        self._file.close()
        seconds = trio.current_time() - self._since
        hosts = [] if self._plan is None else self.hosts.statistics().values()
        await self._journal.close(self._how, hosts, seconds)  # noqa: ASYNC102 - it shields itself

    @property
    def _how(self) -> End:
        if not self._over.is_set():
            return End.CUT_SHORT
        early = End.SPENT if self.hosts.is_spent else End.STOPPED
        return early if self._join.unfinished else End.FINISHED

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
        `encode` is called in a thread. A record that a killed run has left half written is
        removed. `head` returns the beginning of a new file, `rest` the bytes that each transaction
        adds besides. To be called before the crawl begins.
        """
        check_kind("path", path, (str, Path), "a path")
        for name, function in (("encode", encode), ("head", head), ("rest", rest)):
            if function is not bytes:
                check_function(name, function, "a function that returns bytes")
        stream = self._journal.store.stream(str(path), encode, head, rest)
        self._journal.streams.append(stream)
        return stream

    def outcomes(self) -> Iterator[Outcome]:
        """Yield the outcomes that this walk has settled so far, the pages without bodies.

        Not while the crawl runs: it has the database for itself.
        """
        return self._journal.store.walk.outcomes()

    def bodies(self) -> Iterator[tuple[str, bytes, float]]:
        """Yield the URL, the SHA-1 and the Unix time of each body that came; as `outcomes`."""
        return (row for rows in self._journal.store.walk.bodies() for row in rows)

    @property
    def jobs(self) -> JobChannel:
        """Where the workers receive their jobs; it ends when all is settled, or the crawl ends."""
        return self.hosts.jobs

    async def open(self, plan: Plan) -> Past | None:
        """Begin a crawl of this plan; return what earlier runs of this walk have left, if any.

        Raises RuntimeError when called again, and when the frontier was not entered.
        """
        store = self._journal.store
        if self._plan is not None:
            raise RuntimeError("a frontier serves one crawl: open its directory again")
        self._plan = plan
        self._index = UrlIndex(plan.limits.max_redirects, self._journal)
        on_disk = plan.order is breadth_first
        queue = partial(DiskQueue, self._file) if on_disk else None
        self.hosts = Hosts(plan, end=self.end, queue=queue, choose=self._choose)
        self._journal.max_at_risk = plan.workers
        if not (store.resumed or store.walk.number > 1):
            await trio.lowlevel.checkpoint()
            return None
        past = await self._journal.ask(partial(past_of, store, self._facts))
        # Until `run` knows each of them.
        self._index.admitted = past.statistics.admitted
        self._stored = past.statistics.waiting
        self.hosts.spend(past.statistics.pages + past.statistics.failures)
        return past

    async def run(self) -> None:
        """Go on where the last run ended; return when all is settled, or the crawl was ended.

        By then all is written. Raises StoreError when something could not be.
        """
        if self._plan is None:
            raise RuntimeError("open the frontier first: await frontier.open(plan)")
        try:
            await self._restore(self._plan)
            self._admit(self._index.enter(self._plan.first_jobs()))
            self._join.done()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.hosts.keep_time)
                nursery.start_soon(self._journal.keep_writing, self._written)
                self._written()
                await self._over.wait()
                nursery.cancel_scope.cancel("every admitted URL has its outcome, or waits")
            await self._journal.write()
        finally:
            self.hosts.jobs.end()

    def known(self, urls: Collection[str]) -> set[str]:
        """Return those of `urls` that were admitted so that no path to them calls for more."""
        return self._index.known(urls)

    async def add(self, jobs: Sequence[Job]) -> int:
        """Admit the new ones among pages and sitemaps; return how many were new."""
        # Before and not after: the settlement that comes next is in the same batch.
        await trio.lowlevel.checkpoint()
        return 0 if self._join.is_over else self._admit(self._index.enter(jobs))

    async def settle(self, settlement: Settlement) -> None:
        """Admit the new successors, then count the job out, in one atomic step.

        A checkpoint only where too many bytes wait to be written. It is written a little later, as
        one transaction.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        await self._journal.room()
        counts = self.hosts.settled(settlement)
        if self._join.is_over:
            # A robots.txt may still be read when the crawl has ended.
            settlement = replace(settlement, successors=())
        self._admit(self._index.settle(settlement))
        if counts:
            self._join.done()

    async def retry(self, attempt: Attempt, seconds: float) -> None:
        """Let a job that was fetched come again, after so many seconds, or in a later run."""
        await trio.lowlevel.checkpoint_if_cancelled()
        stored = self._index.take_back(attempt.job)
        if self._ending or trio.current_time() + seconds >= self.hosts.deadline:
            self._left += stored.purpose is Purpose.PAGE
            self.hosts.drop(attempt)
        else:
            self.hosts.retry(replace(attempt, job=stored), seconds)
        await trio.lowlevel.cancel_shielded_checkpoint()

    def end(self, reason: Reason) -> None:
        """Hand out nothing more: the crawl is ending, and the waiting URLs are for a later run."""
        self._ending = True
        self._journal.record()
        self._journal.hurry()

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

    async def _facts(self, url: str) -> Facts | None:
        """Return what a page said in the last walk in which it came."""
        number = self._index.earlier(url)
        if number is None:
            return None
        return await self._journal.ask(partial(self._journal.store.facts, number))

    async def _restore(self, plan: Plan) -> None:
        """Take over what earlier runs have left."""
        store = self._journal.store
        await self._journal.ask(partial(self._index.restore, store))
        clocks = trio.current_time(), time.time()
        found = partial(known_rules, store, plan.agent, *clocks)
        for origin, rules in await self._journal.ask(lambda: list(found())):
            self.hosts.restore_rules(f"{origin}/", rules)
        if self.hosts.is_spent:
            self.end(Reason.PAGE_BUDGET)
        portions = store.walk.waiting()
        while rows := await self._journal.ask(partial(next, portions, None)):
            for start in range(0, len(rows), _TURN):
                jobs = [_stored_job(*row) for row in rows[start : start + _TURN]]
                self._stored -= sum(job.purpose is Purpose.PAGE for job in jobs)
                self._admit(jobs)
                await trio.lowlevel.checkpoint()
        self.hosts.restored()

    def _admit(self, fresh: Sequence[StoredJob]) -> int:
        self._join.add(len(fresh))
        self.hosts.admit(fresh)
        return len(fresh)

    def _written(self) -> None:
        """Go on after a transaction."""
        ended = self._ending or self._join.is_over
        if ended and not self._journal.at_risk:
            self._over.set()
        self.jobs.hand_out()

    def _choose(self, last: bool) -> Job | None:
        """Choose a job, if one more may be at risk."""
        if self._ending or self._journal.full:
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
) -> StoredJob:
    """Return the job of a row that waits."""
    about = (Purpose(purpose), priority, None, None)
    return StoredJob(url, depth, redirects, referrer, tries, *about, number)
