"""The host scheduler: which host has its turn, and which of its jobs may start. No clock here.

All decisions are synchronous, with the time as an argument, and take O(log n) steps for n hosts.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from trio_crawler.frontier.origin import Host, Origin
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
from trio_crawler.model import Answer, Attempt, Fault, Job, Purpose, Reason, Response
from trio_crawler.policy.host_state import Chances, HostLoad, HostState, State
from trio_crawler.policy.plan import Plan
from trio_crawler.policy.retry import LEAST_BAD, PASSING, blames_host
from trio_crawler.policy.robots.store import (
    FRESH,
    PATH,
    KnownRules,
    LongFiles,
    is_self_named,
)
from trio_crawler.policy.traps.watch import HostTraps

# A server that answers with 429 or 5xx is there, and may yet recover.
_MORE_TRIES = 2
# Seconds.
_MOMENT = 10.0
_FEW = 64


class HostHeap:
    """Origins in the order of their turns.

    Of the origins that may be asked now the one with the fewest requests in flight comes first,
    then the one that has waited longest. An origin has at most one valid entry; the entries that
    it left are passed over, and removed before they are half of all. `wakes` is the time at which
    the next origin will have rested, or earlier.
    """

    __slots__ = ("_number", "_ready", "_resting", "_stale", "wakes")

    def __init__(self) -> None:
        self._ready: list[tuple[int, int, Origin]] = []
        self._resting: list[tuple[float, int, Origin]] = []
        self._number = 0
        self._stale = 0
        self.wakes = math.inf

    def place(self, origin: Origin, free: float, now: float) -> None:
        """Give an origin its place, and no other: it may be asked from `free` on."""
        if len(self._ready) == 1:
            _, number, only = self._ready[0]
            if only is origin and origin.ticket == number and free <= now:
                # No other origin waits to be before it, as in nearly every crawl of one site.
                return
            self._ready[0] = (only.host.load.in_flight, number, only)
        self.remove(origin)
        self._number = origin.ticket = self._number + 1
        if free <= now:
            heapq.heappush(self._ready, (origin.host.load.in_flight, self._number, origin))
        else:
            heapq.heappush(self._resting, (free, self._number, origin))
            self.wakes = self._resting[0][0]
        if self._stale > _FEW + (len(self._ready) + len(self._resting)) // 2:
            self._sweep()

    def remove(self, origin: Origin) -> None:
        """Remove an origin's place, if it has one."""
        if origin.ticket:
            self._stale += 1
            origin.ticket = 0

    def pop(self) -> Origin | None:
        """Remove and return the origin that has its turn."""
        while self._ready:
            _, number, origin = heapq.heappop(self._ready)
            if origin.ticket == number:
                origin.ticket = 0
                return origin
            self._stale -= 1
        return None

    def pop_rested(self, now: float) -> Origin | None:
        """Remove and return an origin that has rested; it is to be placed anew."""
        while self.wakes <= now:
            _, number, origin = heapq.heappop(self._resting)
            self.wakes = self._resting[0][0] if self._resting else math.inf
            if origin.ticket == number:
                origin.ticket = 0
                return origin
            self._stale -= 1
        return None

    def _sweep(self) -> None:
        # Each entry is removed once, so that is no more work than to push it was.
        self._ready = [entry for entry in self._ready if entry[1] == entry[2].ticket]
        self._resting = [entry for entry in self._resting if entry[1] == entry[2].ticket]
        heapq.heapify(self._ready)
        heapq.heapify(self._resting)
        self.wakes = self._resting[0][0] if self._resting else math.inf
        self._stale = 0


class HostScheduler:
    """Give each host its turn, as soon and as often as its state and its robots.txt allow.

    A host without a request in flight has its turn before any other has two. A host takes less
    than 1 KiB besides its jobs. `queue` makes the queue of an origin's pages; without it they come
    by the plan's order, from memory.
    """

    def __init__(self, plan: Plan, queue: Callable[[], Queue] | None = None) -> None:
        self._plan = plan
        self._obey = plan.politeness.robots
        self._tries = plan.limits.max_tries
        self._make_queue = queue or (lambda: make_queue(plan.order))
        self.by_digest = False
        self._origins: dict[str, Origin] = {}
        self.heap = HostHeap()
        self._long_files = LongFiles()
        self._in_flight = 0
        self.waiting = 0
        # When the last two hosts answered last, in that order.
        self._recent: dict[str, float] = {}
        # When some host answered well, and when one that had before could not be reached.
        self._good = self._gone = -math.inf
        # A sitemap takes up to 50 MiB, so one at a time is fetched and read. These wait for it.
        self._parked: deque[Origin] = deque()
        self._sitemap_out = False

    def __len__(self) -> int:
        return self.waiting

    @property
    def wakes(self) -> float:
        """The time at which the next host will have rested, or earlier."""
        return self.heap.wakes

    def __repr__(self) -> str:
        return f"<HostScheduler: {self.waiting} jobs of {len(list(self.hosts()))} hosts>"

    def put(self, job: Job, now: float) -> None:
        """Let a job wait for its turn."""
        self.waiting += 1
        name = job.url[: job.url.index("/", 8)]
        origin = self._origins.get(name)
        if origin is None:
            origin = self._new_origin(name)
        page = job.purpose is Purpose.PAGE
        if page:
            origin.pages += 1
        else:
            origin.put(job)
        if not origin.ticket:
            self._place(origin, now)
        if page:
            origin.queue.put(job)

    def next(self, now: float, *, last: bool = False) -> Job | None:
        """Remove and return the job that is to start now; None if none may.

        A job that is `blocked` is not to be fetched, and no answer is recorded for it. The `last`
        free worker is not for a host that has all the others, if another host has answered a
        moment ago: its next URL may be found any time.
        """
        if self.heap.wakes <= now:
            self.wake(now)
        while (origin := self.heap.pop()) is not None:
            if last and self._has_all_but_one(origin.host, now):
                self._place(origin, now)
                return None
            if not (self._sitemap_out and self._parks(origin)):
                return self._take(origin, now)
        return None

    def wake(self, now: float) -> float:
        """Let the hosts that have rested take part again; return when the next one will."""
        while (origin := self.heap.pop_rested(now)) is not None:
            self._place(origin, now)
        return self.heap.wakes

    def answered(self, attempt: Attempt, now: float, *, asked: float = 0.0) -> None:
        """Record the answer to a job that was not blocked: its place is free again.

        Its host rests as long as it asked for (Retry-After), in seconds from now.
        """
        job, answer = attempt.job, attempt.answer
        origin = self._origins[job.url[: job.url.index("/", 8)]]
        state = origin.state
        state.finish(now + asked)
        self._in_flight -= 1
        self._recent.pop(origin.host.name, None)
        self._recent[origin.host.name] = now
        if len(self._recent) > 2:
            del self._recent[next(iter(self._recent))]
        # Whether the answer for a robots.txt or a probe is good, `learn` will be told.
        page = job.purpose is Purpose.PAGE
        if page or job.purpose is Purpose.SITEMAP:
            bad = isinstance(answer, Fault) or answer.status >= LEAST_BAD
            if bad and blames_host(answer):
                self._judge_bad(origin, answer, attempt.seconds, now)
            elif isinstance(answer, Response):
                state.page_ok(attempt.seconds, now)
                self._good = now
                # A robots.txt that a proxy answers for a server which is away proves nothing.
                if page and not job.url.endswith(PATH):
                    state.good = job.url
        self._place_both(origin, now)

    def learn(self, learned: Learned, now: float) -> None:
        """Take over what a settlement says about a host."""
        if isinstance(learned, SitemapRead):
            return
        if isinstance(learned, RobotsMoved):
            self.put(learned.job, now)
            return
        origin = self.origin(learned.url)
        origin.asking = None
        match learned:
            case RobotsMissing(answer=answer):
                self._miss(origin, answer, now)
            case ProbeAnswered(answer=answer) if blames_host(answer):
                self._miss(origin, answer, now, probe=True)
            case ProbeAnswered():
                origin.state.probe_ok()
                self._good = now
            case RobotsRules(rules=rules, validator=validator):
                self.store_rules(origin, KnownRules(rules, now, validator))
                origin.state.robots_ok()
                self._good = now
            case RobotsRenewed(seconds=seconds):
                # Rules that were forgotten meanwhile stay so.
                if origin.robots is not None:
                    origin.robots = origin.robots.renewed(now, seconds)
                origin.state.robots_ok()
                self._good = now
        self._place_both(origin, now)

    def sitemap_done(self, now: float) -> None:
        """Record that the sitemap which was taken takes no more memory."""
        self._sitemap_out = False
        ready = False
        while self._parked and not ready:
            origin = self._parked.popleft()
            origin.parked = False
            if not origin.ticket:
                self._place(origin, now)
            # A host that rests must not keep the others waiting.
            ready = origin.state.has_room and origin.state.free <= now

    def empty(self) -> Iterator[Job]:
        """Remove and yield all jobs that wait, but for the redirects of a robots.txt."""
        for origin in self._origins.values():
            self.heap.remove(origin)
            yield from origin.empty()
        self.waiting = 0

    def known(self, url: str) -> Origin | None:
        """Return the origin of a normalised http(s) URL, if it was met."""
        return self._origins.get(url[: url.index("/", 8)])

    def origin(self, url: str) -> Origin:
        """Return the origin of a normalised http(s) URL, made if need be."""
        name = url[: url.index("/", 8)]
        origin = self._origins.get(name)
        return self._new_origin(name) if origin is None else origin

    def host(self, name: str) -> Origin | None:
        """Return an origin of the host of this name (with its port), if the host was met."""
        http = self._origins.get("http://" + name)
        return self._origins.get("https://" + name) if http is None else http

    def hosts(self) -> Iterator[Origin]:
        """Yield an origin of each host, in the order in which they were met."""
        done = set[Host]()
        for origin in self._origins.values():
            if origin.twin is None:
                yield origin
            elif origin.host not in done:
                done.add(origin.host)
                yield origin

    def traps(self, url: str) -> HostTraps:
        """Return what the host of a URL has shown of URLs without end."""
        name = url[: url.index("/", 8)]
        origin = self._origins.get(name)
        host = (self._new_origin(name) if origin is None else origin).host
        if host.traps is None:
            host.traps = HostTraps(self._plan.traps, by_digest=self.by_digest)
        return host.traps

    def store_rules(self, origin: Origin, known: KnownRules) -> None:
        """Store the rules of an origin's robots.txt."""
        rules = self._long_files.accepted(origin.name, known.rules)
        origin.robots = known if rules is known.rules else replace(known, rules=rules)
        if self._obey:
            load = origin.host.load
            load.delay = max(rules.delay, load.delay)
        for name in self._long_files.add(origin.name, rules):
            self._origins[name].robots = None

    def _new_origin(self, name: str) -> Origin:
        politeness = self._plan.politeness
        _, _, authority = name.partition("://")
        twin = self.host(authority)
        host = Host(authority, HostLoad(politeness)) if twin is None else twin.host
        origin = Origin(name, host, self._make_queue(), HostState(politeness, host.load))
        if twin is not None:
            origin.twin, twin.twin = twin, origin
        self._origins[name] = origin
        return origin

    def _place_both(self, origin: Origin, now: float) -> None:
        """Give a host its places, by both schemes: they share the load."""
        if origin.twin is not None:
            # First, for it has waited longer.
            self._place(origin.twin, now)
        self._place(origin, now)

    def _place(self, origin: Origin, now: float) -> None:
        """Give an origin its place, if it has anything to ask for."""
        simple = not (origin.asking or origin.hops or origin.sitemaps)
        has_job = origin.pages > 0 if simple else origin.first is not None
        if has_job and origin.given_up:
            self.heap.place(origin, -math.inf, now)
        elif has_job and origin.state.has_room:
            self.heap.place(origin, origin.state.free, now)
        elif origin.ticket:
            self.heap.remove(origin)

    def _parks(self, origin: Origin) -> bool:
        """Let an origin's sitemap wait for another one; return whether it has nothing else."""
        if origin.sitemaps and origin.first is origin.sitemaps:
            origin.parked = True
            self._parked.append(origin)
        return origin.first is None

    def _has_all_but_one(self, host: Host, now: float) -> bool:
        """Whether a host has all requests in flight, and another one has answered a moment ago."""
        if not 0 < self._in_flight == host.load.in_flight:
            return False
        other = next((name for name in reversed(self._recent) if name != host.name), None)
        return other is not None and now - self._recent[other] < _MOMENT

    def _take(self, origin: Origin, now: float) -> Job:
        simple = not (origin.asking or origin.hops or origin.sitemaps)
        first = origin.queue if simple else origin.first
        assert first is not None, "an origin without jobs has no ticket"  # noqa: S101 - for mypy
        state, robots, blocked = origin.state, origin.robots, origin.given_up
        job: Job | None = None
        fresh = not self._obey or (robots is not None and now - robots.since <= FRESH)
        if not (blocked or (fresh and state.state is State.WELL)):
            job = origin.before(first.peek(), now, obey=self._obey)
        if job is None:
            self.waiting -= 1
            job = first.pop()
            page = job.purpose is Purpose.PAGE
            origin.pages -= page
            origin.sated = job.purpose is Purpose.SITEMAP
            self._sitemap_out = self._sitemap_out or origin.sated
            # A sitemap that robots.txt itself names is allowed by it.
            judged = page or (origin.sated and not is_self_named(job))
            if judged and self._obey and robots is not None and not blocked:
                blocked = None if robots.rules.allows(job.url) else Reason.ROBOTS
        else:
            origin.asking = job.purpose
        if blocked:
            job = replace(job, blocked=blocked)
        else:
            state.start(now)
            self._in_flight += 1
        self._place_both(origin, now)
        return job

    def _judge_bad(self, origin: Origin, answer: Answer, seconds: float, now: float) -> None:
        chances = self._chances(origin, answer, now)
        origin.state.page_bad(now - seconds, now, self._tries, chances)
        self._give_up_if_lost(origin, answer, Reason.HOST_GIVEN_UP)

    def _miss(self, origin: Origin, answer: Answer, now: float, *, probe: bool = False) -> None:
        """Record a robots.txt, or a probe, that brought no good answer."""
        state = origin.state
        reason = Reason.HOST_GIVEN_UP if state.answered else Reason.ROBOTS_UNAVAILABLE
        record = state.probe_bad if probe else state.robots_bad
        record(now, self._robots_tries(answer), self._chances(origin, answer, now))
        self._give_up_if_lost(origin, answer, reason)

    def _robots_tries(self, answer: Answer) -> int:
        if isinstance(answer, Response):
            return self._tries + _MORE_TRIES
        if answer.reason is Reason.TIMEOUT:
            return min(self._tries, 2)
        return self._tries if answer.reason in PASSING else 1

    def _chances(self, origin: Origin, answer: Answer, now: float) -> Chances:
        if origin.state.answered and isinstance(answer, Fault):
            self._gone = now
        jitter = self._plan.chance(origin.name, origin.state.failures)
        # If hosts that were there are away, too, it may be our own network.
        return Chances(jitter, network_down=self._gone > self._good)

    def _give_up_if_lost(self, origin: Origin, answer: Answer, reason: Reason) -> None:
        if origin.state.state is State.GIVEN_UP and origin.given_up is None:
            if isinstance(answer, Fault) and not origin.state.answered:
                # No URL ever got an answer: this is how each of them would end.
                origin.given_up = answer
            else:
                origin.given_up = reason
