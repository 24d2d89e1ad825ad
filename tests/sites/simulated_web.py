"""A web of many hosts, crawled in virtual time by the host scheduler alone: no sockets, no tasks.

The sizes follow a power of the rank, the latencies are log-uniform, one host in twenty wants a
delay, and some hosts never answer. A crawl starts from a few hosts; each page leads to more pages
of its host, and to one host that no page has led to before.
"""

from __future__ import annotations

import heapq
import math
import random
from dataclasses import dataclass, field

from msgspec.structs import replace

from trio_crawler.model import Attempt, Fault, Job, Phase, Purpose, Reason, Response
from trio_crawler.policy.plan import Plan
from trio_crawler.policy.robots import Rules
from trio_crawler.schedule.host_scheduler import HostScheduler
from trio_crawler.schedule.origin import Share
from trio_crawler.settlement import RobotsMissing, RobotsRules

FASTEST, SLOWEST = 0.005, 2.0
LARGEST, STEEPNESS = 20_000, 1.25
LONGEST, LONGEST_DELAYED = 40.0, 60.0
PER_HOST, LINKS, MAX_TRIES = 4, 20, 4
TIMEOUT = 10.0
SILENT = Fault(Reason.TIMEOUT, "no answer", Phase.WAIT)


@dataclass(slots=True)
class Site:
    """One host, and what a crawl saw of it; `delay` is that of its robots.txt."""

    name: str
    size: int
    latency: float
    delay: float = 0.0
    silent: bool = False
    found: int = 0
    pages: int = 0
    begun: float = math.inf
    ended: float = 0.0

    @property
    def least(self) -> float:
        """The seconds that it needs if it never waits for a worker."""
        return self.latency + self.size * max(self.latency / PER_HOST, self.delay)


def web(hosts: int, *, seed: int, silent: float = 0.0, largest: int = LARGEST) -> list[Site]:
    """Return hosts in a random order; none but silent ones needs more than a minute."""
    chance = random.Random(seed)
    sites = []
    for rank in range(1, hosts + 1):
        size = max(1, int(largest / rank**STEEPNESS))
        latency = FASTEST * (SLOWEST / FASTEST) ** chance.random()
        site = Site(f"h{rank}.test", size, min(latency, PER_HOST * LONGEST / size))
        delay = float(chance.randint(1, 10))
        if chance.random() < 0.05 and delay * size <= LONGEST_DELAYED:
            site.delay = delay
        site.silent = chance.random() < silent
        sites.append(site)
    chance.shuffle(sites)
    return sites


@dataclass
class Crawl:
    """A crawl of some sites, from the first `seeds` of them; `now` is when it ended.

    `ended` has the time of each page, `work` is what the pages took of the workers. `kept_waiting`
    has, for each request to a silent host that started while a well host had a job that might have
    started, the number of workers that silent hosts had held for a second or more.
    """

    sites: list[Site]
    workers: int
    seeds: int
    now: float = 0.0
    ended: list[float] = field(default_factory=list)
    work: float = 0.0
    kept_waiting: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scheduler = HostScheduler(Plan(workers=self.workers, random=random.Random(1)))
        self._sites = {site.name: site for site in self.sites}
        self._unknown = iter(self.sites)
        self._answers: list[tuple[float, int, float, Job]] = []
        self._later: list[tuple[float, int, Job]] = []
        self._number = 0

    @property
    def bound(self) -> float:
        """The seconds that no schedule can do without."""
        slowest = max(site.least for site in self.sites if not site.silent)
        return max(slowest, self.work / self.workers)

    @property
    def over(self) -> float:
        """How much longer the pages took than the bound, as a part of it."""
        return self.ended[-1] / self.bound - 1

    @property
    def first_requests(self) -> list[float]:
        """The times of the first requests to the hosts, the earliest first."""
        return sorted(site.begun for site in self.sites)

    def run(self, until: float = math.inf) -> Crawl:
        """Crawl to the end, or until a time."""
        for _ in range(self.seeds):
            self._find_host()
        self._start()
        while self.now < until and (self._answers or self._later or self.scheduler.waiting):
            moments = [queue[0][0] for queue in (self._answers, self._later) if queue]
            if len(self._answers) < self.workers:
                moments.append(self.scheduler.wake(self.now))
            self.now = max(self.now, min(moments))
            while self._later and self._later[0][0] <= self.now:
                self.scheduler.put(heapq.heappop(self._later)[2], self.now)
            if self._answers and self._answers[0][0] <= self.now:
                self._answer()
            self._start()
        return self

    def _start(self) -> None:
        while len(self._answers) < self.workers and (job := self.scheduler.next(self.now)):
            site = self._site(job)
            if job.blocked:
                if job.purpose is Purpose.ROBOTS:
                    self.scheduler.learn(RobotsMissing(job.url, SILENT), self.now)
                continue
            site.begun = min(site.begun, self.now)
            if site.silent and self._well_waits():
                self.kept_waiting.append(self._held_long())
            seconds = TIMEOUT if site.silent else site.latency
            self._number += 1
            heapq.heappush(self._answers, (self.now + seconds, self._number, seconds, job))

    def _well_waits(self) -> bool:
        well = (Share.FAIR, Share.LONG)
        return any(
            each.share in well and each.ticket and each.state.free <= self.now
            for each in self.scheduler.hosts()
        )

    def _held_long(self) -> int:
        begun = (end - seconds for end, _, seconds, job in self._answers if self._site(job).silent)
        return sum(start < self.now - 1 for start in begun)

    def _answer(self) -> None:
        _, _, seconds, job = heapq.heappop(self._answers)
        site = self._site(job)
        answer = SILENT if site.silent else Response(200)
        self.scheduler.answered(Attempt(job, answer, seconds), self.now)
        if job.purpose is Purpose.ROBOTS:
            learned = RobotsRules(job.url, Rules({}, site.delay))
            self.scheduler.learn(
                RobotsMissing(job.url, SILENT) if site.silent else learned, self.now
            )
        elif isinstance(answer, Fault):
            if job.tries + 1 < MAX_TRIES:
                self._number += 1
                retry = replace(job, tries=job.tries + 1)
                heapq.heappush(self._later, (self.now + 0.5, self._number, retry))
        else:
            self.work += seconds
            site.pages += 1
            site.ended = self.now
            self.ended.append(self.now)
            self._find_pages(site, LINKS)
            self._find_host()

    def _find_host(self) -> None:
        site = next(self._unknown, None)
        if site is not None:
            self._find_pages(site, 1)

    def _find_pages(self, site: Site, count: int) -> None:
        for _ in range(min(count, site.size - site.found)):
            self.scheduler.put(Job(f"http://{site.name}/{site.found}"), self.now)
            site.found += 1

    def _site(self, job: Job) -> Site:
        return self._sites[job.url.split("/")[2]]
