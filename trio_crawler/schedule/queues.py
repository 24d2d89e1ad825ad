"""Where jobs wait: in the queues of a host, at the gate of levels, in a stream of seeds."""

# No `from __future__ import annotations` here: `typing.get_type_hints` would look the names up in
# `__module__`, which is set to another module.

import heapq
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import trio

from trio_crawler.arguments import public
from trio_crawler.model import Failure, Job, Outcome, Page
from trio_crawler.policy.plan import Plan
from trio_crawler.policy.settings import Order, breadth_first


@public("trio_crawler.frontier")
class Queue(Protocol):
    """A queue of jobs in some order.

    >>> class Stack(list[Job]):
    ...     def put(self, job: Job) -> None:
    ...         self.append(job)
    ...     def peek(self) -> Job:
    ...         return self[-1]
    >>> queue: Queue = Stack()
    >>> queue.put(Job("https://e.org/"))
    >>> queue.peek() is queue.pop(), len(queue)
    (True, 0)
    """

    def put(self, job: Job) -> None:
        """Add a job."""

    def peek(self) -> Job:
        """Return the next job; the queue must not be empty."""

    def pop(self) -> Job:
        """Remove and return the next job; the queue must not be empty."""

    def __len__(self) -> int: ...


class FifoQueue:
    """A queue in first-in, first-out order; an empty one takes 150 bytes, an empty deque 700."""

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
        """Remove and return the oldest job."""
        job: Job = self._jobs[self._first]
        self._jobs[self._first] = None
        self._first += 1
        if self._first * 2 >= len(self._jobs):
            # On average each job is moved at most once.
            del self._jobs[: self._first]
            self._first = 0
        return job


class PriorityQueue:
    """A queue in the order of ranks, with a queue of `make` for each rank of the jobs in it.

    It begins with the jobs of `first`, which all have the rank 0. If a queue raises an exception,
    no job was added, removed or lost.
    """

    __slots__ = ("_by_rank", "_count", "_emptied", "_make", "_order", "_ranks")

    def __init__(
        self, order: Order, make: Callable[[], Queue] = FifoQueue, first: Queue | None = None
    ) -> None:
        self._order = order
        self._make = make
        self._by_rank: dict[Any, Queue] = {0: first} if first else {}
        # A heap.
        self._ranks: list[Any] = [*self._by_rank]
        self._emptied: list[Queue] = []
        self._count = len(first) if first else 0

    def __len__(self) -> int:
        return self._count

    def put(self, job: Job) -> None:
        """Add a job."""
        rank = self._order(job)
        queue = self._by_rank.get(rank)
        if queue is None:
            queue = self._emptied.pop() if self._emptied else self._make()
        queue.put(job)
        self._count += 1
        if rank not in self._by_rank:
            self._by_rank[rank] = queue
            heapq.heappush(self._ranks, rank)

    def peek(self) -> Job:
        """Return the oldest job of the least rank."""
        return self._by_rank[self._ranks[0]].peek()

    def pop(self) -> Job:
        """Remove and return the oldest job of the least rank."""
        queue = self._by_rank[self._ranks[0]]
        job = queue.pop()
        self._count -= 1
        if not queue:
            del self._by_rank[heapq.heappop(self._ranks)]
            self._emptied.append(queue)
        return job


def make_queue(order: Order, make: Callable[[], Queue] = FifoQueue) -> Queue:
    """Return an empty queue in an order, of first-in, first-out queues that `make` returns.

    Breadth first needs no ranks: links are found in that order.
    """
    return make() if order is breadth_first else PriorityQueue(order, make)


# A list that goes on, as `?page=2` or `?ofs=50`, leads to the rest of what a page leads to.
_goes_on = re.compile(r"\?[^=&;?]+=[0-9]+$").search


def parameters(job: Job) -> int:
    """Return the number of parameters in the URL of a job, at most 3; 0 for one number alone.

    Filters, orders and views of the same things have parameters: most of what is new has none, and
    a list with fewer filters shows all that one with more shows.
    """
    url = job.url
    if "?" not in url or _goes_on(url):
        return 0
    return min(1 + url.count("&") + url.count(";"), 3)


class LevelGate:
    """Pages that are held until their level, or the page budget, releases them to their host.

    With a depth limit a level starts when the level above it is done, so that the depth of a page
    is its true distance from a seed. With a page budget no more pages are released than the budget
    has left, so exactly that many are fetched.
    """

    __slots__ = (
        "_budget",
        "_by_level",
        "_current",
        "_deeper",
        "_level",
        "_make_queue",
        "_released",
        "_restoring",
    )

    def __init__(self, plan: Plan, queue: Callable[[], Queue]) -> None:
        self._by_level = plan.limits.max_depth < math.inf
        self._budget = plan.limits.max_pages
        self._make_queue = queue
        self._level = 0
        self._current = queue()
        # By level. One would do for new crawls; a resumed one begins with pages of two levels.
        self._deeper: dict[int, Queue] = {}
        self._restoring = False
        self._released = 0

    def __len__(self) -> int:
        return len(self._current) + sum(map(len, self._deeper.values()))

    @property
    def is_spent(self) -> bool:
        """Whether the page budget is used up."""
        return self._budget <= 0

    def spend(self, pages: int) -> None:
        """Subtract the `pages` that earlier runs used from the page budget.

        Next, `put` the jobs that they left, in any order: no level starts before `restored`.
        """
        self._budget -= pages
        self._restoring = True

    def restored(self) -> None:
        """Record that all jobs that earlier runs left were put."""
        self._restoring = False

    def put(self, job: Job) -> None:
        """Add a page to the queue of its level."""
        queue = self._current
        if self._by_level and (job.depth > self._level or self._restoring):
            queue = self._deeper.get(job.depth) or self._deeper.setdefault(
                job.depth, self._make_queue()
            )
        queue.put(job)

    def pass_by(self) -> None:
        """Count a page as released that is never put, since it is not to be fetched."""
        self._released += 1

    def settle(self, outcome: Outcome | None) -> None:
        """Record the outcome of a page that was released; a redirect does not use the budget."""
        self._released -= 1
        self._budget -= isinstance(outcome, Page | Failure)

    def release(self) -> Iterator[Job]:
        """Yield the pages that may start now; each counts as released until it is settled."""
        if not (self._restoring or self._released or self._current) and self._deeper:
            self._level = min(self._deeper)
            self._current = self._deeper.pop(self._level)
        while self._current and self._released < self._budget:
            self._released += 1
            yield self._current.pop()

    def empty(self) -> Iterator[Job]:
        """Remove and yield all pages that are held."""
        for queue in (self._current, *self._deeper.values()):
            while queue:
                yield queue.pop()


@public("trio_crawler.frontier")
class Seeding:
    """The place where the seeding task and the scheduler meet.

    `begun` is set when the job of the stream is admitted. The task reads the stream inside
    `scope`, which is cancelled when the crawl ends early. While the task waits in `wait`, `low` is
    the number of waiting pages at which it goes on, else -1.
    """

    __slots__ = ("_room", "begun", "low", "scope")

    def __init__(self) -> None:
        self.begun = trio.Event()
        self.scope = trio.CancelScope()
        self.low = -1
        self._room = trio.Event()

    async def wait(self, low: int) -> None:
        """Wait until the scheduler calls `make_room`, at `low` waiting pages or fewer."""
        self.low, self._room = low, trio.Event()
        try:
            await self._room.wait()
        finally:
            self.low = -1

    def make_room(self) -> None:
        """Let the task go on."""
        self.low = -1
        self._room.set()
