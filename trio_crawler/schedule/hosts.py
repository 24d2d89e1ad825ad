"""The scheduler of one crawl: which job goes to a worker next, and when.

All frontiers use it. They differ only in where they keep seen URLs, waiting jobs and counts.
"""

import heapq
import math
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import chain, groupby

import httpx
import trio
from msgspec.structs import replace

from trio_crawler.arguments import check_callable, check_flag, check_function, check_kind, public
from trio_crawler.model import ADMITTED, COUNTED, Attempt, Fault, Job, Purpose, Reason, Response
from trio_crawler.page.urls import origin
from trio_crawler.policy.answers import LEAST_BAD, rest_asked_for
from trio_crawler.policy.plan import Plan
from trio_crawler.policy.robots import KnownRules
from trio_crawler.policy.settings import HostStatistics
from trio_crawler.schedule.host_scheduler import HostScheduler
from trio_crawler.schedule.origin import Origin, Turns
from trio_crawler.schedule.origins import HostsByName
from trio_crawler.schedule.queues import LevelGate, Queue, Seeding, make_queue
from trio_crawler.settlement import Settlement

# The headers that are kept of an answer while its URL waits for a retry.
_MOST_HEADERS, _LONGEST = 32, 200
# Bytes that a waiting URL counts for besides its characters and those of its referrer.
_OVERHEAD = 100
# Bytes of large bodies that wait to be read, one at a time, before no more are asked for.
_MAX_UNREAD = 16 * 1024 * 1024
# Jobs between two checkpoints of `receive`: a fetch that never waits must not starve other tasks.
_JOBS_PER_CHECKPOINT = 16


@public("trio_crawler.frontier")
class JobChannel(trio.abc.ReceiveChannel[Job]):
    """A channel of the jobs that `choose` returns, each chosen when a worker can start it.

    `choose` is synchronous and returns None if no job may start; its argument is whether the job
    is for the last free worker. No job waits in this channel: by the time a worker received it,
    its host might have sent a Retry-After, or have just got another request. Call `hand_out`
    whenever there may be a job for the workers that wait.

    `idle` is the number of workers that wait. `receive` is a checkpoint only when it waits, and at
    every 16th job. ▶ With a checkpoint at each job, all answers that arrive together would be read
    before the first worker sends its next request: 100 workers at a server that takes 200 ms had
    414 pages/s instead of 500.
    """

    def __init__(self, choose: Callable[[bool], Job | None]) -> None:
        check_function("choose", choose, "a function that returns the job to start, or None")
        self._choose = choose
        # The workers that wait for a job; ▶ the statistics of the channel take 1.5 us a call.
        self.idle = 0
        self._taken = 0
        self._sender, self._receiver = trio.open_memory_channel[Job](math.inf)

    async def receive(self) -> Job:
        """Receive a job, or wait for one. Raises trio.EndOfChannel when the crawl is over."""
        self._taken += 1
        if not self._taken % _JOBS_PER_CHECKPOINT:
            # Before the choice: a job must start at once when it is chosen.
            await trio.lowlevel.checkpoint()
        job = self._choose(not self.idle)
        if job is not None:
            return job
        self.idle += 1
        try:
            return await self._receiver.receive()
        except (trio.Cancelled, trio.EndOfChannel):
            self.idle -= 1
            raise

    def hand_out(self) -> None:
        """Choose jobs for the workers that wait, until there is no job or no such worker.

        The jobs start in the next pass of Trio's scheduler, so an answer that arrives in the same
        pass has no influence on the choice.
        """
        while self.idle:
            job = self._choose(self.idle == 1)
            if job is None:
                return
            self.idle -= 1
            self._sender.send_nowait(job)

    def end(self) -> None:
        """Close the channel, which ends the loops of the workers."""
        self._sender.close()

    async def aclose(self) -> None:
        """Close the receiving end."""
        self._receiver.close()
        await trio.lowlevel.checkpoint()


@public("trio_crawler.frontier")
class Hosts:
    """The hosts of one crawl: their records, their waiting jobs, and which job starts next.

    `end` is called, once, when the page budget or the time budget of the plan is used up. `queue`
    makes the queue for the pages of one host; the default is a queue in memory in the order of the
    plan. `choose` replaces `next_job`, and may call it; `JobChannel` documents its argument. Once
    the crawl has `ended`, the crawler itself calls it, too. Unless `gated`, the levels and the
    page budget of the plan are kept elsewhere.

    `jobs` is the channel from which the workers receive. `traps` returns the traps of the host of
    a normalised http(s) URL, `origin` the record of its origin, a new one if needed, and `known`
    that record or None; `disallows` is whether its robots.txt, if that is known, forbids a URL.
    `limit` sets how many requests a host may have in flight. `turns` has the turns of the jobs
    that workers have, by purpose and URL, if their host has a delay or URLs that hang. `ended` is
    why nothing more is fetched, None until then; `when_ended` is called when that is set.
    `by_digest` is whether bodies are compared by their SHA-1, as those of earlier runs are. By
    Trio's clock the time budget is used up at `deadline`. `waiting` is the number of pages and
    checks that wait, `waiting_bytes` the bytes of their URLs and referrers and 100 for each, and
    `retries` the number of their retries. `seeding` tells the task that reads a stream of seeds
    when to go on.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        end: Callable[[Reason], None],
        queue: Callable[[], Queue] | None = None,
        choose: Callable[[bool], Job | None] | None = None,
        gated: bool = True,
    ) -> None:
        check_kind("plan", plan, Plan, "a Plan")
        check_flag("gated", gated)
        check_function("end", end, "a function of a Reason")
        if queue is not None:
            check_callable("queue", queue, "a function that returns an empty queue")
        limits = plan.limits
        self.choose = self.next_job if choose is None else choose
        self.jobs = JobChannel(self.choose)
        self.ended: Reason | None = None
        self.when_ended: Callable[[], None] = lambda: None
        self.by_digest = False
        self.deadline = self._wakes = math.inf
        self.waiting = self.waiting_bytes = self.retries = 0
        self.seeding = Seeding()
        self._plan = plan
        self._end = end
        # A heap of jobs that wait for their next try, by the time at which they are due.
        self._delayed: list[tuple[float, int, Job]] = []
        self._scheduler = HostScheduler(plan, queue, self._delayed)
        turns = Turns(self._moved, hurried=limits.max_tries > 1)
        self._scheduler.turns, self.turns = turns, turns.out
        self.traps = self._scheduler.traps.of
        self.origin, self.known = self._scheduler.origin, self._scheduler.known
        self.disallows, self.limit = self._scheduler.disallows, self._scheduler.limit
        self._gate: LevelGate | None = None
        if gated and min(limits.max_depth, limits.max_pages) < math.inf:
            self._gate = LevelGate(plan, queue or (lambda: make_queue(plan.order)))
        self._number = 0
        # The last attempts at those jobs, without bodies.
        self._last: dict[tuple[Purpose, str], Attempt] = {}
        # Jobs that are not to be fetched: the workers receive them first.
        self._blocked: deque[Job] = deque()
        # The jobs that waited when the crawl was ended early.
        self._left: Iterator[Job] = iter(())
        self._unread, self._begun = 0, False
        self._stopped_at: float | None = None
        self._woken = trio.Event()

    def __repr__(self) -> str:
        return f"<Hosts: {self.ready} jobs ready, {self.held} held, {self.delayed} delayed>"

    def await_names(self) -> trio.MemoryReceiveChannel[str]:
        """Let hosts wait for the lookup of their names; return a channel of URLs to look up.

        Call `named` after each lookup. Call this before the first job is received.
        """
        return self._scheduler.await_names(trio.current_time())

    def named(self, url: str, seconds: float, addresses: Sequence[str] = ()) -> None:
        """Record the `addresses` of a `url` from that channel, and that they hold `seconds`."""
        self._scheduler.looked_up(url, addresses, seconds, trio.current_time())
        self._woken.set()
        # While a crawl is restored nothing keeps the time yet.
        self.jobs.hand_out()

    @property
    def ready(self) -> int:
        """The number of jobs that wait for the turn of their host."""
        return self._scheduler.waiting + len(self._blocked)

    @property
    def held(self) -> int:
        """The number of pages that wait for their level, or for the page budget."""
        return 0 if self._gate is None else len(self._gate)

    @property
    def delayed(self) -> int:
        """The number of jobs that wait for their next try."""
        return len(self._delayed)

    async def keep_time(self) -> None:
        """Release jobs when they are due, and end the crawl at its deadline; never return."""
        self._begin(trio.current_time())
        try:
            while True:
                self._wakes = self._release_due(trio.current_time())
                self._woken = trio.Event()
                with trio.move_on_at(self._wakes):
                    await self._woken.wait()
        finally:
            self._stopped_at = trio.current_time()

    def _begin(self, now: float) -> None:
        """Set the deadline when the first jobs are admitted: a worker may fetch one at once."""
        if not self._begun:
            self._begun = True
            # A crawl that others have begun may have a deadline already.
            self.deadline = min(self.deadline, now + self._plan.limits.max_seconds)

    def _release_due(self, now: float) -> float:
        """Release the jobs that are due; return the time at which to call this again."""
        if now >= self.deadline:
            self.deadline = math.inf
            self._end(Reason.TIME_BUDGET)
        while self._delayed and self._delayed[0][0] <= now:
            self._scheduler.put(heapq.heappop(self._delayed)[2], now)
        self.jobs.hand_out()
        due = self._delayed[0][0] if self._delayed else math.inf
        return min(due, self._scheduler.wake(now), self.deadline)

    def next_job(self, last: bool) -> Job | None:
        """Remove and return the job to start now, `last` for the last free worker, or None."""
        job: Job | None = None
        if self.ended is not None and (left := next(self._left, None)) is not None:
            job = replace(left, blocked=self.ended)
        elif self._blocked:
            job = self._blocked.popleft()
        elif self.ended is None and (heap := self._scheduler.heap).live:
            # ▶ Where one host is alone it mostly has no room, and the time takes 0.6 us.
            only = None if heap.only is None or heap.only.given_up else heap.only.host.load
            if self._unread > _MAX_UNREAD or (only and only.in_flight + 1 > only.limit):
                return None
            now = trio.current_time()
            if now >= self.deadline:
                # `keep_time` ends the crawl in the same pass of Trio.
                return None
            job = self._scheduler.next(now, last=last)
            if heap.wakes < self._wakes:
                self._woken.set()
        if job is not None and job.purpose in COUNTED:
            self.waiting -= 1
            self.waiting_bytes -= len(job.url) + len(job.referrer or "") + _OVERHEAD
            if self.waiting <= self.seeding.low:
                self.seeding.make_room()
        return job

    def _moved(self, origin: Origin) -> None:
        self._scheduler.moved(origin, trio.current_time())
        self._woken.set()

    def admit(self, jobs: Collection[Job]) -> None:
        """Add new pages and sitemaps, which wait for the turn of their host."""
        if not jobs and self._gate is None:
            return
        now = trio.current_time()
        self._begin(now)
        for job in jobs:
            if job.purpose is Purpose.SEEDS:
                self.seeding.begun.set()
                continue
            if job.purpose in COUNTED:
                self.waiting += 1
                self.waiting_bytes += len(job.url) + len(job.referrer or "") + _OVERHEAD
            if self.ended is not None or job.recalled:
                self._blocked.append(replace(job, blocked=self.ended))
            elif job.blocked is not None:
                if self._gate is not None:
                    self._gate.pass_by()
                self._blocked.append(job)
            elif job.purpose is Purpose.PAGE and self._gate is not None:
                self._gate.put(job)
            else:
                self._scheduler.put(job, now)
        for job in () if self._gate is None else self._gate.release():
            self._scheduler.put(job, now)
        self.jobs.hand_out()

    def part(self, name: str) -> list[Job]:
        """Remove the jobs that wait for the host of this name, and return them."""
        jobs = self._scheduler.part(name, trio.current_time())
        for job in jobs:
            if job.purpose in COUNTED:
                self.waiting -= 1
                self.waiting_bytes -= len(job.url) + len(job.referrer or "") + _OVERHEAD
        return jobs

    @contextmanager
    def unread(self, size: int) -> Iterator[None]:
        """Let no job start while bodies of more than 16 MiB, by `size`, are in such blocks."""
        self._unread += size
        try:
            yield
        finally:
            self._unread -= size
        self.jobs.hand_out()  # Not above: when it is cancelled no worker takes a job any more.

    def answered(self, attempt: Attempt) -> Attempt:
        """Record the answer to a job that was not blocked, so that its host may start another.

        Returns the attempt; it is not counted as a try of the job if the host only limits the rate
        of requests, by 429 or 503.
        """
        answer, asked = attempt.answer, 0.0
        if isinstance(answer, Response) and (
            answer.status >= LEAST_BAD or "limit" in attempt.names
        ):
            asked = rest_asked_for(answer, attempt.names, datetime.now(UTC))
        if self._scheduler.answered(attempt, trio.current_time(), asked=asked):
            job = attempt.job
            attempt = replace(attempt, job=replace(job, tries=max(job.tries - 1, 0)))
        if self._scheduler.waiting:
            self.jobs.hand_out()
        return attempt

    def settled(self, settlement: Settlement) -> bool:
        """Record the settlement of a job; return whether it counts: whether it was admitted.

        Robots.txt files and probes are never admitted: the scheduler itself makes these jobs.
        """
        job = settlement.job
        if self._last:
            self._last.pop((job.purpose, job.url), None)
        if settlement.learned is not None:
            self._scheduler.learn(settlement.learned, trio.current_time())
        if job.purpose is Purpose.PAGE and self._gate is not None:
            self._gate.settle(settlement.outcome)
            if self._gate.is_spent and self.ended is None:
                self._end(Reason.PAGE_BUDGET)
        elif job.purpose is Purpose.SITEMAP:
            self._scheduler.sitemap_done(trio.current_time())
        elif job.purpose not in ADMITTED:
            self.jobs.hand_out()
        return job.purpose in ADMITTED

    def retry(self, attempt: Attempt, seconds: float) -> None:
        """Retry a job after `seconds` or later; block it at once if the crawl ends before.

        Its attempt is kept for `last`, without the body, since any number of URLs may wait for a
        retry.
        """
        job, now = attempt.job, trio.current_time()
        if job.purpose is Purpose.SITEMAP:
            self._scheduler.sitemap_done(now)
        elif job.purpose in COUNTED:
            self.waiting += 1
            self.waiting_bytes += len(job.url) + len(job.referrer or "") + _OVERHEAD
        if self.ended is not None or now + seconds >= self.deadline:
            self._last[job.purpose, job.url] = attempt
            self._blocked.append(replace(job, blocked=self.ended or Reason.TIME_BUDGET))
            self.jobs.hand_out()
            return
        self._last[job.purpose, job.url] = _without_body(attempt)
        self.retries += job.purpose in COUNTED and not job.repeat
        self._number += 1
        heapq.heappush(self._delayed, (now + seconds, self._number, job))
        if now + seconds < self._wakes:
            self._woken.set()

    def drop(self, attempt: Attempt) -> None:
        """Record that the job of an `attempt` is left for a later run."""
        if attempt.job.purpose is Purpose.SITEMAP:
            self._scheduler.sitemap_done(trio.current_time())
            self.jobs.hand_out()

    def last(self, job: Job) -> Attempt | None:
        """Return the last attempt of a job that waits for a retry; None if there is none.

        Its response has no body, unless the job was blocked at once.
        """
        return self._last.get((job.purpose, job.url))

    def end(self, reason: Reason) -> None:
        """End the crawl early, for a `reason`: block the jobs that wait or are admitted later."""
        check_kind("reason", reason, Reason, "a Reason")
        if self.ended is not None:
            return
        self.ended = reason
        self.seeding.scope.cancel("the crawl has ended early")
        # One by one, as they are taken: together they may not fit in memory.
        held = iter(()) if self._gate is None else self._gate.empty()
        self._left = chain(held, self._scheduler.empty())
        self._blocked.extend(replace(job, blocked=reason) for _, _, job in sorted(self._delayed))
        self._delayed.clear()
        self.jobs.hand_out()
        self.when_ended()

    def rejection(self, url: str) -> Reason | None:
        """Return why no `url`, or none of a new host, is admitted any more; None if it is."""
        limits, scheduler = self._plan.limits, self._scheduler
        if self.waiting_bytes >= limits.max_waiting:
            return Reason.WAITING_BUDGET
        origins, judged = scheduler.origins, scheduler.traps.by_name
        if max(len(origins), len(judged)) >= limits.max_hosts:
            # The host is not new if one of its URLs was judged or admitted before.
            end = url.index("/", 8)
            if url[url.index("/") + 2 : end] not in judged and url[:end] not in origins:
                return Reason.TOO_MANY_HOSTS
        return None

    def statistics(self, now: float | None = None) -> Mapping[str, HostStatistics]:
        """Return the hosts by name, in the order found; each look-up returns current counts.

        Nothing is computed before a look-up, so others may run between two. An iterator has the
        hosts that were known when it began. A thread has no clock, and so it needs `now`.
        """
        scheduler = self._scheduler
        return HostsByName(scheduler.host, scheduler.hosts, lambda: self._now(now))

    def _now(self, now: float | None) -> float:
        now = now if self._stopped_at is None else self._stopped_at
        return trio.current_time() if now is None else now

    def spend(self, pages: int) -> None:
        """Subtract the `pages` that earlier runs used from the page budget.

        Next, admit the jobs that they left, in any order, and then call `restored`.
        """
        if self._gate is not None:
            self._gate.spend(pages)

    @property
    def is_spent(self) -> bool:
        """Whether the page budget is used up."""
        return self._gate is not None and self._gate.is_spent

    def restored(self) -> None:
        """Record that all jobs that earlier runs left are admitted; the time budget begins."""
        now = trio.current_time()
        self.deadline = now + self._plan.limits.max_seconds
        if self._gate is not None:
            self._gate.restored()
            for job in self._gate.release():
                self._scheduler.put(job, now)
        self.jobs.hand_out()

    def restore_bodies(self, bodies: Iterable[tuple[str, bytes]]) -> None:
        """Record the URL and the SHA-1 of each HTML page of earlier runs that was not a copy.

        Call this before anything else is recorded about a host, also without bodies, in every run
        of a crawl that may be resumed.
        """
        self.by_digest = True
        for start, found in groupby(bodies, key=lambda body: origin(body[0])):
            self.traps(f"{start}/").restore_bodies(found)

    def restore_urls(self, urls: Iterable[str]) -> None:
        """Count the `urls` that earlier runs admitted, in order: their hosts are crawled."""
        by_origin: defaultdict[str, list[str]] = defaultdict(list)
        for url in urls:
            by_origin[url[: url.index("/", 8)]].append(url)
        for found in by_origin.values():
            self._scheduler.restore(found)

    def restore_rules(self, url: str, known: KnownRules) -> None:
        """Store the rules `known` of an earlier run for `url`; its host counts as answering."""
        self._scheduler.restore_rules(self.origin(url), known, trio.current_time())


def _without_body(attempt: Attempt) -> Attempt:
    """Return an attempt without the body of its response, and without long headers.

    Any number of URLs may wait for a retry, each after an answer with 64 KiB of headers.
    """
    answer = attempt.answer
    if isinstance(answer, Fault):
        return attempt
    kept = [(name, value) for name, value in answer.headers.raw if len(value) <= _LONGEST]
    return replace(attempt, answer=Response(answer.status, httpx.Headers(kept[:_MOST_HEADERS])))
