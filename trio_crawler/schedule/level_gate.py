"""The level gate: pages that wait for their level, or for the page budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from trio_crawler.model import Failure, Job, Outcome, Page
from trio_crawler.policy.plan import Plan
from trio_crawler.schedule.queues import Queue


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
