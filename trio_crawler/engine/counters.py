"""The counts of outcomes, and the duration, of one crawl."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import trio

from trio_crawler.frontier.protocol import FrontierStatistics
from trio_crawler.model import Checked, Failure, Outcome, Page, Redirect, Skipped, Statistics


class Counters:
    """The counts of the outcomes that the caller has received, and the seconds of the crawl.

    A job is in flight from the moment a worker receives it until the caller receives its outcome,
    so the sum in `Statistics` holds at every checkpoint.
    """

    def __init__(self) -> None:
        self._started: float | None = None
        self._ended: float | None = None
        self._counts = dict.fromkeys((Page, Redirect, Failure, Skipped, Checked), 0)
        self._rejected = 0
        self._bytes = 0
        self._earlier = Statistics()

    @property
    def seconds(self) -> float:
        """The seconds that this run of the crawl has taken."""
        if self._started is None:
            return 0.0
        ended = self._ended if self._ended is not None else trio.current_time()
        return ended - self._started

    @contextmanager
    def running(self) -> Iterator[None]:
        """Measure the time while the crawl runs. Raises RuntimeError if it ran before."""
        if self._started is not None:
            raise RuntimeError("a Crawler makes one crawl: make another Crawler")
        self._started = trio.current_time()
        try:
            yield
        finally:
            self._ended = trio.current_time()

    def restore(self, past: Statistics) -> None:
        """Start from the counts of earlier runs."""
        self._earlier = past
        ended = (past.pages, past.redirects, past.failures, past.skipped, past.checked)
        self._counts = dict(zip(self._counts, ended, strict=True))
        self._rejected, self._bytes = past.rejected, past.bytes

    def count(self, outcome: Outcome) -> None:
        """Count an outcome that the caller is about to receive."""
        self._counts[type(outcome)] += 1
        if isinstance(outcome, Page):
            self._rejected += len(outcome.rejected)
            # Not `outcome.size`: a page of this run has its body.
            self._bytes += len(outcome.body)
        elif isinstance(outcome, Redirect):
            self._rejected += outcome.rejected is not None

    def statistics(self, frontier: FrontierStatistics) -> Statistics:
        """Return the counts at this moment."""
        ended = sum(self._counts.values())
        return Statistics(
            admitted=frontier.admitted,
            pages=self._counts[Page],
            redirects=self._counts[Redirect],
            failures=self._counts[Failure],
            skipped=self._counts[Skipped],
            checked=self._counts[Checked],
            in_flight=frontier.admitted - frontier.waiting - ended,
            waiting=frontier.waiting,
            retries=self._earlier.retries + frontier.retries,
            rejected=self._rejected,
            bytes=self._bytes,
            seconds=self._earlier.seconds + self.seconds,
        )
