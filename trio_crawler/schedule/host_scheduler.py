"""The host scheduler: which host is next, and which of its jobs starts.

All decisions are synchronous, take the time as an argument, and need O(log n) steps for n hosts.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence

import trio
from msgspec.structs import replace

from trio_crawler.model import (
    CHECKS,
    REDIRECTS,
    Attempt,
    Fault,
    Job,
    Phase,
    Purpose,
    Reason,
    Response,
)
from trio_crawler.policy.answers import LEAST_BAD, blames_host
from trio_crawler.policy.plan import Plan
from trio_crawler.policy.robots import (
    FRESH,
    PATH,
    KnownRules,
    is_self_named,
)
from trio_crawler.policy.settings import breadth_first
from trio_crawler.policy.traps import TrapsByHost
from trio_crawler.schedule.host_heap import HostHeap
from trio_crawler.schedule.host_state import State
from trio_crawler.schedule.origin import RUN, Host, Origin, Server, Share, Turns
from trio_crawler.schedule.origins import Failures, Names, Origins
from trio_crawler.schedule.queues import PriorityQueue, Queue, make_queue, parameters
from trio_crawler.settlement import (
    Learned,
    ProbeAnswered,
    RobotsMissing,
    RobotsMoved,
    RobotsRenewed,
    RobotsRules,
    SitemapRead,
)

# Seconds for which a host counts as having answered recently.
_RECENTLY = 10.0
# Seconds after which a host that has not answered its first request is doubtful.
_GRACE = 1.0


class HostScheduler:
    """Choose the next job to start, as early as the state and the robots.txt of its host allow.

    `HostHeap` says which of the hosts that may be requested now is next. A host takes less than
    1 KiB of memory besides its jobs. `queue` makes the queue for the pages of an origin; the
    default is a queue in memory in the order of the plan. `waiting` is the number of jobs.
    `delayed` are those that wait elsewhere for their next try.

    With `turns`, which may be set before the first job, a job of a host with a delay gets one, and
    no other job of the host is chosen until its request has started; `moved` places the host
    again. Without them the choice counts as the start.
    """

    def __init__(
        self,
        plan: Plan,
        queue: Callable[[], Queue] | None = None,
        delayed: Sequence[object] = (),
    ) -> None:
        self._plan, self._delayed = plan, delayed
        self.turns: Turns | None = None
        self._names: Names | None = None
        self._make_queue = queue or (lambda: make_queue(plan.order))
        # A caller's order is kept.
        self._plain_first = plan.order is breadth_first
        origins = Origins(plan, self._make_queue)
        self._enter = origins.enter
        self.origins = origins.by_name
        self.known, self.origin = origins.known, origins.origin
        self.host, self.hosts, self._share = origins.host, origins.hosts, origins.share
        self.traps = TrapsByHost(plan.traps)
        self.heap = HostHeap(plan.workers)
        self._store_rules, self.restore_rules = origins.store_rules, origins.restore_rules
        self.waiting = 0
        # The time until which the only host with a place is a usual one; see `next`.
        self._usual_until = -math.inf
        # The new pages that were put.
        self._new = 0
        # The two hosts that answered last, the older first, with the times of their answers.
        self._recent: dict[Host, float] = {}
        self._failures = Failures(plan, self._few_left)
        # Origins that wait to fetch a sitemap: one is fetched at a time, since it takes 50 MiB.
        self._parked: deque[Origin] = deque()
        self._sitemap_in_flight = False
        # Requests to hosts that have not answered yet, by the time at which the first one started.
        self._first_requests: deque[tuple[float, list[Origin]]] = deque()

    def await_names(self, now: float) -> trio.MemoryReceiveChannel[str]:
        """Let hosts wait for the lookup of their names, also those that have jobs already.

        Returns a channel of URLs to look up: call `looked_up` after each lookup.
        """
        self._names = Names()
        for origin in self.origins.values():
            if origin.ticket:
                self._place(origin, now)
        return self._names.urls

    def put(self, job: Job, now: float) -> None:
        """Add a job, which waits for the turn of its host."""
        self.waiting += 1
        name = job.url[: job.url.index("/", 8)]
        origin = self.origins.get(name)
        if origin is None:
            origin = self.origin(job.url)
        if not origin.crawled and job.purpose is Purpose.PAGE:
            self._enter(origin)
            self._usual_until = -math.inf
        new = not job.tries and (job.purpose is Purpose.PAGE or job.purpose in CHECKS)
        if new:
            self._new += 1
            origin.pages += 1
        else:
            origin.put(job)
            self._usual_until = -math.inf
        if not origin.ticket:
            self._place(origin, now)
        if new:
            queue = origin.queue
            if "?" in job.url and self._plain_first and not isinstance(queue, PriorityQueue):
                queue = origin.queue = PriorityQueue(parameters, self._make_queue, queue)
            queue.put(job)

    def disallows(self, url: str) -> bool:
        """Whether the robots.txt of a normalised URL forbids it, as far as that is known."""
        origin = self.origins.get(url[: url.index("/", 8)])
        known = None if origin is None else origin.robots
        return known is not None and not known.rules.allows(url)

    def restore(self, urls: Sequence[str]) -> None:
        """Record the pages of one host that earlier runs admitted."""
        self.traps.of(urls[0]).restore(urls)
        # Else the URLs of the host that wait for a check would find the manners of a stranger.
        if self._plan.checks.external and not (origin := self.origin(urls[0])).crawled:
            self._enter(origin)

    def next(self, now: float, *, last: bool = False) -> Job | None:
        """Remove and return the job to start now; None if no job may start.

        A `blocked` job must not be fetched, and no answer is recorded for it. `last` is whether
        the job is for the last free worker. If all requests in flight go to one host, and another
        host answered recently, that worker waits: a URL of the other host may soon be found.

        A host that is alone keeps its place while it is well, has no delay, and nothing but pages
        that were never tried waits there: only its limit and its robots.txt decide then.
        """
        origin = self.heap.only if now < self._usual_until else None
        if origin is not None and not (last and self._would_starve_another(origin.host, now)):
            load = origin.host.load
            if load.in_flight + 1 > load.limit:
                return None
            self.waiting -= 1
            origin.pages -= 1
            origin.run = origin.run % RUN + 1
            job = origin.queue.pop()
            if (blocked := self._blocked(origin, origin.queue, job)) is not None:
                job = replace(job, blocked=blocked)
            else:
                origin.state.start(now)
                self.heap.held[Share.FAIR] += 1
            if not origin.pages:
                self._place(origin, now)
            return job
        if self.heap.wakes <= now:
            self.wake(now)
        while self._first_requests and self._first_requests[0][0] <= now - _GRACE:
            for late in self._first_requests.popleft()[1]:
                if late.share is Share.NEW:
                    self.heap.move(late, Share.DOUBTFUL)
        while (origin := self.heap.pop()) is not None:
            # One that was alone may have kept its place without room for a request.
            load = origin.host.load
            full = load.in_flight + 1 > load.limit and origin.given_up is None
            if not full and last and self._would_starve_another(origin.host, now):
                self._place(origin, now)
                return None
            if not (full or (self._sitemap_in_flight and self._park(origin))):
                return self._take(origin, now)
            self._place(origin, now)
        return None

    def wake(self, now: float) -> float:
        """Place the hosts whose rest is over; return the time at which the next rest ends."""
        while (origin := self.heap.pop_rested(now)) is not None:
            self._place(origin, now)
        return self.heap.wakes

    def answered(self, attempt: Attempt, now: float, *, asked: float = 0.0) -> bool:
        """Record the answer to a job that was not blocked, so that its host may start another.

        `asked` is the number of seconds for which the answer asks to leave the host alone. Returns
        whether it is none of the tries of its URL: the host only limits the rate.
        """
        job, answer = attempt.job, attempt.answer
        origin = self.origins[job.url[: job.url.index("/", 8)]]
        state, host, limited = origin.state, origin.host, False
        if self.turns is not None and self.turns.out:
            self.turns.end(job)
        # ▶ Another number would take 24 bytes of each host.
        state.finish(now + asked if asked else now)
        if host.server is not None:
            host.server.in_flight -= 1
        self.heap.held[origin.share] -= 1
        recent = self._recent
        if len(recent) > 1 or host not in recent:
            recent.pop(host, None)
            if len(recent) > 1:
                del recent[next(iter(recent))]
        recent[host] = now
        failures, page = self._failures, job.purpose is Purpose.PAGE
        bad = isinstance(answer, Fault) or (answer.status >= LEAST_BAD and blames_host(answer))
        if bad:
            host.failed += 1
            self._usual_until = -math.inf
            if isinstance(answer, Fault) and answer.phase is Phase.RESOLVE:
                # The next lookup is due.
                host.named = -math.inf
        elif page and isinstance(answer, Response) and answer.status not in REDIRECTS:
            host.pages += 1
            host.bytes += len(answer.body)
        page = page or job.purpose in CHECKS
        if page and origin.retries is not None:
            origin.retries.answered(job.url)
        # The answers for a robots.txt and for a probe are judged in `learn`.
        if page or job.purpose is Purpose.SITEMAP:
            if bad and blames_host(answer):
                if attempt.seconds > _GRACE and origin.share < Share.DOUBTFUL:
                    self.heap.move(origin, Share.DOUBTFUL)
                limited = failures.page(origin, attempt, now)
                if asked and state.load.learned is not None:
                    state.load.learned.told = now + asked
            elif isinstance(answer, Response):
                state.page_ok(attempt.seconds, now)
                if failures.good_host is not host:
                    failures.good(host, now)
                failures.last_good = now
                if state.load.learned is not None:
                    state.load.learned.forget(job.url)
                # Not a robots.txt: a proxy may answer it from its cache while the server is down.
                if page and not job.url.endswith(PATH):
                    state.good = job.url
        elif not blames_host(answer) and (job.purpose is Purpose.PROBE or state.good is None):
            state.heard(attempt.seconds, now)
        if origin.other_scheme is not None:
            self._place(origin.other_scheme, now)
        if self._usual_until <= now or state.load.delay or not origin.ticket:
            self._place(origin, now)
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
                self._store_rules(origin, KnownRules(rules, now, validator))
                origin.state.robots_ok()
                self._failures.good(origin.host, now)
            case RobotsRenewed(seconds=seconds):
                # None if the rules were dropped meanwhile, to save memory.
                if origin.robots is not None:
                    origin.robots = origin.robots.renewed(now, seconds)
                origin.state.robots_ok()
                self._failures.good(origin.host, now)
        self._place_both(origin, now)

    def looked_up(self, url: str, addresses: Sequence[str], seconds: float, now: float) -> None:
        """Record the lookup of a host: it shares a server with the others at its addresses."""
        assert self._names is not None, "nothing is looked up before"  # noqa: S101 - for mypy
        origin = self.origin(url)
        other = self._share(origin.host, addresses, seconds)
        if other is not None and (first := self.host(other.name)) is not None:
            self._place_both(first, now)
        self._names.found(origin, now, seconds)
        self.moved(origin, now)

    def moved(self, origin: Origin, now: float) -> None:
        """Place a host again, whose next start may have become earlier or later."""
        server = origin.host.server
        if server is not None and len(server.placed) == 1:
            # At a delay it is the next one, and may start earlier or later, too.
            self._place(next(iter(server.placed)), now)
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
        for origin in list(self.origins.values()):
            self.heap.remove(origin)
            for job in origin.empty():
                self.waiting -= 1
                yield job
        # Redirects of robots.txt files are left.
        self.waiting = 0

    def part(self, name: str, now: float) -> list[Job]:
        """Remove and return the jobs that wait at a host, by either scheme."""
        found: list[Job] = []
        for scheme in ("http", "https"):
            origin = self.origins.get(f"{scheme}://{name}")
            if origin is not None:
                found += origin.empty()
                self._place_both(origin, now)
        self.waiting -= len(found)
        return found

    def limit(self, name: str, per_host: int, now: float) -> bool:
        """Let at most so many requests be in flight at a host; return whether no more are."""
        origin = self.host(name)
        if origin is None:
            return True
        load, most = origin.host.load, max(per_host, 1)
        if load.politeness.per_host != most:
            load.politeness = replace(load.politeness, per_host=most)
            load.limit = most if load.learned is None else min(load.limit, most)
            self.moved(origin, now)
        return load.in_flight <= per_host

    def _few_left(self) -> bool:
        """Whether nothing is left but URLs of hosts in trouble, and less than one in a hundred."""
        left = self.waiting + sum(self.heap.held) + len(self._delayed)
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
        state = origin.state
        self._usual_until = -math.inf
        if state.state is not State.WELL:
            share = Share.IDLE if origin.given_up else max(origin.share, Share.NEW)
        elif not (has_job or state.in_flight):
            share = Share.IDLE
        elif not state.answered:
            share = max(origin.share, Share.NEW)
        elif len(self.origins) > 1 and origin.is_long:
            share = Share.LONG
        else:
            share = Share.FAIR
        if share is not origin.share:
            self.heap.move(origin, share)
        unnamed = has_job and now >= origin.host.named
        server, waits, kept = origin.host.server, False, False
        if server is not None and (kept := origin in server.placed):
            server.placed.remove(origin)
        if has_job and origin.given_up:
            self.heap.place(origin, -math.inf, now)
        elif unnamed and self._names is not None and self._names.awaits(origin, now):
            self.heap.remove(origin)
        elif has_job and origin.state.has_room:
            free: float | None = state.free
            if server is not None and state.free <= now:
                kept = kept or 0 < origin.run < RUN
                free = server.admit(origin, state.load, now, kept=kept)
            waits = free is None
            if free is None:
                self.heap.remove(origin)
            else:
                self.heap.place(origin, free, now)
        elif origin.ticket:
            self.heap.remove(origin)
        if server is not None:
            if not waits:
                server.waiting.pop(origin, None)
            if not server.filling:
                self._fill(server, now)
        elif simple and share is Share.FAIR and self.heap.only is origin:
            well = not (state.load.delay or state.hung or origin.other_scheme)
            robots, named = origin.robots, math.inf if self._names is None else origin.host.named
            if well and not (origin.obeys and robots is None):
                fresh = robots.since + FRESH if origin.obeys and robots else math.inf
                self._usual_until = min(fresh, named)

    def _fill(self, server: Server, now: float) -> None:
        """Place the origins of a server whose turn has come."""
        server.filling = True
        while (first := next(iter(server.waiting), None)) is not None:
            if server.free(first.host.load, now) is None:
                break
            self._place(first, now)
        server.filling = False

    def _park(self, origin: Origin) -> bool:
        """Let an origin wait if a sitemap is next; return whether it has no other job to start."""
        if origin.sitemaps and origin.first is origin.sitemaps:
            origin.parked = True
            self._parked.append(origin)
        return origin.first is None

    def _would_starve_another(self, host: Host, now: float) -> bool:
        """Whether this host has all requests in flight, and another host answered recently."""
        others = [each for each in self._recent if each is not host]
        # In most crawls there is none.
        if not others or not 0 < sum(self.heap.held) == host.load.in_flight:
            return False
        return now - self._recent[others[-1]] < _RECENTLY

    def _take(self, origin: Origin, now: float) -> Job:
        """Return the job of an origin to start now; a robots.txt or a probe may come first."""
        if origin.host.server is not None:
            origin.host.server.placed.discard(origin)
        simple = not (origin.awaited or origin.hops or origin.sitemaps or origin.retries)
        first = origin.queue if simple else origin.first
        assert first is not None, "an origin without jobs has no ticket"  # noqa: S101 - for mypy
        state, robots, blocked = origin.state, origin.robots, origin.given_up
        origin.run = origin.run % RUN + 1
        job: Job | None = None
        fresh = not origin.obeys or (robots is not None and now - robots.since <= FRESH)
        if not (blocked or (fresh and state.state is State.WELL)):
            job = origin.prerequisite(first.peek(), now)
        if job is None:
            self.waiting -= 1
            job = first.pop()
            page = job.purpose is Purpose.PAGE or job.purpose in CHECKS
            if origin.retries is not None and page:
                origin.retries.turns = 0 if first is origin.retries else origin.retries.turns + 1
            origin.pages -= first is origin.queue
            origin.sitemap_was_last = job.purpose is Purpose.SITEMAP
            self._sitemap_in_flight = self._sitemap_in_flight or origin.sitemap_was_last
            # A sitemap that robots.txt itself names is allowed.
            if not blocked and (page or (origin.sitemap_was_last and not is_self_named(job))):
                blocked = self._blocked(origin, first, job)
        else:
            origin.awaited = job.purpose
        if blocked:
            job = replace(job, blocked=blocked)
        else:
            state.start(now)
            if origin.host.server is not None:
                origin.host.server.in_flight += 1
                if state.load.delay:
                    origin.host.server.latest = state.load
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

    def _blocked(self, origin: Origin, queue: Queue, job: Job) -> Reason | None:
        """Return why a job from this queue of an origin is not fetched, by what is known now."""
        robots = origin.robots if origin.obeys else None
        if robots is not None and not robots.rules.allows(job.url):
            return Reason.ROBOTS
        if "?" in job.url and job.depth and queue is origin.queue and origin.crawled:
            return self.traps.of(job.url).left_out(job.url)
        return None
