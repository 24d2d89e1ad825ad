"""Turns: which job may start now, among the jobs of many hosts."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from trio_crawler.frontier.origin import Host
from trio_crawler.frontier.queues import Line, Order, breadth_first, line
from trio_crawler.frontier.rota import Rota
from trio_crawler.model import Fault, Job, Purpose, Reason, Response
from trio_crawler.page.urls import origin
from trio_crawler.policy.host_state import Load, Manners, troubled
from trio_crawler.policy.politeness import HostStatistics, Politeness
from trio_crawler.policy.retry import PASSING
from trio_crawler.policy.robots.store import MOST_REDIRECTS, Robots, named_itself

_ROBOTS = "/robots.txt"
# A server that answers with 429 or 5xx is there, and may yet come to itself.
_MORE_TRIES = 2
# Seconds; and a host, its twin, and another one.
_MOMENT, _LATELY = 10.0, 3


class Turns:
    """Let each host have its turn, as soon and as often as its manners and robots.txt allow.

    Of the hosts that may be asked now the one with the fewest requests in flight comes first,
    then the one that has waited longest: a host that waits with none in flight gets its turn
    before any other gets two. All decisions are synchronous, with `now` as an argument, and take
    O(log n) steps for n hosts; a host takes less than 1 KiB beside its jobs. `lines`, if it is
    given, makes what a host's pages wait in; if not, they come out by `order`, from memory.
    """

    def __init__(
        self,
        politeness: Politeness | None = None,
        *,
        order: Order = breadth_first,
        lines: Callable[[], Line] | None = None,
        max_tries: int = 4,
    ) -> None:
        self._politeness = politeness or Politeness()
        self._line = lines or partial(line, order)
        self._tries = max_tries
        self._hosts: dict[str, Host] = {}
        self._rota = Rota()
        self._flying = 0
        # When the last few hosts answered last, in that order.
        self._lately: dict[str, float] = {}
        # When some host answered well, and when one that had before was not to be reached.
        self._good = self._gone = -math.inf
        self._waiting = 0
        # A sitemap takes up to 50 MiB, so one at a time is asked for and read. These wait for it.
        self._parked: deque[Host] = deque()
        self._sitemap_out = False
        self._rush: deque[Job] | None = None
        self._rushed_for: Reason | None = None
        self.robots = Robots("*", obey=False)

    def __len__(self) -> int:
        return self._waiting

    def __repr__(self) -> str:
        return f"<Turns: {self._waiting} jobs of {len(self._hosts)} hosts>"

    def put(self, job: Job, now: float) -> None:
        """Let a job wait for its turn."""
        self._waiting += 1
        if self._rush is not None:
            self._rush.append(job)
            return
        host = self._host(job.url)
        host.put(job)
        if not host.ticket:
            self._offer(host, now)

    def sitemap_done(self, now: float) -> None:
        """Note that the sitemap which was taken takes no more memory."""
        self._sitemap_out = False
        ready = False
        while self._parked and not ready:
            host = self._parked.popleft()
            host.parked = False
            if not host.ticket:
                self._offer(host, now)
            # One that rests must not keep the others waiting.
            ready = host.manners.room and host.manners.free <= now

    def next(self, now: float, *, last: bool = False) -> Job | None:
        """Take the job that is to start now; None when none may.

        A job that is `refused` is not to be asked for, and is not answered. The `last` free worker
        is not for a host that has all the others, if another one has answered a moment ago: its
        next URL may be found any time.
        """
        if self._rush is not None:
            return self._rushed()
        if self._rota.wakes <= now:
            self.wake(now)
        while (host := self._rota.pop()) is not None:
            if last and self._has_all(host) and self._another(host, now):
                self._offer(host, now)
                return None
            if not (self._sitemap_out and self._parks(host)):
                return self._take(host, now)
        return None

    def _parks(self, host: Host) -> bool:
        """Let a host's sitemap wait for another one; tell whether it has nothing else."""
        if host.sitemaps and host.first is host.sitemaps:
            host.parked = True
            self._parked.append(host)
        return host.first is None

    def _note(self, host: Host, now: float) -> None:
        self._lately.pop(host.name, None)
        self._lately[host.name] = now
        if len(self._lately) > _LATELY:
            del self._lately[next(iter(self._lately))]

    def _has_all(self, host: Host) -> bool:
        return 0 < self._flying == host.manners.load.flying

    def _another(self, host: Host, now: float) -> bool:
        """Tell whether another host has answered a moment ago."""
        names = (self._hosts[name] for name in reversed(self._lately))
        other = next((each for each in names if each not in (host, host.twin)), None)
        return other is not None and now - self._lately[other.name] < _MOMENT

    @property
    def wakes(self) -> float:
        """Return when the next host will have rested, or earlier."""
        return self._rota.wakes

    def wake(self, now: float) -> float:
        """Let the hosts that have rested take part again; return when the next one will."""
        while (host := self._rota.rested(now)) is not None:
            self._offer(host, now)
        return self._rota.wakes

    def answered(
        self, job: Job, answer: Response | Fault, seconds: float, now: float, *, asked: float = 0.0
    ) -> None:
        """Note what came, after so many seconds, for a job that was taken and not refused.

        Its host rests as long as it asked for (Retry-After), in seconds from now.
        """
        host = self._host(job.url)
        host.manners.land(now + asked)
        self._flying -= 1
        self._note(host, now)
        # Whether the answer to an errand is good news, `learned` will tell.
        if job.purpose in (Purpose.PAGE, Purpose.SITEMAP):
            self._judge(host, job, answer, seconds, now)
        self._offer_both(host, now)

    def learned(self, url: str, trouble: Response | Fault | None, now: float) -> None:
        """Note what came of asking for this robots.txt, or page: an answer, or only trouble."""
        host = self._host(url)
        proven = host.asking is Purpose.PROBE
        host.asking = None
        manners = host.manners
        manners.load.delay = max(self.robots.delay(url), manners.load.delay)
        if trouble is None:
            manners.vouch(proven=proven)
            self._good = now
        else:
            reason = Reason.HOST_GIVEN_UP if manners.alive else Reason.ROBOTS_UNAVAILABLE
            manners.fail(now, now, adaptive=self._politeness.adaptive, errand=True)
            self._give_up(host, trouble, reason, now, self._robots_tries(trouble))
        self._offer_both(host, now)

    def hurry(self, reason: Reason | None = None) -> None:
        """Let everything out at once, unasked, and refused for a `reason`: the crawl is ending."""
        if self._rush is None:
            self._rushed_for = reason
            self._rush = deque()
            for host in self._hosts.values():
                self._rush.extend(host.empty())
            self._waiting = len(self._rush)

    def hosts(self, now: float) -> Iterator[HostStatistics]:
        """Tell of each host, in the order in which they were met."""
        return (host.statistics(now) for host in self._hosts.values())

    def _host(self, url: str) -> Host:
        name = origin(url)
        host = self._hosts.get(name)
        return self._new_host(name) if host is None else host

    def _new_host(self, name: str) -> Host:
        scheme, rest = name.split(":", 1)
        twin = self._hosts.get(("http:" if scheme == "https" else "https:") + rest)
        load = Load(self._politeness) if twin is None else twin.manners.load
        host = Host(name, self._line(), Manners(self._politeness, load), twin)
        if twin is not None:
            twin.twin = host
        # What is known by now is from an earlier run, in which it was there.
        host.manners.alive = self.robots.knows(name)
        load.delay = max(self.robots.delay(name + "/"), load.delay)
        return self._hosts.setdefault(name, host)

    def _offer_both(self, host: Host, now: float) -> None:
        # The twin first: it has waited longer.
        if host.twin is not None:
            self._offer(host.twin, now)
        self._offer(host, now)

    def _offer(self, host: Host, now: float) -> None:
        """Give a host its place, if it has anything to ask for."""
        manners = host.manners
        # A line is asked for its length by a call, so not twice.
        if host.first is None or not (manners.room or manners.given_up):
            self._rota.remove(host)
        else:
            self._rota.place(host, -math.inf if manners.given_up else manners.free, now)

    def _take(self, host: Host, now: float) -> Job:
        first = host.first
        assert first is not None, "a host without jobs has no ticket"  # noqa: S101 - said once, for mypy
        refused = host.manners.given_up
        job = None if refused else self._errand(host, first.peek(), now)
        if job is None:
            self._waiting -= 1
            job = first.pop()
            host.sated = job.purpose is Purpose.SITEMAP
            self._sitemap_out = self._sitemap_out or host.sated
            # What robots.txt itself names, it also allows.
            judged = not named_itself(job) if host.sated else job.purpose is Purpose.PAGE
            if judged and not refused:
                refused = self.robots.refusal(job.url, host.name)
        if not refused:
            host.manners.start(now)
            self._flying += 1
        self._offer_both(host, now)
        return replace(job, refused=refused) if refused else job

    def _errand(self, host: Host, job: Job, now: float) -> Job | None:
        """Return what must be asked for before this job: robots.txt, or a sign of life."""
        if job.purpose is Purpose.ROBOTS:
            return None
        url = self.robots.before(job.url, now, host.name)
        if url is None:
            if not host.manners.failures:
                return None
            if host.good and host.manners.unproven:
                host.asking = Purpose.PROBE
                return Job(host.good, purpose=Purpose.PROBE)
            if not host.manners.doubtful(job.tries):
                return None
            url = origin(job.url) + _ROBOTS
        host.asking = Purpose.ROBOTS
        validator = self.robots.validator(origin(url))
        return Job(url, 0, MOST_REDIRECTS, purpose=Purpose.ROBOTS, validator=validator)

    def _rushed(self) -> Job | None:
        if not self._rush:
            return None
        self._waiting -= 1
        job = self._rush.popleft()
        return replace(job, refused=self._rushed_for) if self._rushed_for else job

    def _robots_tries(self, trouble: Response | Fault) -> int:
        if isinstance(trouble, Response):
            return self._tries + _MORE_TRIES
        if trouble.reason is Reason.TIMEOUT:
            return min(self._tries, 2)
        return self._tries if trouble.reason in PASSING else 1

    def _judge(
        self, host: Host, job: Job, answer: Response | Fault, seconds: float, now: float
    ) -> None:
        adaptive = self._politeness.adaptive
        if troubled(answer):
            host.manners.fail(now - seconds, now, adaptive=adaptive)
            self._give_up(host, answer, Reason.HOST_GIVEN_UP, now, self._tries)
        elif isinstance(answer, Response):
            host.manners.succeed(seconds, now, adaptive=adaptive)
            self._good = now
            # What a proxy may answer for a server that is away proves nothing.
            if job.purpose is Purpose.PAGE and not job.url.endswith(_ROBOTS):
                host.good = job.url

    def _give_up(
        self, host: Host, answer: Response | Fault, reason: Reason, now: float, tries: int
    ) -> None:
        manners = host.manners
        if manners.alive and isinstance(answer, Fault):
            self._gone = now
        # If hosts that were there are away, too, it may be our own network.
        chance = self._gone > self._good
        patience = self._politeness.patience
        if manners.given_up or not manners.is_lost(now, patience, tries, chance=chance):
            return
        # Where nobody was ever reached, that is what each of its URLs would come to.
        manners.given_up = reason if isinstance(answer, Response) or manners.alive else answer
