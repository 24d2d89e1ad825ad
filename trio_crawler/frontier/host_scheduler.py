"""The host scheduler: which host is next, and which of its jobs starts.

All decisions are synchronous, take the time as an argument, and need O(log n) steps for n hosts.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, cast

from msgspec.structs import replace

from trio_crawler.frontier.failures import Failures
from trio_crawler.frontier.origin import Host, Origin, Share
from trio_crawler.frontier.origins import Origins
from trio_crawler.frontier.queues import Queue, make_queue
from trio_crawler.frontier.settlement import (
    Learned,
    ProbeAnswered,
    RobotsMissing,
    RobotsMoved,
    RobotsRenewed,
    RobotsRules,
    SitemapRead,
)
from trio_crawler.frontier.traps_by_host import TrapsByHost
from trio_crawler.frontier.turns import Turns
from trio_crawler.model import Attempt, Fault, Job, Purpose, Reason, Response
from trio_crawler.policy.host_state import State
from trio_crawler.policy.plan import Plan
from trio_crawler.policy.retry import LEAST_BAD, blames_host
from trio_crawler.policy.robots.store import (
    FRESH,
    PATH,
    KnownRules,
    LongFiles,
    is_self_named,
)

# Seconds for which a host counts as having answered recently.
_RECENTLY = 10.0
# Invalid entries of the heaps that need not be removed.
_FEW_STALE = 64
# A host needs long if its waiting pages take more seconds than this without a pause, or if it
# wants such a delay. Each page counts for a tenth of a second or more: those of a quick host soon
# lead to many others.
_LONG, _LONG_DELAY = 8.0, 1.0
_LEAST_PAGE = 0.1
# A host in trouble comes after new ones, also after so many of those that were placed later.
_HANDICAP = 1_000
_LAST = 1_000
# Seconds after which a host that has not answered its first request is doubtful.
_GRACE = 1.0


class HostHeap:
    """Origins, in the order in which their next jobs start.

    Of the origins that may be requested now and are well, the one with the fewest requests in
    flight comes first, then the one that has waited longest. Three quarters of the `workers` first
    serve those that need long, the longest before the others: a large host that takes its turns
    like a small one ends long after it. Doubtful origins, which are in trouble or do not answer
    their first request, hold at most a quarter of the workers, or one, while others may be
    requested. With those that are requested for the first time they hold at most half.

    An origin has at most one valid place, the one with its ticket. Invalid entries are skipped,
    and removed before they are half of all. `held` is the number of requests in flight by `Share`,
    `hosts` the number of origins. `wakes` is the time at which the next rest ends; because of an
    invalid entry it may be too early.
    """

    __slots__ = (
        "_doubtful",
        "_live",
        "_long",
        "_number",
        "_ready",
        "_resting",
        "_workers",
        "held",
        "hosts",
        "wakes",
    )

    def __init__(self, workers: int = 10) -> None:
        self._workers = workers
        # Those that need long have a second entry, in `_long`.
        self._ready: list[tuple[int, int, Origin]] = []
        self._long: list[tuple[int, int, Origin]] = []
        self._doubtful: list[tuple[int, int, Origin]] = []
        self._resting: list[tuple[float, int, Origin]] = []
        self._number = 0
        self._live = 0
        self.held, self.hosts = [0] * len(Share), [0] * len(Share)
        self.wakes = math.inf

    def place(self, origin: Origin, free: float, now: float) -> None:
        """Set the only place of an origin, which may be requested from the time `free` on."""
        share = origin.share
        if len(self._ready) == 1:
            _, number, only = self._ready[0]
            if only is origin and origin.ticket == number and free <= now and share < Share.LONG:
                # Nothing changes: it is the only origin, as in nearly every crawl of one site.
                return
            # Its requests in flight may have changed while it was the only entry.
            self._ready[0] = (only.host.load.in_flight, number, only)
        self._live += not origin.ticket
        number = self._number = origin.ticket = self._number + 1
        load, well = origin.host.load, origin.state.state is State.WELL
        if free > now:
            heapq.heappush(self._resting, (free, number, origin))
            self.wakes = self._resting[0][0]
        elif share >= Share.NEW and not (well and load.in_flight):
            heapq.heappush(self._doubtful, (number + _HANDICAP * (not well), number, origin))
        else:
            # A host that has not answered its first request gets a second one after all others.
            key = load.in_flight + _LAST * (share >= Share.NEW)
            heapq.heappush(self._ready, (key, number, origin))
            if share is Share.LONG:
                # In steps of powers of two, within which hosts take turns.
                length = origin.pages * max(load.delay, load.latency / load.limit, _LEAST_PAGE)
                heapq.heappush(self._long, (-math.frexp(length)[1], number, origin))
        entries = len(self._ready) + len(self._long) + len(self._doubtful) + len(self._resting)
        if entries > _FEW_STALE + 3 * self._live:
            self._sweep()

    def move(self, origin: Origin, share: Share) -> None:
        """Let another share of the workers serve an origin, from its next place on."""
        in_flight = origin.state.in_flight
        self.held[origin.share] -= in_flight
        self.held[share] += in_flight
        self.hosts[origin.share] -= 1
        self.hosts[share] += 1
        origin.share = share

    def remove(self, origin: Origin) -> None:
        """Remove the place of an origin, if it has one."""
        if origin.ticket:
            self._live -= 1
            origin.ticket = 0

    def pop(self) -> Origin | None:
        """Remove and return the next origin that may be requested now; None if there is none."""
        held, workers = self.held, self._workers
        doubtful, unproven = held[Share.DOUBTFUL], held[Share.DOUBTFUL] + held[Share.NEW]
        room_for_new = doubtful < max(1, workers // 4) and unproven < max(1, 3 * workers // 4)
        longs = 3 * (workers - unproven) // 4
        while True:
            heap: list[Any] = self._ready
            if self._doubtful and (room_for_new or not heap):
                heap = self._doubtful
            elif self._long and held[Share.LONG] < longs:
                heap = self._long
            elif not heap:
                return None
            *_, number, origin = heapq.heappop(heap)
            if origin.ticket == number:
                self._live -= 1
                origin.ticket = 0
                return cast("Origin", origin)

    def pop_rested(self, now: float) -> Origin | None:
        """Remove and return an origin whose rest is over; None if there is none."""
        while self.wakes <= now:
            _, number, origin = heapq.heappop(self._resting)
            self.wakes = self._resting[0][0] if self._resting else math.inf
            if origin.ticket == number:
                self._live -= 1
                origin.ticket = 0
                return origin
        return None

    def _sweep(self) -> None:
        # Each invalid entry is removed once, so this costs no more than pushing.
        heaps: tuple[list[Any], ...] = (self._ready, self._long, self._doubtful, self._resting)
        for heap in heaps:
            heap[:] = [entry for entry in heap if entry[-2] == entry[-1].ticket]
            heapq.heapify(heap)
        self.wakes = self._resting[0][0] if self._resting else math.inf


class HostScheduler:
    """Choose the next job to start, as early as the state and the robots.txt of its host allow.

    `HostHeap` says which of the hosts that may be requested now is next. A host takes less than
    1 KiB of memory besides its jobs. `queue` makes the queue for the pages of an origin; the
    default is a queue in memory in the order of the plan.

    With `turns`, which may be set before the first job, a job of a host with a delay gets one, and
    no other job of the host is chosen until its request has started; `moved` places the host
    again. Without them the choice counts as the start.
    """

    def __init__(self, plan: Plan, queue: Callable[[], Queue] | None = None) -> None:
        self._plan = plan
        self._obey = plan.politeness.robots
        self.turns: Turns | None = None
        origins = Origins(plan.politeness, queue or (lambda: make_queue(plan.order)))
        self._origins = origins.by_name
        self.known, self.origin = origins.known, origins.origin
        self.host, self.hosts = origins.host, origins.hosts
        self.traps = TrapsByHost(plan.traps)
        self.heap = HostHeap(plan.workers)
        self._long_files = LongFiles()
        self._in_flight = 0
        self.waiting = 0
        # The new pages that were put, and the jobs that wait for their next try elsewhere.
        self._new = self.delayed = 0
        # The two hosts that answered last, the older first, with the times of their answers.
        self._recent: dict[str, float] = {}
        self._failures = Failures(plan, self._few_left)
        # Origins that wait to fetch a sitemap: one is fetched at a time, since it takes 50 MiB.
        self._parked: deque[Origin] = deque()
        self._sitemap_in_flight = False
        # Requests to hosts that have not answered yet, by the time at which the first one started.
        self._first_requests: deque[tuple[float, list[Origin]]] = deque()

    def __len__(self) -> int:
        return self.waiting

    @property
    def found(self) -> int:
        """The number of hosts that were found, each with its port and scheme."""
        return max(len(self._origins), len(self.traps))

    @property
    def wakes(self) -> float:
        """The time at which the next rest of a host ends, or earlier."""
        return self.heap.wakes

    def __repr__(self) -> str:
        return f"<HostScheduler: {self.waiting} jobs of {len(list(self.hosts()))} hosts>"

    def put(self, job: Job, now: float) -> None:
        """Add a job, which waits for the turn of its host."""
        self.waiting += 1
        name = job.url[: job.url.index("/", 8)]
        origin = self._origins.get(name)
        if origin is None:
            origin = self.origin(job.url)
        new = job.purpose is Purpose.PAGE and not job.tries
        if new:
            self._new += 1
            origin.pages += 1
        else:
            origin.put(job)
        if not origin.ticket:
            self._place(origin, now)
        if new:
            origin.queue.put(job)

    def next(self, now: float, *, last: bool = False) -> Job | None:
        """Remove and return the job to start now; None if no job may start.

        A `blocked` job must not be fetched, and no answer is recorded for it. `last` is whether
        the job is for the last free worker. If all requests in flight go to one host, and another
        host answered recently, that worker waits: a URL of the other host may soon be found.
        """
        if self.heap.wakes <= now:
            self.wake(now)
        while self._first_requests and self._first_requests[0][0] <= now - _GRACE:
            for late in self._first_requests.popleft()[1]:
                if late.share is Share.NEW:
                    self.heap.move(late, Share.DOUBTFUL)
        while (origin := self.heap.pop()) is not None:
            if last and self._would_starve_another(origin.host, now):
                self._place(origin, now)
                return None
            if not (self._sitemap_in_flight and self._park(origin)):
                return self._take(origin, now)
        return None

    def wake(self, now: float) -> float:
        """Place the hosts whose rest is over; return the time at which the next rest ends."""
        while (origin := self.heap.pop_rested(now)) is not None:
            self._place(origin, now)
        return self.heap.wakes

    def answered(self, attempt: Attempt, now: float, *, asked: float = 0.0) -> bool:
        """Record the answer to a job that was not blocked, so that its host may start another.

        `asked` is the Retry-After of the answer, in seconds; the host rests that long. Returns
        whether the answer is none of the tries of its URL: the host only limits the rate.
        """
        job, answer = attempt.job, attempt.answer
        origin = self._origins[job.url[: job.url.index("/", 8)]]
        state = origin.state
        if self.turns is not None and self.turns.out:
            self.turns.end(job)
        state.finish(now + asked)
        self._in_flight -= 1
        self.heap.held[origin.share] -= 1
        self._recent.pop(origin.host.name, None)
        self._recent[origin.host.name] = now
        if len(self._recent) > 2:
            del self._recent[next(iter(self._recent))]
        # The answers for a robots.txt and for a probe are judged in `learn`.
        failures = self._failures
        page, limited = job.purpose is Purpose.PAGE, False
        if page and origin.retries is not None:
            origin.retries.answered(job.url)
        if page or job.purpose is Purpose.SITEMAP:
            bad = isinstance(answer, Fault) or answer.status >= LEAST_BAD
            if bad and blames_host(answer):
                limited = failures.page(origin, attempt, now)
            elif isinstance(answer, Response):
                state.page_ok(attempt.seconds, now)
                if failures.good_host is not origin.host:
                    failures.good(origin.host, now)
                failures.last_good = now
                if state.load.learned is not None:
                    state.load.learned.forget(job.url)
                # Not a robots.txt: a proxy may answer it from its cache while the server is down.
                if page and not job.url.endswith(PATH):
                    state.good = job.url
        elif not blames_host(answer) and (job.purpose is Purpose.PROBE or state.good is None):
            state.heard(attempt.seconds, now)
        self._place_both(origin, now)
        return limited

    def learn(self, learned: Learned, now: float) -> None:
        """Record a new fact about a host."""
        if isinstance(learned, SitemapRead):
            return
        if isinstance(learned, RobotsMoved):
            self.put(learned.job, now)
            return
        origin = self.origin(learned.url)
        origin.awaited = None
        match learned:
            case RobotsMissing(answer=answer):
                self._failures.miss(origin, answer, now)
            case ProbeAnswered(answer=answer) if blames_host(answer):
                self._failures.miss(origin, answer, now, probe=True)
            case ProbeAnswered():
                origin.state.probe_ok()
                self._failures.good(origin.host, now)
            case RobotsRules(rules=rules, validator=validator):
                self.store_rules(origin, KnownRules(rules, now, validator))
                origin.state.robots_ok()
                self._failures.good(origin.host, now)
            case RobotsRenewed(seconds=seconds):
                # None if the rules were dropped meanwhile, to save memory.
                if origin.robots is not None:
                    origin.robots = origin.robots.renewed(now, seconds)
                origin.state.robots_ok()
                self._failures.good(origin.host, now)
        self._place_both(origin, now)

    def moved(self, origin: Origin, now: float) -> None:
        """Place a host again, whose next start may have become earlier or later."""
        self._place_both(origin, now)

    def sitemap_done(self, now: float) -> None:
        """Record that the sitemap in progress is done, so that the next one may be fetched."""
        self._sitemap_in_flight = False
        ready = False
        while self._parked and not ready:
            origin = self._parked.popleft()
            origin.parked = False
            if not origin.ticket:
                self._place(origin, now)
            # Go on if this host rests: it must not keep the others waiting.
            ready = origin.state.has_room and origin.state.free <= now

    def empty(self) -> Iterator[Job]:
        """Remove and yield all waiting jobs, except the redirects of robots.txt files."""
        for origin in list(self._origins.values()):
            self.heap.remove(origin)
            for job in origin.empty():
                self.waiting -= 1
                yield job
        # Redirects of robots.txt files are left.
        self.waiting = 0

    def restore_rules(self, url: str, known: KnownRules, now: float) -> None:
        """Store the rules that an earlier run read; a delay of the host begins now.

        That run may have asked the host just before it ended.
        """
        origin = self.origin(url)
        origin.state.answered = True
        self.store_rules(origin, known)
        if origin.host.load.delay:
            origin.host.load.last = now

    def store_rules(self, origin: Origin, known: KnownRules) -> None:
        """Store the rules of an origin's robots.txt."""
        rules = self._long_files.accepted(origin.name, known.rules)
        origin.robots = known if rules is known.rules else replace(known, rules=rules)
        if self._obey:
            load = origin.host.load
            if load.ask(rules.delay) and load.in_flight:
                # The other scheme has requests in flight that may have started just now.
                load.last = max(load.last, known.since)
        for name in self._long_files.add(origin.name, rules):
            self._origins[name].robots = None

    def _few_left(self) -> bool:
        """Whether nothing is left but URLs of hosts in trouble, and less than one in a hundred."""
        left = self.waiting + self._in_flight + self.delayed
        return not sum(self.heap.hosts[Share.FAIR : Share.DOUBTFUL]) and 100 * left < self._new

    def _place_both(self, origin: Origin, now: float) -> None:
        """Place an origin, and the same host by the other scheme: they share the load."""
        if origin.other_scheme is not None:
            # First, since it has waited longer.
            self._place(origin.other_scheme, now)
        self._place(origin, now)

    def _place(self, origin: Origin, now: float) -> None:
        """Place an origin in the heap if it has a job that may start, else remove it."""
        simple = not (origin.awaited or origin.hops or origin.sitemaps or origin.retries)
        has_job = origin.pages > 0 if simple else origin.first is not None
        state, load = origin.state, origin.host.load
        if state.state is not State.WELL:
            share = Share.IDLE if origin.given_up else Share.DOUBTFUL
        elif not (has_job or state.in_flight):
            share = Share.IDLE
        elif not state.answered:
            share = max(origin.share, Share.NEW)
        elif load.delay >= _LONG_DELAY or (
            origin.pages * max(load.delay, load.latency / load.limit, _LEAST_PAGE) > _LONG
        ):
            share = Share.LONG
        else:
            share = Share.FAIR
        if share is not origin.share:
            self.heap.move(origin, share)
        if has_job and origin.given_up:
            self.heap.place(origin, -math.inf, now)
        elif has_job and origin.state.has_room:
            self.heap.place(origin, state.free, now)
        elif origin.ticket:
            self.heap.remove(origin)

    def _park(self, origin: Origin) -> bool:
        """Let an origin wait if a sitemap is next; return whether it has no other job to start."""
        if origin.sitemaps and origin.first is origin.sitemaps:
            origin.parked = True
            self._parked.append(origin)
        return origin.first is None

    def _would_starve_another(self, host: Host, now: float) -> bool:
        """Whether this host has all requests in flight, and another host answered recently."""
        if not 0 < self._in_flight == host.load.in_flight:
            return False
        other = next((name for name in reversed(self._recent) if name != host.name), None)
        return other is not None and now - self._recent[other] < _RECENTLY

    def _take(self, origin: Origin, now: float) -> Job:
        """Return the job of an origin to start now; a robots.txt or a probe may come first."""
        simple = not (origin.awaited or origin.hops or origin.sitemaps or origin.retries)
        first = origin.queue if simple else origin.first
        assert first is not None, "an origin without jobs has no ticket"  # noqa: S101 - for mypy
        state, robots, blocked = origin.state, origin.robots, origin.given_up
        job: Job | None = None
        fresh = not self._obey or (robots is not None and now - robots.since <= FRESH)
        if not (blocked or (fresh and state.state is State.WELL)):
            job = origin.prerequisite(first.peek(), now, obey=self._obey)
        if job is None:
            self.waiting -= 1
            job = first.pop()
            page = job.purpose is Purpose.PAGE
            if origin.retries is not None and page:
                origin.retries.turns = 0 if first is origin.retries else origin.retries.turns + 1
            origin.pages -= first is origin.queue
            origin.sitemap_was_last = job.purpose is Purpose.SITEMAP
            self._sitemap_in_flight = self._sitemap_in_flight or origin.sitemap_was_last
            # A sitemap that robots.txt itself names is allowed.
            judged = page or (origin.sitemap_was_last and not is_self_named(job))
            if judged and self._obey and robots is not None and not blocked:
                blocked = None if robots.rules.allows(job.url) else Reason.ROBOTS
        else:
            origin.awaited = job.purpose
        if blocked:
            job = replace(job, blocked=blocked)
        else:
            state.start(now)
            self._in_flight += 1
            self.heap.held[origin.share] += 1
            if origin.share is Share.NEW:
                if not self._first_requests or self._first_requests[-1][0] < now - _GRACE / 4:
                    self._first_requests.append((now, []))
                self._first_requests[-1][1].append(origin)
            if first is origin.retries and origin.retries is not None and job.tries:
                origin.retries.in_flight.add(job.url)
            if self.turns is not None and (
                state.load.delay or state.hung or origin.awaited is Purpose.ROBOTS
            ):
                self.turns.give(origin, job)
        self._place_both(origin, now)
        return job
