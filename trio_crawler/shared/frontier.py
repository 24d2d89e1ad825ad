"""The shared frontier: a store has the truth, and each worker decides about the hosts it holds."""

# No `from __future__ import annotations` here: `typing.get_type_hints` would look the names up in
# `__module__`, which is set to another module.

import json
import math
import os
import socket
import uuid
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from operator import attrgetter
from pathlib import Path
from typing import Any, Self

import msgspec
import trio
from msgspec.structs import replace

from trio_crawler.arguments import (
    ArgumentError,
    check_flag,
    check_json,
    check_kind,
    check_methods,
    check_number,
    check_path,
    check_whole,
    public,
)
from trio_crawler.frontier.lasting import StoredJob
from trio_crawler.frontier.protocol import FrontierStatistics
from trio_crawler.in_trio import check_in_trio, start_soon
from trio_crawler.model import COUNTED, Attempt, Failure, Job, Page, Purpose, Reason
from trio_crawler.policy.plan import Plan
from trio_crawler.schedule.hosts import Hosts, JobChannel
from trio_crawler.settlement import Settlement
from trio_crawler.shared.leases import Leases, WorkerDirectory
from trio_crawler.shared.message import (
    Child,
    Join,
    Joined,
    Refused,
    Reply,
    SharedStore,
    Work,
    child,
    key_of,
    packed,
    place_of,
)
from trio_crawler.store.compact import UrlSet
from trio_crawler.store.errors import DifferentCrawl
from trio_crawler.store.runs import End

_MOST_HOSTS, _MOST_JOBS = 256, 20_000
"""The most hosts that a worker holds, and the most jobs that wait there."""

_MOST_FOUND = 5_000
"""The most jobs that one message tells of: the server takes about 6 us for each."""

# ▶ A message waits for two disks. With two URLs at risk for each of a hundred tasks, all of these
# waited at every second message; with four at every tenth.
MOST_AT_RISK, _PORTION = 64, 500
# Seconds: how long a call waits for more to send, if the worker is short of work and if it is not;
# the longest time between two calls; and before the end of its lease from which on a worker starts
# no request.
_PAUSE, _PATIENT, _EVERY, _MARGIN = 0.02, 0.08, 0.25, 1.0
_LEAVING = 5.0
_REMEDY = "give another name, or drop that crawl"
_STRANDS, _SALT, _WORD = "strands", 16, 16
_ENDLESS = 1 << 52  # milliseconds that each program can count


@dataclass(slots=True)
class _Found:
    """Jobs that may be new; when the store has them, `new` is how many were."""

    jobs: list[Child]
    told: trio.Event = field(default_factory=trio.Event)
    new: int = 0


@dataclass(slots=True)
class _Changes:
    """What the store does not know yet: see `Work`."""

    found: list[_Found] = field(default_factory=list)
    ended: list[tuple[int, str]] = field(default_factory=list)
    pages: int = 0
    spent: int = 0


@public("trio_crawler.shared")
class SharedFrontier:
    """The frontier of one worker of a crawl that several share by a `store`.

    All of them must have the same `meaning`, what defines the crawl. The first one brings it;
    without one a worker joins a crawl that has begun. A worker holds hosts for `ttl` seconds after
    its last call; then others get what it has. No request starts later than a second before that.
    Admission, levels, the page budget and the end are those of the whole crawl; politeness is
    kept, since one worker at a time holds a host. The time budget of the first worker ends all at
    the same moment, by the store's clock; a later one may have a shorter one of its own. When all
    have left, the next one may bring other budgets of pages and time. Traps, retries, copies and
    cookies are those of each worker, and a URL keeps the redirects that it was first found with.

    With a `directory` it keeps its outcomes there, as `SqliteFrontier` does, with `settings` for
    readers of the directory: enter it by `async with`. Each transaction is on the disk before the
    store hears of it. If a worker is killed, an outcome may be in the directories of two workers,
    and counts once: see `merge`.

    The worker that begins the crawl may divide each host in `strands`, by hash of the URL, for
    hosts that may be asked by several workers at once: those of the crawl's owner, without a
    delay. Each worker has its share of `per_host` then, which must be at least as large.

    The crawl is not over before a worker has told all of its `seeds`. If a worker has only some of
    them, or if another one tells them, let it have none: `seeds=False`.
    `ended` is why it was ended early, None if it was not. `run` raises Refused if the store has
    given its hosts to others.
    """

    hosts: Hosts

    def __init__(
        self,
        store: SharedStore,
        *,
        meaning: Mapping[str, Any] | None = None,
        ttl: float = 10.0,
        directory: str | Path | None = None,
        settings: Mapping[str, Any] | None = None,
        strands: int = 1,
        seeds: bool = True,
    ) -> None:
        check_flag("seeds", seeds)
        check_whole("strands", strands, least=1)
        check_methods("store", store, ("call",), "a SharedStore, such as that of opened_store")
        check_number("ttl", ttl, least=2)
        for name, given in (("meaning", meaning), ("settings", settings)):
            if given is not None:
                check_json(name, given)
        self._directory: WorkerDirectory | None = None
        if directory is not None:
            check_path("directory", directory)
            self._directory = WorkerDirectory(directory, meaning, settings)
        self._store = store
        if meaning is not None and strands > 1:
            meaning = {**meaning, _STRANDS: strands}
        self._meaning = "" if meaning is None else json.dumps(meaning, sort_keys=True)
        self._ttl, self._lease, self._seeds = ttl, int(ttl * 1000), seeds
        # For those who look at the store; the last part is new at each start.
        self._name = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:_WORD]}"
        self._plan: Plan | None = None
        self.ended: Reason | None = None
        self._joined = self._seeded = self._over = False
        self._salt = b""
        # The keys that this worker has found or was granted.
        self._met, self._met_others = UrlSet(), set[tuple[bytes, str]]()
        self._leases = Leases(strands)
        # The jobs that tasks have, and how many of them the store does not know as ended.
        self._out: dict[tuple[Purpose, str], StoredJob] = {}
        self._at_risk = self._most_at_risk = self._handed = self._left = 0
        self._next, self._sent = _Changes(), _Changes()
        self._seq = self._added = self._done = 0
        self._deadline = -math.inf
        self._due = _EVERY
        self._noted, self._urgent = trio.Event(), trio.Event()

    @property
    def kept(self) -> WorkerDirectory:
        """The directory of this worker, for streams beside it. Raises RuntimeError without one."""
        if self._directory is None:
            raise RuntimeError("name a directory: SharedFrontier(store, directory=...)")
        return self._directory

    async def __aenter__(self) -> Self:
        check_in_trio("SharedFrontier")
        if self._directory is not None:
            await self._directory.open()
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._directory is None:
            return
        how = End.FINISHED
        if not self._over:
            early = End.SPENT if self.ended is Reason.PAGE_BUDGET else End.STOPPED
            how = End.CUT_SHORT if self.ended is None else early
        hosts, reason = None if self._plan is None else self.hosts, self.ended
        await self._directory.journal.close(how, hosts, None if self._over else reason)  # noqa: ASYNC102 - it shields itself

    @property
    def jobs(self) -> JobChannel:
        """The channel from which the workers receive; it ends when the crawl is over."""
        return self.hosts.jobs

    async def open(self, plan: Plan) -> None:
        """Join the crawl. Raises ArgumentError for a plan that workers cannot share.

        Raises RuntimeError when called again, DifferentCrawl if the crawl has another meaning or
        its workers another budget, Refused if there is none yet and this worker brings none.
        """
        check_in_trio("SharedFrontier")
        if self._plan is not None:
            raise RuntimeError("a frontier serves one crawl: make another SharedFrontier")
        check_kind("plan", plan, Plan, "a Plan")
        if plan.checks.any:
            raise ArgumentError("checks", " of links cannot be shared by workers: leave them out")
        if plan.seed_stream is not None and not self._seeds:
            raise ArgumentError("seed_stream", " has seeds, and the frontier takes none")
        self._check_strands(plan)
        self._plan, limits = plan, plan.limits
        self._most_at_risk = max(MOST_AT_RISK, 4 * plan.workers)
        self.hosts = Hosts(plan, end=self.end, choose=self._choose, gated=False)
        budget = -1 if limits.max_pages == math.inf else int(limits.max_pages)
        levels, salt = limits.max_depth < math.inf, os.urandom(_SALT).hex()
        limit, began = int(min(limits.max_seconds * 1000, _ENDLESS)), trio.current_time()
        join = Join(self._name, self._lease, self._meaning, salt, budget, levels, limit)
        reply = await self._store.call("join", packed(join))
        joined = msgspec.msgpack.decode(reply, type=Joined)
        stored, given = json.loads(joined.meaning), json.loads(self._meaning or "{}")
        self._leases.strands = stored.pop(_STRANDS, 1)
        if budget >= 0:
            stored["max_pages"], given["max_pages"] = joined.budget, budget
        try:
            DifferentCrawl.check("the store", stored, given, _REMEDY)
            self._check_strands(plan)
        except (DifferentCrawl, ArgumentError):
            await self._leave()  # noqa: ASYNC120 - it shields itself
            raise
        self.hosts.deadline = began + joined.left / 1000
        self._joined, self._seeded, self._salt = True, joined.seeded, bytes.fromhex(joined.salt)

    def _check_strands(self, plan: Plan) -> None:
        """Raise ArgumentError if workers cannot ask a host at the same time."""
        polite, strands = plan.politeness, self._leases.strands
        self._leases.per_host = polite.per_host
        asked = polite.robots or polite.delay or polite.adaptive or polite.hosts
        if strands > 1 and (asked or polite.per_host < strands):
            need = f"robots=False, no delay, and per_host={strands} or more"
            raise ArgumentError("politeness", f" must have {need}: a host has so many strands")

    async def run(self) -> None:
        """Seed the crawl and work; return when that is over. Raises RuntimeError before `open`."""
        if self._plan is None:
            raise RuntimeError("open the frontier first: await frontier.open(plan)")
        try:
            if self._seeds and not self._seeded and self.ended is None:
                await self._seed(self._plan)
            async with trio.open_nursery() as nursery:
                start_soon(nursery, self.hosts.keep_time)
                await self._keep_working(self._plan)
                nursery.cancel_scope.cancel("the crawl is over, or this worker leaves it")
        finally:
            self.hosts.jobs.end()
            if self._joined:
                await self._leave()  # noqa: ASYNC102 - it shields itself

    async def _leave(self) -> None:
        """Return all hosts and jobs to the store. Other workers get them at once."""
        with trio.move_on_after(_LEAVING, shield=True):
            await self._store.call("leave", packed(self._name))

    async def _seed(self, plan: Plan) -> None:
        rest = plan.first_jobs()
        stream = False
        while jobs := list(islice(rest, _PORTION)):
            stream = jobs[-1].purpose is Purpose.SEEDS
            self._find(jobs[:-1] if stream else jobs)
            if len(jobs) == _PORTION:
                await self._exchange(plan)
        # A stream ends when its job is settled.
        self._seeded = not stream
        await self._exchange(plan)
        if stream:
            self.hosts.seeding.begun.set()

    def known(self, urls: Collection[str]) -> set[str]:
        """Return the URLs among `urls` that this worker has found before, or was granted."""
        known = self._met.intersection(urls)
        for url in urls:
            if "%" in url and key_of(Job(url), again=False)[1] in self._met:
                known.add(url)
        return known

    async def add(self, jobs: Sequence[Job]) -> int:
        """Admit the new pages and sitemaps among `jobs`; return how many were new.

        Seeds wait for the next call, and all that this worker has not met count as new. If it is
        cancelled while it waits for the store, the jobs may be admitted all the same.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        found = None if self._over else self._find(jobs)
        seeds = all(job.purpose is Purpose.PAGE and job.referrer is None for job in jobs)
        if found is None or (seeds and len(self._next.found) < _MOST_FOUND):
            # A stream gives its seeds one by one: a call for each would take 3 ms.
            await trio.lowlevel.cancel_shielded_checkpoint()
            return 0 if found is None else len(found.jobs)
        self._urgent.set()
        await found.told.wait()
        return found.new

    async def settle(self, settlement: Settlement) -> None:
        """Let the next call tell of a `settlement`: its job has ended, and what was found."""
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._directory is not None and self._directory.journal.is_full:
            self._noted.set()
            self._urgent.set()
            await self._directory.journal.wait_for_room()
        job, changes = settlement.job, self._next
        counted = job.purpose in COUNTED or job.purpose is Purpose.SITEMAP
        stored = self._out.pop((job.purpose, job.url)) if counted else None
        self.hosts.settled(settlement)
        if not self._over:
            self._find(settlement.successors)
        if self._directory is not None:
            self._directory.settle(stored, settlement)
        if job.purpose is Purpose.SEEDS:
            self._seeded = True
        elif stored is not None:
            changes.ended.append((stored.number, place_of(job.url, self._leases.strands)))
            changes.pages += job.purpose is Purpose.PAGE
            changes.spent += isinstance(settlement.outcome, Page | Failure)
            # The next call is made at once if it has much to tell, or if the workers wait.
            ended = len(changes.ended)
            if 2 * ended >= self._most_at_risk or ended == self._at_risk:
                self._urgent.set()
        self._noted.set()

    async def retry(self, attempt: Attempt, seconds: float) -> None:
        """Retry the job of an `attempt` after `seconds` or later, or leave it to other workers."""
        await trio.lowlevel.checkpoint_if_cancelled()
        job = attempt.job
        stored = StoredJob.of(job, self._out.pop((job.purpose, job.url)).number)
        self._at_risk -= 1
        self._handed -= job.purpose in COUNTED
        if self.ended is not None or trio.current_time() + seconds >= self.hosts.deadline:
            self._left += job.purpose in COUNTED
            self.hosts.drop(attempt)
            self._noted.set()
        else:
            self.hosts.retry(replace(attempt, job=stored), seconds)
        await trio.lowlevel.cancel_shielded_checkpoint()
        self.jobs.hand_out()

    def end(self, reason: Reason) -> None:
        """Start no more jobs, for a `reason`: others, or a later run, have those that wait."""
        check_kind("reason", reason, Reason, "a Reason")
        if self.ended is None:
            self.ended = reason
            if self._plan is not None:
                self.hosts.seeding.scope.cancel("the crawl has ended early")
        self._noted.set()
        self._urgent.set()

    def statistics(self) -> FrontierStatistics:
        """Return the counts of this worker; `unsettled` is of the whole crawl, a moment old."""
        if self._plan is None:
            return FrontierStatistics()
        waiting = self.hosts.waiting + self._left
        pending = self._next, self._sent
        ended = sum(len(each.ended) for each in pending)
        found = sum(len(group.jobs) for each in pending for group in each.found) - ended
        return FrontierStatistics(
            admitted=self._handed + waiting,
            waiting=waiting,
            unsettled=self._added - self._done + found,
            ready=self.hosts.ready,
            delayed=self.hosts.delayed,
            retries=self.hosts.retries,
        )

    def _choose(self, last: bool) -> Job | None:
        """Return the job to start now; None after the lease, or if too many are at risk."""
        if self.ended is not None or self._at_risk >= self._most_at_risk:
            return None
        if trio.current_time() >= self._deadline:
            return None
        job = self.hosts.next_job(last)
        if isinstance(job, StoredJob):
            self._out[job.purpose, job.url] = job
            self._at_risk += 1
            self._handed += job.purpose in COUNTED
        return job

    def _find(self, jobs: Sequence[Job]) -> _Found | None:
        """Let a call tell of the jobs that may be new; return them, None if there are none."""
        group = []
        for job in jobs:
            if job.redirects < 0:
                continue
            again = job.again and key_of(job, again=False)[1] in self._met
            kind, key = key_of(job, again=again)
            others = job.purpose is Purpose.SITEMAP or again
            if (kind, key) in self._met_others if others else key in self._met:
                continue
            if others:
                self._met_others.add((kind, key))
            else:
                self._met.add(key)
            place = place_of(job.url, self._leases.strands)
            group.append(child(replace(job, again=again), kind, key, self._salt, place))
        if not group:
            return None
        found = _Found(group)
        self._next.found.append(found)
        self._noted.set()
        return found

    async def _keep_working(self, plan: Plan) -> None:
        """Call the store again and again, until the crawl or this worker has nothing to do."""
        while True:
            self.jobs.hand_out()
            idle = not (self._at_risk or self._next.found)
            if self._over or (self.ended is not None and idle):
                return
            with trio.move_on_after(min(_EVERY, max(_PAUSE / 2, self._due))):
                await self._noted.wait()
            if self._noted.is_set() and not self._urgent.is_set():
                # ▶ A call and its transaction take 8 ms of CPU, as much as a dozen pages.
                with trio.move_on_after(_PAUSE if self._is_short(plan) else _PATIENT):
                    await self._urgent.wait()
            await self._exchange(plan)

    def _is_short(self, plan: Plan) -> bool:
        """Whether this worker can ask more than it has."""
        return self.jobs.idle > 0 or self.hosts.waiting < plan.workers

    async def _exchange(self, plan: Plan) -> None:
        """Send the store the ended and the new jobs, and queue the jobs that it grants."""
        began = trio.current_time()
        changes, self._next = self._next, _Changes()
        self._noted, self._urgent = trio.Event(), trio.Event()
        sizes = accumulate(len(each.jobs) for each in changes.found)
        if rest := changes.found[max(1, bisect_right(list(sizes), _MOST_FOUND)) :]:
            # What has ended waits for the last of them: a crawl is not over before they are known.
            first = changes.found[: -len(rest)]
            changes.found = rest
            self._next, changes = changes, _Changes(first)
            self._noted.set()
            self._urgent.set()
        self._sent = changes
        leases, hosts, ends = self._leases, self.hosts, self.ended is not None
        back = leases.back(hosts, began)
        room = _MOST_HOSTS - len(leases)
        want = min(max(plan.workers // 2, 1), room) if self._is_short(plan) else 0
        self._seq += 1
        work = Work(
            self._name,
            self._seq,
            self._lease,
            [number for number, _ in changes.ended],
            [each.jobs for each in changes.found],
            0 if ends else want,
            0 if ends else max(0, _MOST_JOBS - hosts.waiting),
            [] if ends else leases.hungry(),
            back,
            self._seeded and not self._next.found,
            changes.pages,
            changes.spent,
        )
        if self._directory is not None:
            # First: an outcome that the store knows must not be lost.
            await self._directory.write()
        try:
            message = await self._store.call("work", packed(work))
        except Refused:
            # Others have its hosts already.
            self._joined = False
            raise
        self._deadline = began + self._ttl - _MARGIN
        self._sent = _Changes()
        self._at_risk -= len(changes.ended)
        now = trio.current_time()
        leases.end(changes.ended, now)
        self._take(msgspec.msgpack.decode(message, type=Reply), changes, now)

    def _take(self, reply: Reply, changes: _Changes, now: float) -> None:
        jobs = [job for grant in reply.granted for job in self._leases.take(grant, now)]
        # In the order in which they were admitted.
        jobs.sort(key=attrgetter("number"))
        self._met.update(
            key_of(job, again=False)[1] for job in jobs if job.purpose is Purpose.PAGE
        )
        self._added, self._done = reply.added, reply.done
        self._over = self._added == self._done
        self._due = reply.due / 1000 if reply.due >= 0 else _EVERY
        for group, found in enumerate(changes.found):
            found.new = 0 if reply.again else reply.news[group]
            found.told.set()
        if reply.over:
            self.end(Reason(reply.over))
        if self.ended is None:
            self._leases.share(self.hosts, jobs, now)
            self.hosts.admit(jobs)
            # With what came just now: else a host would stay here until that is done.
            self._leases.part(self.hosts, reply.shed, now)
