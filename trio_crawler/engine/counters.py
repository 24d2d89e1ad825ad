"""The tally: what a crawl has counted so far."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import trio

from trio_crawler.model import Failure, Outcome, Page, Redirect, Skipped, Statistics


class Tally:
    """Count the jobs that workers took and the outcomes that the caller was given.

    A job is in flight from the one to the other, so the sum in `Statistics` holds at every
    checkpoint.
    """

    def __init__(self) -> None:
        self._started: float | None = None
        self._ended: float | None = None
        self._counts = dict.fromkeys((Page, Redirect, Failure, Skipped), 0)
        self._taken = 0
        self._retries = 0
        self._refused = 0
        self._bytes = 0
        self._earlier = 0.0

    @property
    def spent(self) -> int:
        """Return how many URLs have used up a place in the page budget."""
        return self._counts[Page] + self._counts[Failure]

    @property
    def seconds(self) -> float:
        """Return the age of this run of the crawl."""
        if self._started is None:
            return 0.0
        ended = self._ended if self._ended is not None else trio.current_time()
        return ended - self._started

    @contextmanager
    def running(self) -> Iterator[None]:
        """Keep the clock while the crawl runs. Raises RuntimeError when it ran before."""
        if self._started is not None:
            raise RuntimeError("a Crawler makes one crawl: make another Crawler")
        self._started = trio.current_time()
        try:
            yield
        finally:
            self._ended = trio.current_time()

    def recall(self, past: Statistics) -> None:
        """Take over the counts of earlier runs."""
        ended = (past.pages, past.redirects, past.failures, past.skipped)
        self._counts = dict(zip(self._counts, ended, strict=True))
        self._taken += sum(ended)
        self._retries, self._refused, self._bytes = past.retries, past.refused, past.bytes
        self._earlier = past.seconds

    def take(self) -> None:
        """Count a job that a worker took."""
        self._taken += 1

    def put_back(self) -> None:
        """Count a job that went back to the frontier and was not asked for."""
        self._taken -= 1

    def retry(self) -> None:
        """Count a job that went back to the frontier, to be tried again."""
        self._taken -= 1
        self._retries += 1

    def count(self, outcome: Outcome) -> None:
        """Count an outcome that the caller is about to get."""
        self._counts[type(outcome)] += 1
        if isinstance(outcome, Page):
            self._refused += len(outcome.refused)
            self._bytes += outcome.size
        elif isinstance(outcome, Redirect):
            self._refused += outcome.refused is not None

    def statistics(self, admitted: int) -> Statistics:
        """Return the counts at this moment, of so many URLs admitted."""
        return Statistics(
            admitted=admitted,
            pages=self._counts[Page],
            redirects=self._counts[Redirect],
            failures=self._counts[Failure],
            skipped=self._counts[Skipped],
            in_flight=self._taken - sum(self._counts.values()),
            waiting=admitted - self._taken,
            retries=self._retries,
            refused=self._refused,
            bytes=self._bytes,
            seconds=self._earlier + self.seconds,
        )
