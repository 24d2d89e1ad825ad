"""Lanes: the pages of one host in the order of what URLs of their shape have brought lately."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from itertools import chain

from trio_crawler.model import Job
from trio_crawler.policy.queries import Queries, Shape, Standing
from trio_crawler.policy.traps import HostTraps
from trio_crawler.schedule.queues import Queue

# One turn of so many goes to shapes that are unproven, or they might never prove themselves.
_TRIAL = 4


class Lanes:
    """A queue with a lane for each shape of URLs with a query, and one for all other URLs.

    First in, first out within a lane. The lanes of good shapes come first, then those that are
    unproven, poor ones, and last those left out. In a group those with the fewest parameters come
    first: a list without filters shows all that any filter shows. Equal lanes take turns.
    """

    __slots__ = ("_chosen", "_count", "_groups", "_lanes", "_make", "_plain", "_queries", "_turn")

    def __init__(self, plain: Queue, make: Callable[[], Queue], queries: Queries) -> None:
        self._plain = plain
        self._make = make
        self._queries = queries
        self._lanes: dict[Shape, Queue] = {}
        self._groups: tuple[int, list[list[deque[Queue]]]] | None = None
        self._count = len(plain)
        # The lane of the next job, from `peek` to `pop`.
        self._chosen: Queue | None = None
        self._turn = 0

    def __len__(self) -> int:
        return self._count

    def put(self, job: Job) -> None:
        """Add a job."""
        if "?" not in job.url:
            self._plain.put(job)
            self._count += 1
            return
        shape = self._queries.shape(job.url)
        lane = self._lanes.get(shape)
        if lane is None:
            lane = self._lanes[shape] = self._make()
            self._groups = None
        lane.put(job)
        self._count += 1

    def peek(self) -> Job:
        """Return the next job; the queue must not be empty."""
        if self._chosen is None:
            self._chosen = self._choose()
        return self._chosen.peek()

    def pop(self) -> Job:
        """Remove and return the next job; the queue must not be empty."""
        lane = self._choose() if self._chosen is None else self._chosen
        # Before anything has changed: the file of the lane may fail.
        job = lane.pop()
        self._chosen = None
        self._count -= 1
        return job

    def _choose(self) -> Queue:
        self._turn += 1
        good, unproven, *others = self._by_standing()
        first = (unproven, good) if not self._turn % _TRIAL else (good, unproven)
        for lanes in chain(*first, *others):
            for _ in range(len(lanes)):
                lane = lanes[0]
                lanes.rotate(-1)
                if lane:
                    return lane
        raise IndexError("no job waits")

    def _by_standing(self) -> list[list[deque[Queue]]]:
        """Return the groups by standing; in each the equal lanes, by number of parameters."""
        if self._groups is None or self._groups[0] != self._queries.version:
            found: defaultdict[tuple[int, int], deque[Queue]] = defaultdict(deque)
            # A list takes turns with the pages that it leads to.
            found[Standing.GOOD, 1].append(self._plain)
            for shape, lane in self._lanes.items():
                found[shape.standing, shape.size].append(lane)
            groups: list[list[deque[Queue]]] = [[] for _ in Standing]
            for standing, size in sorted(found):
                groups[standing].append(found[standing, size])
            self._groups = self._queries.version, groups
        return self._groups[1]


def in_lanes(queue: Queue, make: Callable[[], Queue], traps: HostTraps) -> Queue:
    """Return lanes with the jobs of a queue, or the queue itself if the traps learn nothing."""
    queries = traps.queries()
    return queue if queries is None else Lanes(queue, make, queries)
