"""The disk heap: a queue of jobs in the order of their ranks, with the last ones in a file."""

from __future__ import annotations

import heapq
from array import array
from typing import Any

from trio_crawler.model import Job
from trio_crawler.policy.settings import Order, breadth_first
from trio_crawler.schedule.disk_queue import OVERHEAD, DiskQueue, DiskQueueFile, bytes_of
from trio_crawler.schedule.queues import Queue
from trio_crawler.store.errors import StoreError

# The most jobs that one call of `put` writes: more would block the event loop for long.
_MAX_RUN = 2_000


class _Run:
    """Jobs in the file, sorted by rank and number; `numbers` are those of the jobs in the file.

    The first job is the last of `jobs`; `places` and `numbers` are in reverse order, too.
    """

    __slots__ = ("jobs", "numbers", "places")

    def __init__(self, numbers: array[int], places: list[tuple[int, int]]) -> None:
        self.jobs: list[Job] = []
        self.numbers = numbers
        self.places = places


class DiskHeap:
    """A queue in the order of ranks; jobs with equal ranks are first in, first out.

    When the jobs in memory have as many bytes as they may, those with the highest ranks go to the
    file, where a job takes 8 bytes of memory. `order` is called again for a job that comes back.
    If a call raises StoreError, no job was added, removed or lost, and the call may be repeated.
    """

    __slots__ = ("_bytes", "_count", "_file", "_jobs", "_number", "_order", "_runs")

    def __init__(self, file: DiskQueueFile, order: Order) -> None:
        file.add_queue()
        self._file = file
        self._order = order
        self._jobs: list[tuple[Any, int, Job]] = []
        self._bytes = 0
        self._number = 0
        self._count = 0
        # A heap of the runs, by the rank and the number of the first job.
        self._runs: list[tuple[Any, int, _Run]] = []

    def __len__(self) -> int:
        return self._count

    def put(self, job: Job) -> None:
        """Add a job."""
        entry = (self._order(job), self._number, job)
        heapq.heappush(self._jobs, entry)
        file, kept = self._file, self._bytes + len(job.url) + OVERHEAD
        if file.held >= file.memory and (len(self._jobs) > file.block or kept > file.block_bytes):
            try:
                self._spill()
            except StoreError:
                self._jobs.remove(entry)
                heapq.heapify(self._jobs)
                raise
            kept = bytes_of([one for _, _, one in self._jobs])
        file.held += kept - self._bytes
        self._bytes = kept
        self._number += 1
        self._count += 1

    def peek(self) -> Job:
        """Return the job with the least rank."""
        if not self._run_is_first:
            return self._jobs[0][2]
        run = self._runs[0][2]
        if not run.jobs:
            self._load(run)
        return run.jobs[-1]

    def pop(self) -> Job:
        """Remove and return the job with the least rank."""
        job = self.peek()
        if self._run_is_first:
            self._pop_run()
        else:
            heapq.heappop(self._jobs)
            self._bytes -= len(job.url) + OVERHEAD
            self._file.held -= len(job.url) + OVERHEAD
        self._count -= 1
        return job

    @property
    def _run_is_first(self) -> bool:
        # Two entries never have the same number.
        return bool(self._runs) and (not self._jobs or self._runs[0] < self._jobs[0])

    def _pop_run(self) -> None:
        """Remove the first job of the first run, which is loaded."""
        run = self._runs[0][2]
        if len(run.jobs) == 1 and run.places:
            # Before anything changes: it may fail.
            self._load(run)
        job = run.jobs.pop()
        self._file.held -= len(job.url) + OVERHEAD
        run.numbers.pop()
        if run.jobs:
            rank = self._order(run.jobs[-1])
            heapq.heapreplace(self._runs, (rank, run.numbers[-1], run))
        else:
            heapq.heappop(self._runs)

    def _load(self, run: _Run) -> None:
        place = run.places[-1]
        found = self._file.read(*place)
        self._file.held += bytes_of(found)
        run.jobs[:0] = reversed(found)
        run.places.pop()
        self._file.forget(*place)

    def _spill(self) -> None:
        """Write the half with the highest ranks, at least one job, as a run."""
        self._jobs.sort()
        size = min(_MAX_RUN, len(self._jobs) // 2 + 1)
        run, block = self._jobs[-size:], self._file.block
        jobs = [job for _, _, job in run]
        numbers = array("Q", [number for _, number, _ in reversed(run)])
        places = [self._file.write(jobs[at : at + block]) for at in range(0, size, block)]
        heapq.heappush(self._runs, (*run[0][:2], _Run(numbers, places[::-1])))
        del self._jobs[-size:]


def make_disk_queue(file: DiskQueueFile, order: Order) -> Queue:
    """Return an empty queue in an order, which uses the file for what does not fit in memory."""
    return DiskQueue(file) if order is breadth_first else DiskHeap(file, order)
