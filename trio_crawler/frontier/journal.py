"""The journal: the changes since the last transaction, and the task that writes them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import trio

from trio_crawler.arguments import check_flag, check_function, check_path
from trio_crawler.model import Outcome, Reason
from trio_crawler.policy.settings import HostStatistics
from trio_crawler.store.runs import End
from trio_crawler.store.store import Store
from trio_crawler.store.streams import Stream
from trio_crawler.store.writer import Batch

PAUSE = 0.02
"""Seconds to wait for more changes before a batch is written, unless a worker waits for it."""

MAX_BYTES = 16 * 1024 * 1024
"""The most bytes of pages that wait to be written, before `wait_for_room` waits."""

_T = TypeVar("_T")


class Journal:
    """Collect changes in `batch`, and write one batch at a time in a thread.

    `at_risk` counts the URLs that workers have received and that are not written as settled yet:
    after a kill these would be fetched again. The caller sets `max_at_risk`, and hands out no more
    jobs while as many are at risk.
    """

    def __init__(self, make: Callable[[], Store]) -> None:
        self.batch = Batch()
        self.streams: list[Stream] = []
        self.at_risk = 0
        self.max_at_risk = 0
        self._make = make
        self._opened: Store | None = None
        self._thread = trio.CapacityLimiter(1)
        self._broken = False
        self._ended = 0
        self._bytes = 0
        self._recorded = trio.Event()
        self._urgent = trio.Event()
        self._written = trio.Event()

    @property
    def store(self) -> Store:
        """Return the store. Raises RuntimeError when it is not open."""
        if self._opened is None:
            raise RuntimeError("enter the frontier first: async with SqliteFrontier(...)")
        return self._opened

    async def open(self) -> None:
        """Open the store. Raises StoreError."""
        self._opened = await trio.to_thread.run_sync(self._make)

    async def close(
        self, how: End, hosts: Iterable[HostStatistics], seconds: float, reason: Reason | None
    ) -> None:
        """Write the last batch and the end of the run, and close the store. Raises StoreError.

        `hosts` is iterated over in the thread; `seconds` is the duration of the run, and `reason`
        is why it ended early.
        """
        # Shielded: it takes no longer than a transaction.
        with trio.CancelScope(shield=True):
            try:
                await self.write()
                if not self._broken:
                    await self.call(partial(self.store.end, how, hosts, seconds, reason))
            finally:
                await self.call(self.store.close)  # noqa: ASYNC102 - the store has its own time-out

    def record(self) -> None:
        """Record that something was added to the batch."""
        self._recorded.set()

    def settle(self, number: int, outcome: Outcome, size: int) -> None:
        """Record the outcome of a URL, of this size, and its records in the streams."""
        self.batch.settled.append((number, time.time(), outcome))
        for stream in self.streams:
            # Now, since records that are added later belong to another outcome.
            self.batch.writes.append((stream, stream.pop()))
        self._bytes += size
        self.end()

    def end(self) -> None:
        """Record that one URL less is at risk after this batch."""
        self._ended += 1
        self.record()
        # A transaction is expensive, so a batch waits for three quarters of `max_at_risk`. The
        # workers with the other quarter go on meanwhile.
        if self._ended * 4 >= self.max_at_risk * 3 or self._ended == self.at_risk:
            self.write_soon()

    def write_soon(self) -> None:
        """Write the batch without waiting for more changes."""
        self._urgent.set()

    @property
    def is_full(self) -> bool:
        """Whether too many bytes wait to be written."""
        return self._bytes > MAX_BYTES

    async def wait_for_room(self) -> None:
        """Wait while too many bytes wait to be written; otherwise this is not a checkpoint."""
        while self.is_full:
            self.write_soon()
            await self._written.wait()

    async def call(self, question: Callable[[], _T]) -> _T:
        """Return the result of a function of the store, called in the thread between batches."""
        return await trio.to_thread.run_sync(question, limiter=self._thread)

    async def keep_writing(self, written: Callable[[], None]) -> None:
        """Write batch after batch until cancelled; call `written` after each."""
        while True:
            await self._recorded.wait()
            with trio.move_on_after(PAUSE):
                await self._urgent.wait()
            await self.write()
            written()

    async def write(self) -> None:
        """Write the batch. Raises StoreError; after that nothing more is written."""
        if self._broken:
            return
        batch, ended, size = self.batch, self._ended, self._bytes
        self.batch, self._ended = Batch(), 0
        self._recorded, self._urgent = trio.Event(), trio.Event()
        self._broken = True
        # Shielded: it takes no longer than a transaction, and no change may be lost.
        with trio.CancelScope(shield=True):
            await self.call(partial(self.store.write, batch))
        self._broken = False
        self.at_risk -= ended
        self._bytes -= size
        self._written.set()
        self._written = trio.Event()


class Kept:
    """A crawl directory that a journal writes; `how` is for `Store.open`."""

    def __init__(self, directory: str | Path, **how: Any) -> None:
        self.directory = Path(directory)
        self._journal = Journal(partial(Store.open, self.directory, **how))

    def stream(
        self,
        path: str | Path,
        encode: Callable[[Outcome], bytes],
        head: Callable[[], bytes | Iterable[bytes]] = bytes,
        rest: Callable[[], bytes] = bytes,
        *,
        private: bool = False,
    ) -> Stream:
        """Return a stream to a file with exactly one record of each outcome, also after kills.

        Pass each outcome to the stream's `add`. Its record, `encode(outcome)`, is made in a thread
        and written when the outcome is settled. A record that a killed run left half written is
        removed. `head` returns the first bytes of a new file, at once or in pieces, `rest` more
        bytes to append with each transaction. Only its owner may read a new file that is `private`
        or in the directory of the crawl. Call this before the crawl begins; the frontier closes
        the stream.
        """
        check_path("path", path)
        for name, function in (("encode", encode), ("head", head), ("rest", rest)):
            if function is not bytes:
                check_function(name, function, "a function that returns bytes")
        check_flag("private", private)
        stream = self._journal.store.stream(path, encode, head, rest, private=private)
        self._journal.streams.append(stream)
        return stream

    def outcomes(self, *, brief: bool = False) -> Iterator[Outcome]:
        """Yield the outcomes that this walk has settled so far; the pages have no bodies.

        With `brief` they have less, as those of `History.outcomes`. Do not call this while the
        crawl runs: it uses the database in another thread.
        """
        return self._journal.store.walk.outcomes(found=not brief, brief=brief)

    def bodies(self) -> Iterator[tuple[str, bytes, float]]:
        """Yield the URL, the SHA-1 and the Unix time of each body; call it as `outcomes`."""
        return (row for rows in self._journal.store.walk.bodies() for row in rows)
