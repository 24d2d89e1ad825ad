"""Crawl very many hosts in virtual time: how near the schedule is to the ideal, and its cost.

    python tests/bench/schedule.py [--hosts 10000] [--urls 1000000] [--workers 200 1000]
                                   [--cost 100 10000 100000] [--rounds 3] [--seed 1]
                                   [--steepness 0.8]

There is no network, and nothing waits: a crawl is a heap of answers to come, and `HostScheduler`
chooses the next job. The hosts are of all sizes (the biggest has hundreds of times as many URLs as
the one in the middle), answer after 20 ms to 5 s, one host always about as fast, and a fifth of
them wants up to 2 s between two starts. A page leads to the next twenty of its host.

No schedule ends earlier than the bound, the longer of two times: that which the workers need if
none of them ever waits, and that which the host needs that takes longest if it never waits for a
worker. "busy" is how much of the workers' time was spent on answers until the last answer.

The second table is the real cost of a decision, which is `answered`, `put` and `next` for one URL,
and the memory of a host: its place, state and rules, with one waiting URL, but not the job
itself; and that of one more URL that waits.
"""

from __future__ import annotations

import argparse
import gc
import heapq
import math
import random
import time
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import median

from trio_crawler.model import Attempt, Job, Purpose, Response
from trio_crawler.policy.plan import Plan
from trio_crawler.policy.robots import ALLOW_ALL, Rules
from trio_crawler.policy.settings import Politeness
from trio_crawler.schedule.host_scheduler import HostScheduler
from trio_crawler.settlement import RobotsRules

FASTEST, SLOWEST = 0.02, 5.0
LONGEST_DELAY = 2.0
PATIENT = 0.2
"""The part of the hosts that want a delay."""

STEEPNESS = 0.8
"""The host of rank r has URLs in proportion to 1 / r ** STEEPNESS; with 0 all are alike."""

LINKS = 20
OK = Response(200)


@dataclass(slots=True)
class Site:
    """One host: how many URLs it has, how fast it answers, and how often it may be asked.

    `found` counts the URLs that were put, `robots` and `work` (seconds) what its answers took.
    """

    job: Job
    urls: int
    latency: float
    delay: float
    found: int = 0
    answered: int = 0
    robots: float = 0.0
    work: float = 0.0

    def least(self, per_host: int) -> float:
        """Return the seconds that this host needs if it never waits for a worker."""
        return self.robots + max(self.urls * self.delay, self.work / per_host)


@dataclass(frozen=True, slots=True)
class Crawled:
    """The figures of one crawl: in virtual seconds but for `cpu`, the real ones."""

    hosts: int
    urls: int
    workers: int
    makespan: float
    work: float
    longest: float
    cpu: float

    @property
    def bound(self) -> float:
        """Return the seconds that no schedule can do without."""
        return max(self.work / self.workers, self.longest)

    @property
    def over(self) -> float:
        """Return how much longer it took than the bound, as a part of that."""
        return self.makespan / self.bound - 1

    @property
    def busy(self) -> float:
        """Return how much of the workers' time was spent on answers."""
        return self.work / self.workers / self.makespan


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a decision (seconds of CPU), of a host and of a waiting URL (bytes)."""

    hosts: int
    decision: float
    host: float
    url: float


def sizes(hosts: int, urls: int, steepness: float = STEEPNESS) -> list[int]:
    """Return how many URLs each host has, the biggest first; at least one each."""
    shares = list(accumulate(1 / rank**steepness for rank in range(1, hosts + 1)))
    marks = [round((urls - hosts) * share / shares[-1]) for share in shares]
    return [1 + mark - before for mark, before in zip(marks, [0, *marks], strict=False)]


def _site(number: int, urls: int, chance: random.Random) -> Site:
    latency = FASTEST * (SLOWEST / FASTEST) ** chance.random()
    delay = chance.uniform(0, LONGEST_DELAY) if chance.random() < PATIENT else 0.0
    return Site(Job(f"http://h{number}.test/page"), urls, latency, delay)


class Crawl:
    """Crawl some sites with so many workers, in virtual time."""

    def __init__(
        self, sites: Sequence[Site], workers: int, politeness: Politeness, chance: random.Random
    ) -> None:
        self._sites = {site.job.url: site for site in sites}
        self._sites |= {site.job.url.replace("/page", "/robots.txt"): site for site in sites}
        self._seeds = list(sites)
        chance.shuffle(self._seeds)
        self._workers = workers
        self._politeness = politeness
        self._chance = chance
        self._scheduler = HostScheduler(plan_of(politeness))
        self._in_flight: list[tuple[float, int, float, Job]] = []
        self._number = 0

    def run(self) -> Crawled:
        """Crawl to the end."""
        began = time.process_time()
        for site in self._seeds:
            self._find(site, 1, 0.0)
        now = 0.0
        self._start(now)
        while self._in_flight or self._scheduler.waiting:
            wakes = (
                self._scheduler.heap.wakes if len(self._in_flight) < self._workers else math.inf
            )
            if self._in_flight and self._in_flight[0][0] <= wakes:
                now = self._in_flight[0][0]
                self._land(now)
            else:
                assert wakes < math.inf, "jobs wait, and nothing will let them start"
                now = max(now, wakes)
            self._start(now)
        return self._figures(now, time.process_time() - began)

    def _start(self, now: float) -> None:
        """Give each free worker a job, while there are some."""
        while len(self._in_flight) < self._workers and (job := self._scheduler.next(now)):
            seconds = self._sites[job.url].latency * (0.5 + self._chance.random())
            self._number += 1
            heapq.heappush(self._in_flight, (now + seconds, self._number, seconds, job))

    def _land(self, now: float) -> None:
        _, _, seconds, job = heapq.heappop(self._in_flight)
        site = self._sites[job.url]
        self._scheduler.answered(Attempt(job, OK, seconds), now)
        if job.purpose is Purpose.ROBOTS:
            site.robots = seconds
            rules = Rules({}, site.delay) if site.delay else ALLOW_ALL
            self._scheduler.learn(RobotsRules(job.url, rules), now)
            return
        site.work += seconds
        site.answered += 1
        self._find(site, LINKS, now)

    def _find(self, site: Site, links: int, now: float) -> None:
        found = min(links, site.urls - site.found)
        site.found += found
        for _ in range(found):
            self._scheduler.put(site.job, now)

    def _figures(self, makespan: float, cpu: float) -> Crawled:
        sites = self._seeds
        return Crawled(
            hosts=len(sites),
            urls=sum(site.answered for site in sites),
            workers=self._workers,
            makespan=makespan,
            work=sum(site.work + site.robots for site in sites),
            longest=max(site.least(self._politeness.per_host) for site in sites),
            cpu=cpu,
        )


def crawled(
    hosts: int, urls: int, workers: int, seed: int, steepness: float = STEEPNESS
) -> Crawled:
    """Crawl once, with every default."""
    chance = random.Random(seed)
    each = enumerate(sizes(hosts, urls, steepness))
    sites = [_site(number, size, chance) for number, size in each]
    return Crawl(sites, workers, Politeness(), chance).run()


def cost(hosts: int, workers: int = 100, decisions: int = 50_000) -> Cost:
    """Measure decisions in a crawl of so many hosts, all known, with URLs that wait."""
    jobs = [Job(f"http://h{number}.test/page") for number in range(hosts)]
    gc.collect()
    tracemalloc.start()
    scheduler = _known(jobs)
    host = tracemalloc.get_traced_memory()[0] / hosts
    for job in jobs * 4:
        scheduler.put(job, 0.0)
    url = (tracemalloc.get_traced_memory()[0] / hosts - host) / 4
    tracemalloc.stop()
    return Cost(hosts, _decide(scheduler, workers, decisions) / decisions, host, url)


def plan_of(politeness: Politeness) -> Plan:
    """Return a plan with this politeness, and the same chance each time."""
    return Plan([], politeness=politeness, random=random.Random(1))


def _known(jobs: Sequence[Job]) -> HostScheduler:
    """Put one job of each host, after its robots.txt has answered."""
    scheduler = HostScheduler(plan_of(Politeness(delay=0.001)))
    for job in jobs:
        scheduler.put(job, 0.0)
    while (file := scheduler.next(0.0)) is not None:
        scheduler.answered(Attempt(file, OK, 0.0), 0.0)
        scheduler.learn(RobotsRules(file.url, ALLOW_ALL), 0.0)
    return scheduler


def _decide(scheduler: HostScheduler, workers: int, decisions: int) -> float:
    now = 1.0
    in_flight = [scheduler.next(now) for _ in range(workers)]
    began = time.process_time()
    for number in range(decisions):
        now += 0.001
        job = in_flight[number % workers]
        assert job
        scheduler.answered(Attempt(job, OK, 0.1), now)
        scheduler.put(job, now)
        in_flight[number % workers] = scheduler.next(now)
    return time.process_time() - began


def schedule_table(runs: Sequence[Crawled]) -> str:
    """Return a line for each crawl."""
    head = " hosts      urls workers   bound s   taken s   over   busy  CPU us/URL"
    return "\n".join([head, *map(_schedule_line, runs)])


def _schedule_line(run: Crawled) -> str:
    return (
        f"{run.hosts:6} {run.urls:9,} {run.workers:7} {run.bound:9.1f} {run.makespan:9.1f}"
        f" {run.over:6.1%} {run.busy:6.1%} {1e6 * run.cpu / run.urls:11.1f}"
    )


def cost_table(costs: Sequence[Cost]) -> str:
    """Return a line for each cost."""
    return "\n".join([" hosts  us/decision  bytes/host  bytes/URL", *map(_cost_line, costs)])


def _cost_line(cost: Cost) -> str:
    return f"{cost.hosts:6} {1e6 * cost.decision:12.1f} {cost.host:11.0f} {cost.url:10.0f}"


def main() -> None:
    """Measure and print both tables."""
    options = _options()
    about = options.hosts, options.urls
    runs = [
        crawled(*about, workers, options.seed, options.steepness) for workers in options.workers
    ]
    print(schedule_table(runs))
    print(cost_table([_typical(hosts, options.rounds) for hosts in options.cost]))


def _typical(hosts: int, rounds: int) -> Cost:
    costs = [cost(hosts) for _ in range(rounds)]
    return Cost(hosts, median(one.decision for one in costs), costs[0].host, costs[0].url)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Crawl very many hosts in virtual time.")
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--urls", type=int, default=1_000_000, help="of all hosts together")
    parser.add_argument("--workers", nargs="+", type=int, default=[200, 1000])
    parser.add_argument("--cost", nargs="+", type=int, default=[100, 10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=3, help="of each cost: the median counts")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steepness", type=float, default=STEEPNESS, help="0: all are alike")
    options = parser.parse_args()
    if min(options.hosts, options.rounds, *options.workers, *options.cost) < 1:
        parser.error("every number must be 1 or more")
    if options.urls < options.hosts:
        parser.error("there must be as many URLs as hosts, or more")
    return options


if __name__ == "__main__":
    main()
