"""The gate: which admitted jobs may wait for their host's turn, by level and by page budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trio_crawler.frontier.queues import Fifo, Line
from trio_crawler.model import Failure, Job, Outcome, Page
from trio_crawler.policy.limits import Limits


class Gate:
    """Hold jobs back until they may go on, in order.

    With a depth limit a level starts when the one above it is done: only then is a page's
    depth its true distance from a seed, whatever answers first. With a page budget no more
    jobs are out than pages are left, so exactly that many are fetched; once it is spent, the
    rest may go, to be skipped.
    """

    __slots__ = (
        "_budget",
        "_by_level",
        "_later",
        "_level",
        "_lines",
        "_now",
        "_out",
        "_spent",
        "_whole",
    )

    def __init__(self, limits: Limits, lines: Callable[[], Line] = Fifo) -> None:
        self._by_level = limits.max_depth < float("inf")
        self._budget = limits.max_pages
        self._lines = lines
        self._level = 0
        self._now = lines()
        # By level: a run that goes on begins with those of two.
        self._later: dict[int, Line] = {}
        self._whole = True
        self._out = 0
        self._spent = 0

    def __len__(self) -> int:
        return len(self._now) + sum(map(len, self._later.values()))

    @property
    def spent(self) -> bool:
        """Tell whether the page budget is used up."""
        return self._spent >= self._budget

    def recall(self, spent: int) -> None:
        """Note that earlier runs have used up so much of the page budget.

        What waited then is put here next, in any order: no level starts before it is `recalled`.
        """
        self._spent += spent
        self._whole = False

    def recalled(self) -> None:
        """Note that all which waited is here again."""
        self._whole = True

    def put(self, job: Job) -> None:
        """Let `job` wait for its turn."""
        line = self._now
        if self._by_level and (job.depth > self._level or not self._whole):
            line = self._later.get(job.depth) or self._later.setdefault(job.depth, self._lines())
        line.put(job)

    def settle(self, outcome: Outcome) -> None:
        """Note that a job which was out has its outcome."""
        self._out -= 1
        self._spent += isinstance(outcome, (Page, Failure))

    def take(self) -> Iterator[Job]:
        """Yield the jobs that may go on now; each counts as out until it is settled."""
        if self._whole and not self._out and self._later and not self._now:
            self._level = min(self._later)
            self._now = self._later.pop(self._level)
        while self._now and not self._spent < self._budget <= self._spent + self._out:
            self._out += 1
            yield self._now.pop()
