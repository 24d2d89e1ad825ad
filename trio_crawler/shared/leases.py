"""What one worker has: the hosts that it holds, and the directory of its outcomes.

The jobs of each host that are here are counted, and it is decided which hosts to give back.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from heapq import nsmallest
from pathlib import Path
from typing import Any

from trio_crawler.frontier.lasting import Kept, StoredJob
from trio_crawler.model import Job
from trio_crawler.schedule.hosts import Hosts
from trio_crawler.schedule.origin import Origin
from trio_crawler.settlement import RobotsRules, Settlement, SitemapRead
from trio_crawler.shared.message import MOST_OF_A_HOST, Back, Grant, host_of, job_of, place_of

_IDLE = 0.3
"""The seconds after which a host that has no job here is given back."""


class Leases:
    """The hosts that one worker holds; `len` counts them.

    A host that is parted with gets no more jobs: it is given back when those of its jobs have
    ended that had started. Where hosts have several `strands`, each of these counts as a host. Of
    the `per_host` requests that a host may have in flight a worker has its share.
    """

    def __init__(self, strands: int = 1) -> None:
        self.strands, self.per_host = strands, 0
        # By host the jobs that are here: they wait, or are out with a task.
        self._jobs = Counter[str]()
        self._numbers = set[int]()
        # By host whether the store has more of its jobs.
        self._more: dict[str, bool] = {}
        # By host that is parted with: the numbers of its jobs that have not started.
        self._parted: dict[str, list[int]] = {}
        # By host without a job here: since when.
        self._idle: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._more)

    def take(self, grant: Grant, now: float) -> list[StoredJob]:
        """Record a grant; return those of its jobs that are to be done here."""
        host = grant.host
        self._more[host] = grant.more
        fresh = [job_of(*each) for each in grant.jobs if each[0] not in self._numbers]
        self._numbers.update(job.number for job in fresh)
        if host in self._parted:
            self._parted[host] += [job.number for job in fresh]
            return []
        self._count(host, len(fresh), now)
        return fresh

    def end(self, ended: Iterable[tuple[int, str]], now: float) -> None:
        """Record that jobs have ended, and that the store knows it: numbers and hosts."""
        for number, host in ended:
            self._numbers.discard(number)
            self._count(host, -1, now)

    def hungry(self) -> list[str]:
        """Return the hosts that need more jobs from the store, because few are left here."""
        return [
            host
            for host, more in self._more.items()
            if more and self._jobs[host] < MOST_OF_A_HOST // 2 and host not in self._parted
        ]

    def back(self, hosts: Hosts, now: float) -> list[Back]:
        """Return the hosts to give back, and forget them."""
        found = []
        for place, since in list(self._idle.items()):
            if now - since >= _IDLE:
                self._parted.setdefault(place, [])
            # A strand waits until no more is in flight than the others of its host may have.
            host = host_of(place)
            if place in self._parted and (
                self.strands == 1 or hosts.limit(host, self._shares()[host], now)
            ):
                numbers = self._parted.pop(place)
                self._numbers.difference_update(numbers)
                del self._idle[place], self._more[place], self._jobs[place]
                found.append(Back(place, _rest(hosts, host, now), numbers))
        return found

    def share(self, hosts: Hosts, jobs: Iterable[Job], now: float) -> None:
        """Let each host have its share of requests, before these jobs of it are admitted."""
        if self.strands > 1:
            for job in jobs:
                hosts.origin(job.url)
            for host, most in self._shares().items():
                hosts.limit(host, most, now)

    def _shares(self) -> dict[str, int]:
        """Return for each host how many requests this worker may have in flight there."""
        held = Counter(map(host_of, self._more))
        held.subtract(map(host_of, self._parted))
        return {host: self.per_host * count // self.strands for host, count in held.items()}

    def part(self, hosts: Hosts, count: int, now: float) -> None:
        """Part with so many hosts, those with the fewest jobs, and with what waits there.

        Those without a request in flight come first: others get them at once.
        """
        count -= len(self._parted)
        if count <= 0:
            return
        held = [
            (any(each.host.load.in_flight for each in _origins(hosts, place)), jobs, place)
            for place, jobs in self._jobs.items()
            if place in self._more and place not in self._parted
        ]
        for _, _, place in nsmallest(count, held):
            others, numbers = list[Job](), list[int]()
            for job in hosts.part(host_of(place)):
                if isinstance(job, StoredJob) and place_of(job.url, self.strands) == place:
                    numbers.append(job.number)
                elif self.strands > 1:
                    others.append(job)
            hosts.admit(others)
            self._parted[place] = numbers
            self._count(place, -len(numbers), now)

    def _count(self, host: str, jobs: int, now: float) -> None:
        self._jobs[host] += jobs
        if self._jobs[host]:
            self._idle.pop(host, None)
        else:
            self._idle.setdefault(host, now)


def _rest(hosts: Hosts, host: str, now: float) -> int:
    """Return the milliseconds until a host may be asked again."""
    free = max((each.state.free for each in _origins(hosts, host)), default=-math.inf)
    return max(0, math.ceil((free - now) * 1000)) if free > -math.inf else 0


def _origins(hosts: Hosts, place: str) -> list[Origin]:
    """Return the records of a host: by http, by https or both."""
    urls = (f"{scheme}://{host_of(place)}/" for scheme in ("http", "https"))
    return [origin for origin in map(hosts.known, urls) if origin is not None]


_MOST = 20_000
"""The outcomes of earlier runs that are looked at: more than a worker has at risk."""


class WorkerDirectory(Kept):
    """The directory that a worker writes before it tells the store.

    So no outcome is lost, and one may be in two directories: if a worker ends between the two, the
    store gives its URL to another one. Of a URL that this directory has already, the first outcome
    stays. Each transaction is on the disk when it ends.
    """

    def __init__(
        self,
        path: str | Path,
        meaning: Mapping[str, Any] | None,
        settings: Mapping[str, Any] | None,
    ) -> None:
        super().__init__(path, meaning=meaning, settings=settings, durable=True)
        self.journal = self._journal
        # What earlier runs wrote last: the store may give it once more.
        self._written = set[int]()

    async def open(self) -> None:
        """Lock the directory, and begin a run in it. Raises StoreError."""
        await self._journal.open()
        self._written = await self._journal.call(partial(self._journal.store.latest, _MOST))

    def settle(self, job: StoredJob | None, settlement: Settlement) -> None:
        """Let the next transaction have the end of a job, and what was learned from it."""
        batch, learned = self._journal.batch, settlement.learned
        if job is not None and job.number not in self._written:
            about = (job.depth, job.redirects, job.referrer, job.priority)
            batch.admitted.append((job.number, job.url, job.purpose.value, *about))
            if job.again:
                batch.again.append(job.number)
            if settlement.outcome is not None:
                self._journal.settle(job.number, settlement.outcome, settlement.size)
            elif isinstance(learned, SitemapRead):
                self._journal.learn(learned, job.number)
        if isinstance(learned, RobotsRules):
            self._journal.learn(learned)

    async def write(self) -> None:
        """Write what was settled, in one transaction. Raises StoreError."""
        # The numbers of the store are those of all workers, and come in any order.
        self._journal.batch.admitted.sort(key=lambda row: row[0])
        await self._journal.write()
