"""The frontier in memory; the seen set and the counting join, which all frontiers share."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Protocol

import msgspec
import trio
from msgspec.structs import replace

from trio_crawler.arguments import ArgumentError, check_kind, check_methods, check_whole, public
from trio_crawler.frontier.protocol import FrontierStatistics, Past, admit_first
from trio_crawler.in_trio import check_in_trio, start_soon
from trio_crawler.model import CHECKS, Attempt, Failure, Job, Purpose, Reason, Redirect
from trio_crawler.page.urls import seen_key
from trio_crawler.policy.plan import Plan
from trio_crawler.schedule.hosts import Hosts, JobChannel
from trio_crawler.schedule.queues import make_queue
from trio_crawler.settlement import Settlement
from trio_crawler.store.compact import DiskQueue, DiskQueueFile, UrlSet

# The most bytes of waiting jobs in memory. ▶ To write a job to the file and read it takes 1 us.
_WAITING = 4 * 1024 * 1024


@public("trio_crawler.frontier")
class JoinStatistics(msgspec.Struct, frozen=True):
    """The numbers of `unfinished` units, and of `tasks_waiting` in `Join.wait`."""

    unfinished: int
    tasks_waiting: int


@public("trio_crawler.frontier")
class Join:
    """A count of unfinished work, and an event for zero.

    It begins with one unit, for the seeding: without it a crawl without seeds would never reach
    zero. Count successors in before you count their parent out; then zero is reached once, and
    only when nothing can follow. `unfinished` is the number of units that are not done.

    >>> join = Join()
    >>> join.add(2)
    >>> join.done()
    >>> join.unfinished, join.is_over
    (2, False)
    """

    __slots__ = ("_zero", "unfinished")

    def __init__(self) -> None:
        self.unfinished = 1
        self._zero = trio.Event()

    def __repr__(self) -> str:
        return f"<Join: {self.unfinished} unfinished>"

    def add(self, n: int = 1) -> None:
        """Count `n` more units in.

        Raises RuntimeError after zero was reached: the tasks that waited have already gone on.
        Raises ValueError if `n` is negative.
        """
        if not isinstance(n, int):
            check_kind("n", n, int, "a number of units")
        if n < 0:
            raise ValueError(f"cannot add {n} units: call done() to count out")
        if self._zero.is_set():
            raise RuntimeError("the join has reached zero: count work in before its parent is out")
        self.unfinished += n

    def done(self) -> None:
        """Count one unit out. Raises RuntimeError if none is left."""
        if not self.unfinished:
            raise RuntimeError("done() was called more often than units were added")
        self.unfinished -= 1
        if not self.unfinished:
            self._zero.set()

    @property
    def is_over(self) -> bool:
        """Whether every unit is done; then no more can be counted in."""
        return not self.unfinished

    async def wait(self) -> None:
        """Wait until every unit is done."""
        await self._zero.wait()

    def statistics(self) -> JoinStatistics:
        """Return the counts at this moment."""
        return JoinStatistics(self.unfinished, self._zero.statistics().tasks_waiting)


@public("trio_crawler.frontier")
class Urls(Protocol):
    """A set of URLs, such as a set of str.

    >>> urls: Urls = set[str]()
    >>> seen = Seen(max_redirects=10, done=urls)
    >>> seen.admit(Job("https://e.org/")) is None, seen.admit(Job("https://e.org/")) is None
    (False, True)
    """

    def add(self, url: str, /) -> None:
        """Add a `url`."""

    def update(self, urls: Iterable[str], /) -> None:
        """Add many URLs."""

    def intersection(self, urls: Collection[str], /) -> set[str]:
        """Return the URLs among `urls` that are in the set."""

    def __contains__(self, url: object, /) -> bool: ...

    def __len__(self) -> int: ...


_URLS = ("add", "update", "intersection", "__contains__", "__len__")


@public("trio_crawler.frontier")
class Seen:
    """The seen URLs: they decide whether a job is fetched, or another one in its place.

    A URL that is first found at the end of a redirect chain has few redirects left. When it is
    found again on a path with more redirects left, it must not be fetched twice, but the chain
    that was cut must go on. So for each URL that was admitted with less than the full budget,
    this class keeps the redirects left and the target. A path with more redirects left follows
    these targets, and goes on where the first path ran out.

    A job with `again` is fetched although its URL was admitted before, but once at most: this is
    the bound on a site that leads back to each URL with another cookie. `len` counts admissions.

    `done` keeps the URLs that were admitted with the full budget; by default it is a set of str.

    A frontier that lasts gives its URLs numbers, by `number`. When the budget of such a URL is
    raised, `raised` gets (redirects, number). The frontier stores these pairs and clears the list.

    >>> seen = Seen(max_redirects=10)
    >>> len(seen.admit_all([Job("https://e.org/~ann"), Job("https://e.org/%7Eann")]))
    1
    >>> "https://e.org/~ann" in seen
    True
    """

    __slots__ = (
        *("_again", "_checks", "_done", "_fragments", "_full", "_hops", "_left", "_numbers"),
        *("_sitemaps", "raised"),
    )

    def __init__(self, max_redirects: int = 10, done: Urls | None = None) -> None:
        check_whole("max_redirects", max_redirects)
        if done is not None:
            check_methods("done", done, _URLS, "a set of URLs, such as a set of str")
        self._full = max_redirects
        # A URL that was admitted with the full budget is in the first, any other in the second.
        self._done: Urls = set() if done is None else done
        self._left: dict[str, int] = {}
        self._hops: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._sitemaps: set[str] = set()
        self._again = UrlSet()
        # Of the URLs outside the crawl, all that are checked, and those that are checked with
        # their fragments.
        self._checks, self._fragments = UrlSet(), UrlSet()
        self.raised: list[tuple[int, int]] = []

    def __len__(self) -> int:
        pages = len(self._done) + len(self._left) + len(self._again)
        return pages + len(self._checks) + len(self._fragments)

    def __contains__(self, url: str) -> bool:
        key = seen_key(url)
        return key in self._done or key in self._left

    def known(self, urls: Collection[str]) -> set[str]:
        """Return those of `urls` that were admitted with the full budget of redirects."""
        # Nearly all links of nearly all pages are known, and equal to their keys: one step in C
        # finds these, at a quarter of the cost of a look-up for each.
        known = self._done.intersection(urls)
        if len(known) < len(urls):
            others = [url for url in urls if url not in known and "%" in url]
            known.update([url for url in others if seen_key(url) in self._done])
        return known

    def admit_all(self, jobs: Iterable[Job]) -> list[Job]:
        """Return the jobs to fetch for `jobs`, as `admit` does for one."""
        fresh = []
        for job in jobs:
            if (new := self.admit(job)) is not None:
                fresh.append(new)
        return fresh

    def admit(self, job: Job) -> Job | None:
        """Return the job to fetch for `job`: itself, the target of a chain that was cut, or None.

        Record its URL as seen. A sitemap counts apart from a page of the same URL.
        """
        if job.purpose is Purpose.SITEMAP or job.purpose is Purpose.SEEDS:
            if job.url in self._sitemaps:
                return None
            self._sitemaps.add(job.url)
            return job
        if job.purpose in CHECKS:
            return self._admit_check(job)
        if job.again:
            key = seen_key(job.url)
            if job.redirects >= 0 and key not in self._again and job.url in self:
                self._again.add(key)
                return job
            job = replace(job, again=False)
        while True:
            key = seen_key(job.url) if "%" in job.url else job.url
            if key in self._done:
                return None
            if key not in self._left:
                break
            if job.redirects <= self._left[key]:
                return None
            self._left[key] = job.redirects
            if key in self._numbers:
                self.raised.append((job.redirects, self._numbers[key]))
            if key not in self._hops:
                return None
            job = replace(job, url=self._hops[key], redirects=job.redirects - 1, referrer=job.url)
        if job.redirects < 0:
            return None
        if job.redirects < self._full:
            self._left[key] = job.redirects
        else:
            self._done.add(key)
        return job

    def _admit_check(self, job: Job) -> Job | None:
        """Return the check to make; None if its URL is a page, or was checked as well as that.

        A URL that was checked without its fragments is admitted again.
        """
        key = seen_key(job.url)
        if job.redirects < 0 or key in self._fragments or job.url in self:
            return None
        checked = key in self._checks
        if job.purpose is Purpose.FRAGMENTS:
            self._fragments.add(key)
            return replace(job, again=checked)
        if checked:
            return None
        self._checks.add(key)
        return job

    def number(self, url: str, number: int) -> None:
        """Record the `number` under which a `url` was stored when it was admitted.

        Call it at least for URLs with less than the full budget.
        """
        key = seen_key(url)
        if key in self._left:
            self._numbers[key] = number

    def successors(self, settlement: Settlement) -> Sequence[Job]:
        """Return the successors of a settlement, with the redirects that they have left.

        A link has the full budget. The target of a redirect has one less than the URL that
        redirects. If several paths lead to that URL, the one with the most redirects left counts.
        """
        if not isinstance(settlement.outcome, Redirect | Failure):
            return settlement.successors
        url = settlement.job.url
        followed = [
            self.follow(url, job) if job.referrer == url and job.purpose not in CHECKS else job
            for job in settlement.successors
        ]
        # A URL that was admitted again has the redirects that its own chain has left.
        return settlement.successors if settlement.job.again else followed

    def follow(self, url: str, job: Job) -> Job:
        """Record that `url` redirects to `job`; return the job with the redirects it has left."""
        key = seen_key(url)
        if key not in self._left:
            return job
        self._hops[key] = job.url
        return replace(job, redirects=max(job.redirects, self._left[key] - 1))

    def restore(self, rows: Iterable[tuple[int, str, int]]) -> None:
        """Add `rows` of URLs that earlier runs admitted: number, URL, and redirects left."""
        self._done.update(self._restored(rows))

    def _restored(self, rows: Iterable[tuple[int, str, int]]) -> Iterator[str]:
        full = self._full
        for number, url, redirects in rows:
            key = seen_key(url) if "%" in url else url
            if redirects >= full:
                yield key
            else:
                self._left[key] = redirects
                self._numbers[key] = number

    def restore_others(self, others: Iterable[tuple[str, Purpose]]) -> None:
        """Add `others` that were admitted: URLs of sitemaps and checks, each with its purpose."""
        for url, purpose in others:
            if purpose is Purpose.SITEMAP:
                self._sitemaps.add(url)
            else:
                known = self._checks if purpose is Purpose.CHECK else self._fragments
                known.add(seen_key(url))

    def restore_again(self, urls: Iterable[str]) -> None:
        """Add the `urls` that were admitted again and need not be once more."""
        self._again.update(map(seen_key, urls))

    def restore_hops(self, hops: Iterable[tuple[str, str]]) -> None:
        """Add `hops`, redirects of earlier runs: URL and target. Call it after `restore`."""
        for url, target in hops:
            key = seen_key(url)
            if key in self._left:
                self._hops[key] = target


@public("trio_crawler")
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
