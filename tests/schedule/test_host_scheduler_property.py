"""Random crawls of random hosts in virtual time: what holds at every start, every time.

The bound on fairness: a host that may be asked and has nothing in flight gets its turn before any
other host gets two. So of n such hosts each waits for n - 1 turns at most. Between http and https
of one host the bound is looser: one of the two is not asked more often than twice the limit in
flight before the other is.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from cases import examples
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from trio_crawler.model import Attempt, Fault, Job, Phase, Purpose, Reason, Response
from trio_crawler.page.urls import authority, origin
from trio_crawler.policy.answers import blames_host
from trio_crawler.policy.host_load import MAX_LIMIT
from trio_crawler.policy.plan import Plan
from trio_crawler.policy.robots import Rules
from trio_crawler.policy.settings import (
    Limits,
    Order,
    Politeness,
    breadth_first,
    by_sitemap,
    depth_first,
)
from trio_crawler.schedule.host_scheduler import HostScheduler
from trio_crawler.schedule.origin import RUN, Origin, Share
from trio_crawler.settlement import (
    ProbeAnswered,
    RobotsMissing,
    RobotsMoved,
    RobotsRules,
)

OK = Response(200)
TROUBLES = (
    Response(429),
    Response(500),
    Response(503),
    Fault(Reason.CONNECTION_REFUSED, phase=Phase.CONNECT),
    Fault(Reason.TIMEOUT, phase=Phase.WAIT),
    Fault(Reason.DNS, phase=Phase.RESOLVE),
    Fault(Reason.NO_SUCH_HOST, phase=Phase.RESOLVE),
)
ASKED = (0.0, 0.001, 1.0, 17.25, 300.0)
MAX_TRIES = 4


@dataclass
class Server:
    """One host as it is, and what was seen of it."""

    latency: float
    crawl_delay: float
    trouble: float
    outage: tuple[float, float]
    delay: float
    in_flight: int = 0
    last: float = -math.inf
    held: float = -math.inf

    def away(self, now: float) -> bool:
        return self.outage[0] <= now < self.outage[1]


@dataclass
class World:
    """Some servers, and a crawl of them by workers that take whatever may start."""

    politeness: Politeness
    workers: int
    order: Order
    hurries: float
    chance: random.Random
    servers: dict[str, Server] = field(default_factory=dict)
    now: float = 0.0

    def __post_init__(self) -> None:
        limits = Limits(max_tries=MAX_TRIES)
        plan = Plan(
            limits=limits,
            politeness=self.politeness,
            order=self.order,
            random=random.Random(self.chance.random()),
        )
        self.turns = HostScheduler(plan)
        # The jobs that are to be put later, by the time.
        self.later: list[tuple[float, int, Job]] = []
        self.waiting = Counter[Job]()
        # The origins whose robots.txt was learned, and those whose robots.txt is asked for.
        self.learned = set[str]()
        self.asking = set[str]()
        self.flights: list[tuple[float, int, float, Job]] = []
        # Of each host that may be asked and has nothing in flight: the turns of others.
        self.passed: dict[str, Counter[str]] = {}
        # Of each origin: how often its host was asked by the other scheme when it might have been.
        self.left_out = Counter[str]()
        # The sitemaps that wait at each origin, and whether one is under way.
        self.sitemaps = Counter[str]()
        self.sitemap_out = False
        self.hurried = False
        self.number = 0

    # The crawl.

    def run(self) -> None:
        """Crawl to the end."""
        for _ in range(5000):
            self.start_all()
            if not self.step():
                break
        assert not self.flights
        assert self.turns.waiting == 0
        assert self.turns.heap.wakes == math.inf
        assert not +self.waiting, "a job was put and never came out"

    def step(self) -> bool:
        """Go on to the next moment at which anything happens; tell whether there is any."""
        moments = [queue[0][0] for queue in (self.flights, self.later) if queue]
        if len(self.flights) < self.workers:
            moments.append(self.turns.wake(self.now))
        if not self.hurried:
            moments.append(self.hurries)
        if min(moments, default=math.inf) == math.inf:
            return False
        self.now = max(self.now, min(moments))
        if self.now >= self.hurries and not self.hurried:
            self.hurry()
        while self.flights and self.flights[0][0] <= self.now:
            self.land()
        while self.later and self.later[0][0] <= self.now:
            job = heapq.heappop(self.later)[2]
            self.turns.put(job, self.now)
            self.sitemaps[origin(job.url)] += job.purpose is Purpose.SITEMAP
        return True

    def put(self, job: Job, delay: float = 0.0) -> None:
        if self.hurried:
            return
        self.waiting[job] += 1
        self.number += 1
        heapq.heappush(self.later, (self.now + delay, self.number, job))

    def hurry(self) -> None:
        self.hurried = True
        for job in [job for job in self.waiting if job.purpose is Purpose.ROBOTS]:
            del self.waiting[job]
        for job in [*self.turns.empty(), *(job for _, _, job in self.later)]:
            self.check_out(job)
        self.later.clear()

    def start_all(self) -> None:
        """Let the free workers take what may start."""
        while not self.hurried and len(self.flights) < self.workers:
            startable = self.startable()
            fair = {each.name for each in self.origins() if each.share is Share.FAIR}
            job = self.turns.next(self.now)
            if job is None:
                assert not startable, "a worker is idle, and a host might be asked"
                return
            self.check_shares()
            self.taken(job, startable, fair)

    def taken(self, job: Job, startable: set[str], fair: set[str]) -> None:
        if not errand(job):
            self.check_out(replace(job, blocked=None))
        if job.purpose is Purpose.SITEMAP:
            assert not self.sitemap_out, "one sitemap at a time"
            self.sitemap_out = True
            self.sitemaps[origin(job.url)] -= 1
        in_turn = origin(job.url) in fair
        self.check_turn(authority(job.url), startable & fair, in_turn)
        self.check_schemes(origin(job.url), startable & fair, in_turn)
        if job.blocked:
            self.dropped(job)
        else:
            self.check_start(job)
            self.fly(job)

    def fly(self, job: Job) -> None:
        server = self.servers[authority(job.url)]
        server.in_flight += 1
        server.last = self.now
        if errand(job):
            self.asking.add(origin(job.url))
        seconds = server.latency * self.chance.uniform(0.5, 1.5)
        self.number += 1
        heapq.heappush(self.flights, (self.now + seconds, self.number, seconds, job))

    def land(self) -> None:
        _, _, seconds, job = heapq.heappop(self.flights)
        server = self.servers[authority(job.url)]
        bad = server.away(self.now) or self.chance.random() < server.trouble
        answer: Response | Fault = self.chance.choice(TROUBLES) if bad else OK
        asked = self.chance.choice(ASKED) if bad and self.chance.random() < 0.3 else 0.0
        server.in_flight -= 1
        server.held = max(server.held, self.now + asked)
        self.turns.answered(Attempt(job, answer, seconds), self.now, asked=asked)
        if job.purpose is Purpose.ROBOTS:
            self.robots_landed(job, answer)
        elif job.purpose is Purpose.PROBE:
            self.forget(job.url)
            self.turns.learn(ProbeAnswered(job.url, answer), self.now)
        else:
            self.page_landed(job, answer)

    def page_landed(self, job: Job, answer: Response | Fault) -> None:
        """Try again, or go on to what it leads to."""
        job = replace(job, tries=job.tries + 1)
        if blames_host(answer) and job.tries < MAX_TRIES:
            self.put(job, 0.5)
        elif answer is OK:
            for _ in range(self.chance.randrange(3) if self.number < 150 else 0):
                self.put(self.page(self.chance.choice(list(self.servers)), job.depth + 1))
        if job.purpose is Purpose.SITEMAP:
            self.sitemap_out = False
            self.turns.sitemap_done(self.now)

    def robots_landed(self, job: Job, answer: Response | Fault) -> None:
        """Learn the rules, or follow where the file has gone."""
        asked = job.referrer or job.url
        if answer is not OK:
            self.forget(asked)
            self.turns.learn(RobotsMissing(asked, answer), self.now)
        elif job.redirects and self.chance.random() < 0.2:
            target = f"http://{self.chance.choice(list(self.servers))}/rules{self.number}"
            hop = replace(job, url=target, redirects=job.redirects - 1, referrer=asked)
            self.waiting[hop] += not self.hurried
            if not self.hurried:
                self.turns.learn(RobotsMoved(hop), self.now)
        else:
            self.learn(asked)

    def learn(self, url: str) -> None:
        server = self.servers[authority(url)]
        self.learned.add(origin(url))
        rules = Rules({"/no": False}, server.crawl_delay)
        self.forget(url)
        self.turns.learn(RobotsRules(url, rules), self.now)
        if self.politeness.robots:
            server.delay = max(server.delay, server.crawl_delay)

    def forget(self, url: str) -> None:
        """Forget that a robots.txt, or a probe, was asked for."""
        self.asking.discard(origin(url))
        self.passed.pop(authority(url), None)

    def dropped(self, job: Job) -> None:
        if job.purpose is Purpose.SITEMAP:
            self.sitemap_out = False
            self.turns.sitemap_done(self.now)
        elif job.purpose is Purpose.ROBOTS:
            asked = job.referrer or job.url
            self.forget(asked)
            self.turns.learn(RobotsMissing(asked, Fault(Reason.UNREACHABLE)), self.now)

    def page(self, name: str, depth: int = 0) -> Job:
        """Make a new page of this host, or a sitemap."""
        self.number += 1
        scheme = self.chance.choice(("http", "http", "https"))
        path = self.chance.choice(("a", "a", "a", "no"))
        purpose = Purpose.SITEMAP if self.chance.random() < 0.1 else Purpose.PAGE
        priority = self.chance.choice((None, 0.1, 1.0))
        url = f"{scheme}://{name}/{path}{self.number}"
        return Job(url, depth, purpose=purpose, priority=priority)

    # What holds.

    def check_out(self, job: Job) -> None:
        assert self.waiting[job] > 0, "a job came out that did not wait"
        self.waiting[job] -= 1

    def check_shares(self) -> None:
        """Check that each request in flight counts for the share that serves its origin."""
        held, hosts = [0] * len(Share), [0] * len(Share)
        for each in self.origins():
            held[each.share] += each.state.in_flight
            hosts[each.share] += 1
        assert self.turns.heap.held == held
        assert self.turns.heap.hosts[Share.FAIR :] == hosts[Share.FAIR :]

    def check_turn(self, name: str, startable: set[str], in_turn: bool) -> None:
        """Check the bound on fairness between hosts that are well and do not need long."""
        hosts = {authority(start + "/") for start in startable}
        eligible = {host for host in hosts if self.servers[host].in_flight == 0}
        self.passed = {host: self.passed.get(host, Counter()) for host in eligible}
        self.passed.pop(name, None)
        for turns in self.passed.values():
            turns[name] += in_turn
            # A run by http, and one by https.
            assert turns[name] <= 2 * RUN, "another host has more than its runs while one waits"

    def check_schemes(self, start: str, startable: set[str], in_turn: bool) -> None:
        """Check the bound on fairness between http and https of one host."""
        self.left_out[start] = 0
        scheme, rest = start.split(":")
        twin = ("http:" if scheme == "https" else "https:") + rest
        if twin in startable and in_turn:
            self.left_out[twin] += 1
            # A run may end, and another begin, in the turns that a host has while it needs long.
            most = 2 * RUN + 2 * self.most()
            assert self.left_out[twin] <= most, "a host is asked by one scheme only"

    def check_start(self, job: Job) -> None:
        """Check what a server may rely on."""
        server = self.servers[authority(job.url)]
        assert server.in_flight < self.most()
        assert self.now >= server.last + server.delay
        assert self.now >= server.held
        if not self.politeness.robots:
            return
        if errand(job):
            assert origin(job.url) not in self.asking, "one errand at a time"
        if job.purpose is not Purpose.ROBOTS:
            assert origin(job.url) in self.learned, "robots.txt comes before all else"
            assert origin(job.url) not in self.asking, "nothing goes beside a robots.txt"
            assert job.purpose is Purpose.SITEMAP or "/no" not in job.url

    def most(self) -> int:
        """Return how many requests may be in flight to a host."""
        return MAX_LIMIT if self.politeness.adaptive else self.politeness.per_host

    def startable(self) -> set[str]:
        """Return the origins that may be asked now."""
        return set(self._startable()) if not self.hurried else set()

    def _startable(self) -> Iterator[str]:
        for each in self.origins():
            open_to_all = each.state.free <= self.now and each.state.has_room
            # A sitemap may have to wait for another one.
            waits = len(each) > self.sitemaps[each.name]
            if waits and open_to_all and each.name not in self.asking:
                yield each.name

    def origins(self) -> list[Origin]:
        """Return the origins of all hosts, both schemes of each."""
        both = ((first, first.other_scheme) for first in self.turns.hosts())
        return [each for pair in both for each in pair if each is not None]


def errand(job: Job) -> bool:
    """Tell whether nobody put this job: it tells whether others may start."""
    return job.purpose is Purpose.PROBE or (job.purpose is Purpose.ROBOTS and not job.referrer)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Draw a world; its seed decides what no example need be shrunk for."""
    politeness = Politeness(
        per_host=draw(st.integers(1, 5)),
        delay=draw(st.sampled_from((0.0, 0.3, 2.0))),
        adaptive=draw(st.booleans()),
        patience=draw(st.sampled_from((0.0, 20.0, 360.0))),
        robots=draw(st.booleans() | st.just(True)),
    )
    order = draw(st.sampled_from((breadth_first, depth_first, by_sitemap)))
    hurries = draw(st.just(math.inf) | st.floats(0, 100))
    chance = random.Random(draw(st.integers(0, 2**32)))
    world = World(politeness, draw(st.integers(1, 20)), order, hurries, chance)
    for number in range(draw(st.integers(1, 6))):
        world.servers[f"h{number}.test"] = _server(draw, politeness.delay)
    for name in world.servers:
        for _ in range(draw(st.integers(0, 12))):
            world.put(world.page(name))
    return world


def _server(draw: st.DrawFn, delay: float) -> Server:
    begin = draw(st.sampled_from((0.0, 1.0, 30.0, math.inf)))
    return Server(
        latency=draw(st.sampled_from((0.0, 0.02, 0.5, 5.0))),
        crawl_delay=draw(st.sampled_from((0.0, 0.0, 0.7, 7.3))),
        trouble=draw(st.sampled_from((0.0, 0.0, 0.2, 0.7))),
        outage=(begin, begin + draw(st.sampled_from((1.0, 50.0, 300.0)))),
        delay=delay,
    )


@examples(150)
@given(worlds())
def test_every_host_is_asked_as_it_wants_and_in_its_turn_and_every_job_comes_out_once(world):
    world.run()


@examples(20)
@given(st.integers(0, 2**32), st.integers(1, 20), st.sampled_from((0.0, 2.0)))
def test_an_outage_of_five_minutes_gives_no_host_up(seed, workers, delay):
    politeness = Politeness(per_host=1, delay=delay)
    world = World(politeness, workers, breadth_first, math.inf, random.Random(seed))
    for number in range(3):
        world.servers[f"h{number}.test"] = Server(1.0, 0.0, 0.0, (30.0, 330.0), delay)
    for name in list(world.servers) * 60:
        world.put(world.page(name))
    world.run()
    assert world.now > 330, "it was in the middle of the crawl"
    assert not any(origin.given_up for origin in world.origins())
