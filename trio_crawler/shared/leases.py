"""The hosts that a worker holds: the jobs of each that are here, and which hosts to give back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from trio_crawler.frontier.stored_job import StoredJob
from trio_crawler.model import Job
from trio_crawler.shared.message import MOST_OF_A_HOST, Back, Grant, job_of

_IDLE = 0.3
"""The seconds after which a host that has no job here is given back."""


class Leases:
    """The hosts that one worker holds; `len` counts them.

    A host that is parted with gets no more jobs: it is given back when those of its jobs have
    ended that had started.
    """

    def __init__(self) -> None:
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

    def back(self, now: float, rest: Callable[[str], int]) -> list[Back]:
        """Return the hosts to give back, and forget them; `rest` is for how long each rests."""
        found = []
        for host, since in list(self._idle.items()):
            if now - since >= _IDLE or host in self._parted:
                numbers = self._parted.pop(host, [])
                self._numbers.difference_update(numbers)
                del self._idle[host], self._more[host], self._jobs[host]
                found.append(Back(host, rest(host), numbers))
        return found

    def part(self, count: int, empty: Callable[[str], list[Job]], now: float) -> None:
        """Part with so many hosts, those with the fewest jobs; `empty` takes what waits there."""
        held = sorted((self._jobs[host], host) for host in self._more if host not in self._parted)
        for _, host in held[: max(0, count - len(self._parted))]:
            numbers = [job.number for job in empty(host) if isinstance(job, StoredJob)]
            self._parted[host] = numbers
            self._count(host, -len(numbers), now)

    def _count(self, host: str, jobs: int, now: float) -> None:
        self._jobs[host] += jobs
        if self._jobs[host]:
            self._idle.pop(host, None)
        else:
            self._idle.setdefault(host, now)
