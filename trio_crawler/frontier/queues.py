"""Lines: the waiting jobs of one host, in the order in which they come out."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from trio_crawler.model import Job

Order: TypeAlias = Callable[[Job], Any]
"""Rank a job: of those that may start the one with the least rank does, the oldest of several."""


def breadth_first(job: Job) -> float:
    """Rank by the links followed from a seed: good pages come before deep ones."""
    return job.depth


def depth_first(job: Job) -> float:
    """Rank the deepest first: a crawl then goes along one branch to its end."""
    return -job.depth


def by_sitemap(job: Job) -> tuple[float, int]:
    """Rank by the priority that a sitemap gives (0.5 where it gives none), then by depth."""
    return (-0.5 if job.priority is None else -job.priority), job.depth


class Line(Protocol):
    """Keep jobs in order."""

    def put(self, job: Job) -> None:
        """Add a job."""

    def peek(self) -> Job:
        """Return the job that comes next; there must be one."""

    def pop(self) -> Job:
        """Take the job that comes next; there must be one."""

    def __len__(self) -> int: ...


class Fifo:
    """Keep jobs as they came; an empty one takes 150 bytes, where a deque takes 700."""

    __slots__ = ("_first", "_jobs")

    def __init__(self) -> None:
        self._jobs: list[Any] = []
        self._first = 0

    def __len__(self) -> int:
        return len(self._jobs) - self._first

    def put(self, job: Job) -> None:
        """Add a job."""
        self._jobs.append(job)

    def peek(self) -> Job:
        """Return the oldest job."""
        job: Job = self._jobs[self._first]
        return job

    def pop(self) -> Job:
        """Take the oldest job."""
        job: Job = self._jobs[self._first]
        self._jobs[self._first] = None
        self._first += 1
        if self._first * 2 >= len(self._jobs):
            # Each job is moved once at most, on the average.
            del self._jobs[: self._first]
            self._first = 0
        return job


class Ranked:
    """Keep jobs by rank, those of the same rank as they came."""

    __slots__ = ("_jobs", "_number", "_order")

    def __init__(self, order: Order) -> None:
        self._order = order
        self._jobs: list[tuple[Any, int, Job]] = []
        self._number = 0

    def __len__(self) -> int:
        return len(self._jobs)

    def put(self, job: Job) -> None:
        """Add a job."""
        self._number += 1
        heapq.heappush(self._jobs, (self._order(job), self._number, job))

    def peek(self) -> Job:
        """Return the job of the least rank."""
        return self._jobs[0][2]

    def pop(self) -> Job:
        """Take the job of the least rank."""
        return heapq.heappop(self._jobs)[2]


def line(order: Order) -> Line:
    """Make a line. Links are found breadth first anyway, so that order needs no ranks."""
    return Fifo() if order is breadth_first else Ranked(order)
