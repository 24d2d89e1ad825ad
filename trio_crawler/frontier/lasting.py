"""What a frontier that lasts keeps: its journal, and its URLs with their numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from struct import Struct
from typing import Any, TypeVar

import trio
from msgspec.structs import astuple, replace

from trio_crawler.arguments import check_flag, check_function, check_path
from trio_crawler.frontier.memory import Seen
from trio_crawler.model import CHECKS, COUNTED, Checked, Job, Outcome, Purpose, Reason, Validator
from trio_crawler.page.read import Facts
from trio_crawler.page.urls import origin
from trio_crawler.policy.answers import validator_of
from trio_crawler.policy.robots import KnownRules, interpret
from trio_crawler.policy.settings import Checks
from trio_crawler.schedule.hosts import Hosts
from trio_crawler.settlement import RobotsRules, Settlement, SitemapRead
from trio_crawler.store.compact import UrlSet
from trio_crawler.store.runs import End
from trio_crawler.store.store import Store
from trio_crawler.store.streams import Stream
from trio_crawler.store.writer import Batch

PAUSE = 0.02
"""Seconds to wait for more changes before a batch is written, unless a worker waits for it."""

MAX_BYTES = 16 * 1024 * 1024
"""The most bytes of pages that wait to be written, before `wait_for_room` waits."""

_T = TypeVar("_T")


class Journal:
    """Collect changes in `batch`, and write one batch at a time in a thread.

    `at_risk` counts the URLs that workers have received and that are not written as settled yet:
    after a kill these would be fetched again. The caller sets `max_at_risk`, and hands out no more
    jobs while as many are at risk.
    """

    def __init__(self, make: Callable[[], Store]) -> None:
        self.batch = Batch()
        self.streams: list[Stream] = []
        self.at_risk = 0
        self.max_at_risk = 0
        self._make = make
        self._opened: Store | None = None
        self._thread = trio.CapacityLimiter(1)
        self._broken = False
        self._ended = self._bytes = 0
        self._since = 0.0
        self._recorded = trio.Event()
        self._urgent = trio.Event()
        self._written = trio.Event()

    @property
    def store(self) -> Store:
        """Return the store. Raises RuntimeError when it is not open."""
        if self._opened is None:
            raise RuntimeError("enter the frontier first: async with SqliteFrontier(...)")
        return self._opened

    async def open(self) -> None:
        """Open the store. Raises StoreError."""
        self._opened = await trio.to_thread.run_sync(self._make)
        self._since = trio.current_time()

    async def close(self, how: End, hosts: Hosts | None, reason: Reason | None) -> None:
        """Write the last batch and the end of the run, and close the store. Raises StoreError.

        `hosts` are those of the run, None if no crawl has begun, and `reason` is why it ended
        early.
        """
        now = trio.current_time()
        # Read in the thread.
        rows = [] if hosts is None else hosts.statistics(now).values()
        ended = partial(self.store.end, how, rows, now - self._since, reason)
        # Shielded: it takes no longer than a transaction.
        with trio.CancelScope(shield=True):
            try:
                await self.write()
                if not self._broken:
                    await self.call(ended)
            finally:
                await self.call(self.store.close)  # noqa: ASYNC102 - the store has its own time-out

    def record(self) -> None:
        """Record that something was added to the batch."""
        self._recorded.set()

    def settle(
        self, number: int, outcome: Outcome, size: int, digest: bytes | None = None
    ) -> None:
        """Record the outcome of a URL, of this size, and its records in the streams."""
        self.batch.settled.append((number, time.time(), outcome))
        if digest is not None:
            self.batch.digests[number] = digest
        for stream in self.streams:
            # Now, since records that are added later belong to another outcome.
            self.batch.writes.append((stream, stream.pop()))
        self._bytes += size
        self.end()

    def learn(self, learned: RobotsRules | SitemapRead, number: int = 0) -> None:
        """Record a robots.txt or a sitemap, of this number, and the sitemaps rejected there."""
        if isinstance(learned, SitemapRead):
            row = number, learned.sitemap, list(learned.listings.items())
            self.batch.sitemaps.append(row)
        elif learned.answer is not None:
            self.batch.robots.append((origin(learned.url), time.time(), learned.answer))
        self.batch.sitemaps += [(0, sitemap, []) for sitemap in learned.rejected]
        self._recorded.set()

    def end(self) -> None:
        """Record that one URL less is at risk after this batch."""
        self._ended += 1
        self._recorded.set()
        # A transaction is expensive, so a batch waits for three quarters of `max_at_risk`. The
        # workers with the other quarter go on meanwhile.
        if self._ended * 4 >= self.max_at_risk * 3 or self._ended == self.at_risk:
            self.write_soon()

    def write_soon(self) -> None:
        """Write the batch without waiting for more changes."""
        self._urgent.set()

    @property
    def is_full(self) -> bool:
        """Whether too many bytes wait to be written."""
        return self._bytes > MAX_BYTES

    async def wait_for_room(self) -> None:
        """Wait while too many bytes wait to be written; otherwise this is not a checkpoint."""
        while self.is_full:
            self.write_soon()
            await self._written.wait()

    async def call(self, question: Callable[[], _T]) -> _T:
        """Return the result of a function of the store, called in the thread between batches."""
        return await trio.to_thread.run_sync(question, limiter=self._thread)

    async def keep_writing(self, written: Callable[[], None]) -> None:
        """Write batch after batch until cancelled; call `written` after each."""
        while True:
            await self._recorded.wait()
            with trio.move_on_after(PAUSE):
                await self._urgent.wait()
            await self.write()
            written()

    async def write(self) -> None:
        """Write the batch. Raises StoreError; after that nothing more is written."""
        if self._broken:
            return
        batch, ended, size = self.batch, self._ended, self._bytes
        self.batch, self._ended = Batch(), 0
        self._recorded, self._urgent = trio.Event(), trio.Event()
        self._broken = True
        # Shielded: it takes no longer than a transaction, and no change may be lost.
        with trio.CancelScope(shield=True):
            await self.call(partial(self.store.write, batch))
        self._broken = False
        self.at_risk -= ended
        self._bytes -= size
        self._written.set()
        self._written = trio.Event()


class Kept:
    """A crawl directory that a journal writes; `how` is for `Store.open`."""

    def __init__(self, directory: str | Path, **how: Any) -> None:
        self.directory = Path(directory)
        self._journal = Journal(partial(Store.open, self.directory, **how))

    def stream(
        self,
        path: str | Path,
        encode: Callable[[Outcome], bytes],
        head: Callable[[], bytes | Iterable[bytes]] = bytes,
        rest: Callable[[], bytes] = bytes,
        *,
        private: bool = False,
    ) -> Stream:
        """Return a stream to a file with exactly one record of each outcome, also after kills.

        Pass each outcome to the stream's `add`. Its record, `encode(outcome)`, is made in a thread
        and written when the outcome is settled. A record that a killed run left half written is
        removed. `head` returns the first bytes of a new file, at once or in pieces, `rest` more
        bytes to append with each transaction. Only its owner may read a new file that is `private`
        or in the directory of the crawl. Call this before the crawl begins; the frontier closes
        the stream.
        """
        check_path("path", path)
        for name, function in (("encode", encode), ("head", head), ("rest", rest)):
            if function is not bytes:
                check_function(name, function, "a function that returns bytes")
        check_flag("private", private)
        stream = self._journal.store.stream(path, encode, head, rest, private=private)
        self._journal.streams.append(stream)
        return stream

    def outcomes(self, *, brief: bool = False) -> Iterator[Outcome]:
        """Yield the outcomes that this walk has settled so far; the pages have no bodies.

        With `brief` they have less, as those of `History.outcomes`. Do not call this while the
        crawl runs: it uses the database in another thread.
        """
        return self._journal.store.walk.outcomes(found=not brief, brief=brief)

    def bodies(self) -> Iterator[tuple[str, bytes, float]]:
        """Yield the URL, the SHA-1 and the Unix time of each body; call it as `outcomes`."""
        return (row for rows in self._journal.store.walk.bodies() for row in rows)


LONG = 200
"""A URL with more characters is stored once, and by its number where a page links to it."""

_time = Struct("<d")


class StoredJob(Job, frozen=True, array_like=True):
    """A job with the number of its URL."""

    number: int = 0

    @classmethod
    def of(cls, job: Job, number: int) -> StoredJob:
        """Return a job with its number."""
        return cls(
            job.url,
            job.depth,
            job.redirects,
            job.referrer,
            job.tries,
            job.purpose,
            job.priority,
            job.validator,
            job.blocked,
            job.again,
            job.repeat,
            job.recalled,
            number,
        )


class UrlIndex:
    """The seen URLs and the jobs that workers have; each change is recorded in the journal."""

    def __init__(self, max_redirects: int, journal: Journal) -> None:
        self._max_redirects = max_redirects
        self.seen = Seen(max_redirects, UrlSet())
        self.admitted = 0
        self._journal = journal
        # Apart from one that was admitted again: in a damaged directory both may be in flight.
        self._in_flight: dict[tuple[Purpose, str, bool], StoredJob] = {}
        # The numbers of the long URLs among them.
        self._numbers: dict[str, int] = {}
        # Both by the hash of the URL, like `UrlSet`. The pages that an earlier walk fetched: their
        # numbers and validators in latin-1. ▶ With both validators one takes 260 bytes of memory.
        self._earlier: dict[int, tuple[int, bytes]] = {}
        # The URLs outside the crawl that an earlier walk found fine, not long ago; the numbers of
        # those without places are negative. ▶ One takes some 120 bytes.
        self._checks: dict[int, int] = {}
        self._number = self._restored = 0

    def restore(self, store: Store, checks: Checks) -> Iterator[list[str]]:
        """Restore what earlier runs left, and yield the URLs of the pages in portions.

        With these `checks` the crawl goes on. All is restored at the end of the iterator.

        ▶ The traps want the URLs, too: to read a million of them twice takes two seconds more.
        """
        # Room for all of them from the beginning saves a third of the time.
        self.seen = Seen(self._max_redirects, UrlSet(self.admitted))
        for rows in store.walk.urls():
            self.seen.restore(rows)
            self._restored += len(rows)
            yield [url for _, url, _ in rows]
        self._number = store.last_number()
        others = [(url, Purpose(purpose)) for url, purpose in store.walk.others()]
        self.seen.restore_others(others)
        outside = sum(purpose in CHECKS for _, purpose in others)
        again = store.walk.again()
        # A second asking that waited goes out without its session, so a login may lead back once
        # more. Else all that lies behind the login would be lost.
        self.seen.restore_again(url for url, _, ended in again if ended)
        self.admitted = self._restored + len(again) + outside
        self.seen.restore_hops(store.walk.hops())
        for url, number, (etag, modified, digest, began) in store.validators(checks):
            headers = f"{etag or ''}\n{modified or ''}\n".encode("latin-1")
            answer = _time.pack(began or 0) + (digest or b"")
            self._earlier[hash(url)] = number, headers + answer
        for url, (number, places) in store.fine_checks(checks.max_age) if checks.max_age else ():
            self._checks[hash(url)] = number if places else -number

    def admit(self, jobs: Iterable[Job]) -> list[StoredJob]:
        """Return the new jobs among `jobs`, each with a new number."""
        fresh = [self._store(job) for job in self.seen.admit_all(jobs)]
        if fresh:
            self._journal.record()
        if self.seen.raised:
            self._journal.batch.raised_redirects.extend(self.seen.raised)
            self.seen.raised.clear()
        return fresh

    def _store(self, job: Job) -> StoredJob:
        if job.purpose is Purpose.SEEDS:
            # Not stored: each run reads the stream, and passes over what is stored.
            return StoredJob.of(job, 0)
        self._number += 1
        self.admitted += job.purpose in COUNTED
        if job.again:
            self._journal.batch.again.append(self._number)
        elif job.redirects < self._max_redirects:
            self.seen.number(job.url, self._number)
        referrer: str | int | None = job.referrer
        if job.referrer is not None and len(job.referrer) > LONG:
            referrer = self._numbers.get(job.referrer, job.referrer)
        about = (job.depth, job.redirects, referrer, job.priority)
        self._journal.batch.admitted.append((self._number, job.url, str(job.purpose), *about))
        stored = StoredJob.of(job, self._number)
        return self.recalled(stored) if self._checks else stored

    def recalled(self, job: StoredJob) -> StoredJob:
        """Return a job marked `recalled` if all that it asks for is known, else itself."""
        if not self._checks or job.purpose not in CHECKS or job.tries:
            return job
        number = self._checks.get(hash(job.url), 0)
        known = number > 0 or (number < 0 and job.purpose is Purpose.CHECK)
        return replace(job, recalled=True) if known else job

    async def checked(self, url: str) -> Checked:
        """Return what an earlier walk found at a URL whose job is `recalled`."""
        number = abs(self._checks[hash(url)])
        return await self._journal.call(partial(self._journal.store.check, number))

    def hand_out(self, job: StoredJob) -> Job:
        """Record that a worker receives a job; return the job, conditional if that is possible."""
        self._in_flight[job.purpose, job.url, job.again] = job
        if len(job.url) > LONG:
            self._numbers[job.url] = job.number
        self._journal.at_risk += 1
        known = self._earlier.get(hash(job.url)) if self._earlier else None
        if known is None or job.purpose is not Purpose.PAGE or job.blocked is not None:
            return job
        *headers, answer = known[1].split(b"\n", 2)
        etag, modified = (each.decode("latin-1") or None for each in headers)
        (began,) = _time.unpack_from(answer)
        digest = answer[_time.size :] or None
        return replace(job, validator=Validator(etag, modified, digest, began))

    def _taken_back(self, job: Job) -> StoredJob:
        self._numbers.pop(job.url, None)
        return self._in_flight.pop((job.purpose, job.url, job.again))

    def requeue(self, job: Job) -> StoredJob:
        """Record that a job that a worker had waits again; return it with its number."""
        before = self._taken_back(job)
        batch = self._journal.batch
        batch.tried.append((before.number, job.tries))
        batch.retries += job.tries > before.tries and not job.repeat
        self._journal.end()
        return StoredJob.of(job, before.number)

    def settle(self, settlement: Settlement) -> list[StoredJob]:
        """Record the settlement of a job; return its new successors."""
        job, learned = settlement.job, settlement.learned
        fresh: list[StoredJob] = []
        if settlement.successors:
            fresh = self.admit(self.seen.successors(settlement))
        if settlement.outcome is not None:
            number = self._taken_back(job).number
            for each in fresh:
                if len(each.url) > LONG:
                    self._journal.batch.found.setdefault(number, {})[each.url] = each.number
            if settlement.repeated is not None:
                row = (number, *astuple(settlement.repeated))
                self._journal.batch.repeated.append(row)
            self._journal.settle(number, settlement.outcome, settlement.size, settlement.digest)
        elif isinstance(learned, SitemapRead):
            self._journal.learn(learned, self._taken_back(job).number)
            self._journal.end()
        elif isinstance(learned, RobotsRules):
            # Not before the sitemaps that it names: these are in this batch, or written.
            self._journal.learn(learned)
        elif job.purpose is Purpose.SEEDS:
            # Nothing is stored, but what has ended with it is noticed after a transaction.
            self._journal.record()
        return fresh

    async def facts(self, url: str) -> Facts | None:
        """Return the facts of a page from the last walk that fetched it; None if unknown."""
        if (known := self._earlier.get(hash(url))) is None:
            return None
        return await self._journal.call(partial(self._journal.store.facts, known[0]))


def known_rules(
    store: Store, token: str, now: float, today: float
) -> list[tuple[str, KnownRules]]:
    """Return each origin with robots.txt rules from an earlier run of this walk, and the rules.

    The rules of an earlier walk are not used: each walk reads robots.txt again, and the sitemaps
    that it names. `now` and `today` are the same moment, by Trio's clock and as Unix time. Call
    this in a thread, since many files take long.
    """
    began, found = store.walk.began(), list[tuple[str, KnownRules]]()
    for name, at, answer in store.robots():
        rules = interpret(answer, token) if at >= began else None
        if rules is not None:
            # If the clock was set back, the rules must not stay valid for longer.
            age = max(today - at, 0.0)
            found.append((name, KnownRules(rules, now - age, validator_of(answer.headers))))
    return found
