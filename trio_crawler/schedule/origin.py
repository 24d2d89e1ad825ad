"""The records of hosts: their state, jobs and turns, and the servers behind their names.

All hosts at one address share what one host may have. Otherwise a page with a thousand names of
one machine, or with a thousand of its ports, would make a crawl open a connection for each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from math import inf
from typing import Any

from trio_crawler.model import CHECKS, Fault, Job, Purpose, Reason
from trio_crawler.net.turn import Pace, Turn
from trio_crawler.page.urls import host
from trio_crawler.policy.host_load import HostLoad
from trio_crawler.policy.robots import MAX_REDIRECTS, PATH, KnownRules
from trio_crawler.policy.scope import registrable
from trio_crawler.policy.settings import HostStatistics, HostWait
from trio_crawler.schedule.host_state import HostState, State
from trio_crawler.schedule.queues import FifoQueue, Queue

# While URLs wait that were never tried, one of so many turns of a host goes to a retry that is
# due; if more retries than `_MANY` wait, one of two. Ten would be a usual period of servers, too:
# one that refuses each tenth request would refuse a retry each time.
_RETRY_TURN, _MANY = 11, 1_000
# Where one request at a time is allowed and URLs hang, one of so many first tries is not hurried.
_PATIENT_TURN = 4

RUN = 12
"""Turns in a row that a host gets while others with nothing in flight wait.

▶ Requests on a connection, 3,000 hosts that give each other away, 200 workers, a pool of 512: with
one turn at a time 7.3, with runs of 8 13.7, of 12 14.1.
"""

# Seconds: a host needs long if its length is more than the first, or if it wants the second
# between two requests.
# ▶ Over the bound, mean of 8 webs of 3,000 hosts: 0.17 with 16 seconds, 0.22 with 8, 0.28 with 4.
_LONG, _LONG_DELAY, _LEAST_PAGE = 16.0, 1.0, 0.1

# One object for all hosts: each other one would take 24 bytes.
_NEVER = -math.inf
# The placements after which an entry of the heap comes before each later one, so that no host
# starves, however many new ones are found. ▶ A crawl of 80,000 URLs makes three of these.
_AGE = 1 << 16


class Retries(FifoQueue):
    """The pages of an origin whose next try is due, in the order in which they became so.

    `in_flight` are the URLs among the requests in flight that are retries. `turns` is the number
    of pages that started since the last retry.
    """

    __slots__ = ("_hurried", "_patient", "in_flight", "turns")

    def __init__(self) -> None:
        super().__init__()
        self.in_flight: set[str] = set()
        # The URL of the first try in flight that is not hurried, and how many were since it began.
        self._patient: str | None = None
        self._hurried = _PATIENT_TURN
        self.turns = 0

    def answered(self, url: str) -> None:
        """Record that a request in flight was answered."""
        self.in_flight.discard(url)
        if self._patient == url:
            self._patient = None

    def hurries(self, url: str, limit: int) -> bool:
        """Whether to hurry the first try of a page now that URLs hang.

        One of those in flight has the whole timeout: only so it is seen whether the pages have got
        slow. If no more than one request may be in flight, one of four has.
        """
        waits = self._patient is not None or (limit < 2 and self._hurried < _PATIENT_TURN)
        self._hurried += 1
        if not waits:
            self._patient, self._hurried = url, 1
        return waits

    def is_next(self, limit: int) -> bool:
        """Whether a retry comes before URLs that were never tried, which must not starve it.

        Of the `limit` of requests in flight a quarter may be retries, and at least one: URLs that
        hang must not keep the others waiting.
        """
        every = 2 if len(self) > _MANY else _RETRY_TURN
        return self.turns + 1 >= every and len(self.in_flight) < max(1, limit // 4)


class Share(IntEnum):
    """The share of the workers that serves an origin; see `HostHeap`."""

    IDLE = 0
    """It has nothing to do, or was given up."""
    FAIR = 1
    LONG = 2
    """It is well, and needs long or wants a long delay."""
    NEW = 3
    """It was never asked, or is in trouble, but answers at once."""
    DOUBTFUL = 4
    """It does not answer its first request, or is in trouble and silent."""


class Host:
    """One host, by http and https together.

    `load` is its requests in flight and their limit. `pace` is its turns, None as long as there
    are none. `named` is the time until which the last lookup of its name holds. `server` is shared
    with the other hosts at its address, None if there are none. `HostStatistics` documents the
    other counts.
    """

    __slots__ = ("_origin", "bytes", "failed", "load", "named", "pace", "pages", "server")

    def __init__(self, origin: str, load: HostLoad) -> None:
        # Another string would take 60 bytes.
        self._origin = origin
        self.load = load
        self.named = _NEVER
        self.pace: Pace | None = None
        self.server: Server | None = None
        self.pages = self.failed = self.bytes = 0

    @property
    def name(self) -> str:
        """The host with its port."""
        return self._origin.rpartition("/")[2]

    @property
    def hostname(self) -> str:
        """The host without its port."""
        return host(self._origin + "/")


class Origin:
    """One host by one scheme: its jobs, its state, its robots.txt and its place in the heap."""

    __slots__ = (
        "awaited",
        "crawled",
        "given_up",
        "hops",
        "host",
        "name",
        "obeys",
        "other_scheme",
        "pages",
        "parked",
        "queue",
        "retries",
        "robots",
        "run",
        "share",
        "sitemap_was_last",
        "sitemaps",
        "state",
        "ticket",
    )

    def __init__(self, name: str, host: Host, queue: Queue, state: HostState) -> None:
        self.name = name
        self.host = host
        # The same host by the other scheme, if the crawl has URLs of both.
        self.other_scheme: Origin | None = None
        self.state = state
        # The pages that were never tried.
        self.queue = queue
        # The number of pages in that queue. Its length would be one more call at each step.
        self.pages = 0
        # None until needed: most hosts have neither. `hops` has targets of redirected robots.txt.
        self.sitemaps: FifoQueue | None = None
        self.hops: FifoQueue | None = None
        self.retries: Retries | None = None
        # Whether the last job was a sitemap. Then a page is next: sitemaps must not starve pages.
        self.sitemap_was_last = False
        # Whether its sitemaps wait for the sitemap of another host.
        self.parked = False
        self.robots: KnownRules | None = None
        # The purpose of the robots.txt or probe in flight; until its answer no other job starts.
        self.awaited: Purpose | None = None
        self.given_up: Reason | Fault | None = None
        # Whether it has pages of the crawl, and whether its robots.txt is obeyed.
        self.crawled = self.obeys = True
        # The turns of the run so far, 0 if the origin was never asked.
        self.run = 0
        # The number of the only valid place in the heap, 0 for none.
        self.ticket = 0
        self.share = Share.IDLE

    def __len__(self) -> int:
        others = self.sitemaps, self.retries, self.hops
        return self.pages + sum(len(queue) for queue in others if queue)

    def order(self, number: int) -> tuple[int, int, int]:
        """Return the place of the entry with this number among the origins that may be requested.

        Fewest in flight first. Of those with none, an origin that was never asked comes first,
        then those in a run. Of these the one that was placed last comes first: its connection is
        the likeliest to be open. Of the rest the one that has waited longest comes first.
        """
        in_flight, age = self.host.load.in_flight, number // _AGE
        if not self.run:
            return in_flight, age - 2, number
        if in_flight or self.run >= RUN or self.state.state is not State.WELL:
            return in_flight, age, number
        # In each block of numbers the order is reversed.
        return in_flight, age - 1, -number

    @property
    def is_long(self) -> bool:
        """Whether it needs long: by its length, or since it wants a long delay."""
        return self.host.load.delay >= _LONG_DELAY or self.length > _LONG

    @property
    def length(self) -> float:
        """The least number of seconds that its waiting pages take.

        Each counts for a tenth or more: those of a quick host soon lead to many others.
        """
        load = self.host.load
        return self.pages * max(load.delay, load.latency / load.limit, _LEAST_PAGE)

    @property
    def first(self) -> Queue | None:
        """The queue that has the next job; None if there is no job, or none may start."""
        if self.awaited or self.hops:
            return self.hops or None
        # A sitemap comes before pages, since it lists pages.
        retries, well = self.retries, self.state.state is State.WELL
        pages = self.pages or retries
        if self.sitemaps and not self.parked and not (self.sitemap_was_last and pages):
            return self.sitemaps
        # While the host is in trouble its retries wait: they might use up their tries.
        if retries and (not self.pages or (well and retries.is_next(self.state.limit))):
            return retries
        return self.queue if self.pages else None

    def put(self, job: Job) -> None:
        """Add a job to its queue, but not a page that was never tried: `queue` has these."""
        if job.purpose is Purpose.PAGE or job.purpose in CHECKS:
            self.retries = Retries() if self.retries is None else self.retries
            self.retries.put(job)
        elif job.purpose is Purpose.SITEMAP:
            self.sitemaps = self.sitemaps or FifoQueue()
            self.sitemaps.put(job)
        else:
            self.hops = self.hops or FifoQueue()
            self.hops.put(job)

    def empty(self) -> Iterator[Job]:
        """Remove and yield all waiting jobs but redirects of a robots.txt: these never count."""
        for queue in (self.sitemaps, self.retries, self.queue):
            while queue:
                job = queue.pop()
                self.pages -= queue is self.queue
                yield job

    def prerequisite(self, job: Job, now: float) -> Job | None:
        """Return the robots.txt or probe that must be answered before `job`, None if none."""
        url, robots = self.name + PATH, self.robots
        if job.purpose is Purpose.ROBOTS:
            return None
        purpose: Purpose | None = Purpose.ROBOTS
        if not self.obeys or (robots and robots.is_fresh(now)) or job.url == url:
            purpose = self.state.prerequisite(job.tries, now)
        if purpose is Purpose.PROBE and self.state.good is not None:
            return Job(self.state.good, purpose=purpose)
        if purpose is Purpose.ROBOTS:
            validator = None if robots is None else robots.validator
            return Job(url, 0, MAX_REDIRECTS, purpose=purpose, validator=validator)
        return None

    def statistics(self, now: float) -> HostStatistics:
        """Return the statistics of the host at this moment, for both schemes."""
        both = [self] if self.other_scheme is None else [self, self.other_scheme]
        host, states = self.host, [origin.state for origin in both]
        load, waiting = host.load, sum(map(len, both))
        rest = max(min(state.rested for state in states) - now, 0.0)
        asked = load.delay if load.learned is None else load.learned.asked
        return HostStatistics(
            name=host.name,
            waiting=waiting,
            in_flight=load.in_flight,
            limit=max(state.limit for state in states),
            delay=load.delay,
            rest=rest,
            latency=load.latency,
            failures=max(state.failures for state in states),
            given_up={
                each.name.partition(":")[0]: each.given_up
                for each in both
                if each.given_up is not None
            },
            pages=host.pages,
            failed=host.failed,
            bytes=host.bytes,
            waits_for=_waits_for(both, rest) if waiting else HostWait.NOTHING,
            asked=asked if self.crawled or asked > load.politeness.delay else 0.0,
            refused=0 if load.learned is None else load.learned.refused,
        )


def _waits_for(both: Sequence[Origin], rest: float) -> HostWait:
    """Return what the next job of a host waits for, whose origins these are."""
    queued = [origin for origin in both if len(origin)]
    if any(origin.given_up for origin in queued):
        return HostWait.TURN
    # An origin that waits for no robots.txt comes first.
    free = [origin for origin in queued if not origin.awaited]
    if not free:
        return HostWait.PROBE if queued[0].awaited is Purpose.PROBE else HostWait.ROBOTS
    server = free[0].host.server
    shared = server is not None and all(origin in server.waiting for origin in free)
    if shared or not any(origin.state.has_room for origin in free):
        return HostWait.ANSWER
    return HostWait.REST if rest > 0 else HostWait.TURN


class Turns:
    """The turns of the jobs that are `out`, with a worker, by purpose and URL.

    `moved` is called with an origin when the next start at its host may have become earlier or
    later. With `hurried` the first try of a page is hurried where URLs hang: it will have another.
    """

    def __init__(self, moved: Callable[[Origin], None], *, hurried: bool) -> None:
        self.out: dict[tuple[Purpose, str], Turn] = {}
        self._moved = moved
        self._hurried = hurried

    def give(self, origin: Origin, job: Job) -> None:
        """Assign the next turn of a host with a delay to a job, and hurry it where URLs hang.

        A delay that robots.txt asks for begins with the request for it.
        """
        host, hurry = origin.host, math.inf
        if self._hurried and job.purpose is Purpose.PAGE and origin.pages and not job.tries:
            hurry = origin.state.hurry
        if hurry < math.inf:
            origin.retries = Retries() if origin.retries is None else origin.retries
            if not origin.retries.hurries(job.url, origin.state.limit):
                hurry = math.inf
        if host.load.delay and host.pace is None:
            host.pace = Pace(host.load, lambda: self._moved(origin))
        if host.load.delay or hurry < math.inf or job.purpose is Purpose.ROBOTS:
            pace = host.pace if host.load.delay else None
            self.out[job.purpose, job.url] = Turn(host.load, pace, hurry)

    def end(self, job: Job) -> None:
        """Record that a job was answered."""
        turn = self.out.pop((job.purpose, job.url), None)
        if turn is not None:
            turn.end()


MOST = 16
"""Requests in flight at a server that unrelated sites share, such as a large shared host.

Half as many as it has registrable domains, but at least as many as one host may have.
"""

# Hosts at a server whose domains are not looked at. ▶ The list of suffixes takes 0.15 s.
_FEW = 8


class Server:
    """The load of the hosts at one address, which are two at least.

    `in_flight` is the number of requests in flight, `latest` the load of the host with a delay
    whose request was the last to be chosen. Of the origins that could start a job, `placed` are
    those that have a place in the heap: with the requests in flight no more than the limit, or one
    if there is a delay. The others are `waiting`, in the order in which their turn comes. The
    limit is the greatest of those of its hosts; each has its own besides.
    """

    __slots__ = (
        "_domains",
        "_most",
        "_names",
        "filling",
        "in_flight",
        "latest",
        "placed",
        "waiting",
    )

    def __init__(self) -> None:
        self.in_flight = 0
        self.latest: HostLoad | None = None
        self.placed = set[Any]()
        self.waiting: dict[Any, None] = {}
        # Whether the scheduler is placing those that wait.
        self.filling = False
        self._most = 1
        self._domains = set[str]()
        self._names: list[str] | None = []

    def join(self, name: str, load: HostLoad) -> None:
        """Add a host with this name, without its port, and load."""
        self.in_flight += load.in_flight
        if load.delay and (self.latest is None or load.last > self.latest.last):
            self.latest = load
        if self._names is not None:
            self._names.append(name)
            if len(self._names) > _FEW or self._domains:
                self._domains.update(map(registrable, self._names))
                self._names = [] if len(self._domains) < 2 * MOST else None

    @property
    def _shared(self) -> int:
        return min(MOST, len(self._domains) // 2)

    def admit(self, origin: Any, load: HostLoad, now: float, *, kept: bool) -> float | None:
        """Return when an origin that has a place from now on may start; None if it is to wait.

        One that is `kept`, in its place or in a run, waits for none of the others.
        """
        queued = self.waiting and not (self.filling or kept)
        free = None if queued else self.free(load, now)
        if free is None:
            self.waiting[origin] = None
        else:
            self.placed.add(origin)
        return free

    def free(self, load: HostLoad, now: float) -> float | None:
        """Return when a host with this load may start a job; None if it waits for others."""
        latest, own = self.latest, load.politeness.per_host
        self._most = max(self._most, own)
        limit = max(int(load.limit) if load.politeness.adaptive else own, self._most, self._shared)
        delay = min(load.delay, load.politeness.delay)
        if self.in_flight + len(self.placed) >= limit or (delay and self.placed):
            return None
        if not delay or latest is None:
            return now
        # The delay is that of one host, for each that it may have.
        free = latest.last + delay * own / max(own, self._shared)
        if latest.taken <= now or self._shared > own:
            # On a large server as many may connect at once as may be in flight.
            return free
        # It was chosen, and has not started yet.
        return max(free, latest.taken) if latest.taken < inf else None
