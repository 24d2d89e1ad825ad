"""The outbox: outcomes on their way from the workers to the caller."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import wraps
from math import inf
from types import TracebackType
from typing import NoReturn, TypeVar

import trio

from trio_crawler.engine.counters import Counters
from trio_crawler.engine.exceptions import url_noted
from trio_crawler.frontier.protocol import Frontier
from trio_crawler.frontier.settlement import Settlement
from trio_crawler.in_trio import check_in_trio
from trio_crawler.model import Outcome, Page

MAX_BYTES = 16 * 1024 * 1024
"""Bytes of pages from which on workers wait for the caller."""

HOW_TO_ITERATE = (
    "open the crawl first: "
    "async with crawler.outcomes() as outcomes: async for outcome in outcomes: ..."
)
SECOND_READER = "another task waits for the next outcome of this crawl"
_T = TypeVar("_T")
_LINK = 150


class Outbox(AsyncIterator[Outcome]):
    """Pass settlements from the workers to the caller, who gets their outcomes.

    At most one settlement for each worker waits for the caller, with 16 MiB of pages or one page
    more. A settlement goes to the frontier when the caller asks for the next outcome. The iterator
    ends when each worker has left its `with` block. All that happens in the caller's own task: ▶
    `trio.as_safe_channel` has one more, and took 121 us a URL instead of 77.

    Each item is a checkpoint.
    """

    def __init__(self, workers: int, counters: Counters, frontier: Frontier) -> None:
        self._workers = workers
        self._counters = counters
        self._frontier = frontier
        self._sender, self._receiver = trio.open_memory_channel[Settlement](workers)
        self._given: Settlement | None = None
        self._busy = False
        self._bytes = 0
        self._waiting = trio.lowlevel.ParkingLot()

    def __enter__(self) -> None:
        """Begin to send."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._workers -= 1
        if not self._workers:
            self._sender.close()

    async def room(self) -> None:
        """Wait while too many bytes wait for the caller; else no checkpoint."""
        while self._bytes > MAX_BYTES:
            await self._waiting.park()

    async def put(self, settlement: Settlement) -> None:
        """Hand over a settlement; a checkpoint only to wait until the caller has taken some."""
        if self._bytes > MAX_BYTES:
            await self.room()
        self._bytes += _weight(settlement)
        try:
            self._sender.send_nowait(settlement)
        except trio.WouldBlock:
            await self._sender.send(settlement)

    async def __anext__(self) -> Outcome:
        if self._busy:
            # Of two tasks that wait, one would forget to settle what the other was given.
            raise trio.BusyResourceError(SECOND_READER)
        self._busy = True
        try:
            given = self._given
            if given is not None:
                with url_noted(given.job):
                    await self._frontier.settle(given)
                # Only now: a call that was cancelled is made again.
                self._given = None
            self._given = settlement = await self._receiver.receive()
        except trio.EndOfChannel:
            # A bug may have ended the last worker: the block must not go on as after the last URL.
            await trio.lowlevel.checkpoint()  # noqa: ASYNC120 - the end of a channel is no loss
            raise StopAsyncIteration from None
        finally:
            self._busy = False
        self._bytes -= _weight(settlement)
        if self._bytes <= MAX_BYTES and self._waiting:
            # One at a time: a worker that goes on hands something over, so another one will. To
            # wake all would cost 10,000 workers more than their pages do.
            self._waiting.unpark(count=1 if self._bytes else inf)
        outcome = settlement.outcome
        assert outcome is not None, "only settlements with an outcome are put"  # noqa: S101
        self._counters.count(outcome)
        return outcome


class OutcomeBlock(AbstractAsyncContextManager[AsyncIterator[Outcome]]):
    """The block in which a crawl runs; its value is the iterator over the outcomes."""

    def __init__(self, block: AbstractAsyncContextManager[AsyncIterator[Outcome]]) -> None:
        self._block = block

    async def __aenter__(self) -> AsyncIterator[Outcome]:
        check_in_trio("a crawl")
        return await self._block.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return await self._block.__aexit__(kind, error, traceback)  # noqa: ASYNC102 - it is its own

    def __aiter__(self) -> NoReturn:
        raise TypeError(HOW_TO_ITERATE)


def outcome_block(
    run: Callable[[_T], AsyncIterator[AsyncIterator[Outcome]]],
) -> Callable[[_T], OutcomeBlock]:
    """Make an async context manager of a method that yields the outcomes of a crawl, once."""
    opened = asynccontextmanager(run)

    @wraps(run)
    def block(crawler: _T) -> OutcomeBlock:
        return OutcomeBlock(opened(crawler))

    return block


def _weight(settlement: Settlement) -> int:
    page = settlement.outcome
    if not isinstance(page, Page):
        return 0
    return len(page.body) + _LINK * (len(page.links) + len(page.rejected))
