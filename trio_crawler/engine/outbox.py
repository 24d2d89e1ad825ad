"""The outbox: outcomes on their way from the workers to the caller, and their counts.

And the block in which the caller receives them: its own exception is not put into a group.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import wraps
from math import inf
from types import TracebackType
from typing import NoReturn, TypeVar

import trio
from msgspec.structs import replace

from trio_crawler.engine.handler import Handler, url_noted
from trio_crawler.frontier.protocol import Frontier, FrontierStatistics
from trio_crawler.in_trio import check_in_trio
from trio_crawler.model import (
    Checked,
    Failure,
    Outcome,
    Page,
    Purpose,
    Redirect,
    Skipped,
    Statistics,
)
from trio_crawler.settlement import Settlement

MAX_BYTES = 16 * 1024 * 1024
"""Workers wait for the caller while pages with more bytes than this are in the outbox."""

PORTION = 500
"""Successors of one job that are admitted at once, before other tasks can run."""

# Outcomes between two full checkpoints. ▶ With one at each outcome, a worker whose answer came in
# the same pass of Trio waited for the caller: three steps of tasks a URL in place of one.
_AT_ONCE = 16
# Seconds from one full checkpoint to the next, at least. ▶ Trio gives the caller one step for all
# workers that have an answer: of hundreds each would wait for its place, with a step of its own.
_APART = 0.02

HOW_TO_ITERATE = (
    "open the crawl first: "
    "async with crawler.outcomes() as outcomes: async for outcome in outcomes: ..."
)
SECOND_READER = "another task waits for the next outcome of this crawl"
_T = TypeVar("_T")


class Outbox(AsyncIterator[Outcome]):
    """Pass settlements from the workers to the caller, who receives their outcomes.

    At most one settlement for each worker waits for the caller, with at most 16 MiB of pages and
    one page more. The frontier gets a settlement when the caller asks for the next outcome. The
    iterator ends when each worker has left its `with` block. It runs in the caller's own task. ▶
    `trio.as_safe_channel` adds a task, which took 121 us a URL instead of 77.

    When the crawl has ended early, the URLs that wait need no worker: the iterator skips them
    itself, from the moment at which it has `handlers`. ▶ Through workers and channel a URL took
    44 us more.

    Each item may raise Cancelled; other tasks run before every 16th, unless they did within the
    last 20 ms, and before one that is not there yet.
    """

    def __init__(self, workers: int, counters: Counters, frontier: Frontier) -> None:
        # The workers that are in their `with` block.
        self._workers = 0
        self._counters = counters
        self._frontier = frontier
        self._sender, self._receiver = trio.open_memory_channel[Settlement](workers)
        self._unsettled: Settlement | None = None
        self._busy = False
        self._bytes = 0
        self._waiting = trio.lowlevel.ParkingLot()
        self.handlers: Mapping[Purpose, Handler] = {}
        self._turns = 0
        self._until = 0.0

    def __enter__(self) -> None:
        self._workers += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._workers -= 1
        if not self._workers:
            self._sender.close()

    async def wait_for_room(self) -> None:
        """Wait while too many bytes wait for the caller; otherwise this is not a checkpoint."""
        while self._bytes > MAX_BYTES:
            await self._waiting.park()

    async def put(self, settlement: Settlement) -> None:
        """Send a settlement to the caller; a checkpoint only if the outbox is full.

        A settlement without an outcome (robots.txt, sitemap) goes to the frontier at once.
        """
        if settlement.outcome is None:
            await self._frontier.settle(settlement)
            return
        if self._bytes > MAX_BYTES:
            await self.wait_for_room()
        self._bytes += settlement.size
        try:
            self._sender.send_nowait(settlement)
        except trio.WouldBlock:
            await self._sender.send(settlement)

    async def __anext__(self) -> Outcome:
        if self._busy:
            # With two tasks, the outcome that one of them received would not be settled.
            raise trio.BusyResourceError(SECOND_READER)
        self._busy = True
        hosts, receiver = self._frontier.hosts, self._receiver
        try:
            outcome: Outcome | None = None
            while outcome is None:
                unsettled = self._unsettled
                if unsettled is not None:
                    with url_noted(unsettled.job):
                        if len(unsettled.successors) > PORTION:
                            unsettled = await self._portioned(unsettled)
                        await self._frontier.settle(unsettled)
                    # Not before `settle`: if that is cancelled, the next call repeats it.
                    self._unsettled = None
                self._turns += 1
                if (at_once := self._turns % _AT_ONCE) or (
                    hosts.ended is None and trio.current_time() < self._until
                ):
                    await trio.lowlevel.checkpoint_if_cancelled()
                else:
                    await trio.lowlevel.checkpoint()
                    self._until = trio.current_time() + _APART
                # What was in flight is not to wait until all others are skipped.
                skipped = self._skip() if at_once and hosts.ended is not None else None
                try:
                    settlement = skipped or receiver.receive_nowait()
                except trio.WouldBlock:
                    settlement = self._skip() or await receiver.receive()
                self._unsettled, outcome = settlement, settlement.outcome
        except trio.EndOfChannel:
            # If a bug ended the last worker, the nursery is cancelled: this raises Cancelled, so
            # the caller does not take the crawl for complete.
            await trio.lowlevel.checkpoint()  # noqa: ASYNC120 - the end of a channel is no loss
            raise StopAsyncIteration from None
        finally:
            self._busy = False
        self._bytes -= settlement.size
        if self._bytes <= MAX_BYTES and self._waiting:
            # One at a time: the settlement of this worker will come here, and wake the next one.
            # To wake all of 10,000 workers each time would cost more than their pages do. With no
            # bytes left nothing else may come here, so all are woken.
            self._waiting.unpark(count=1 if self._bytes else inf)
        self._counters.count(outcome)
        return outcome

    def _skip(self) -> Settlement | None:
        """Return the settlement of a URL that waited at the early end; None if there is none."""
        hosts = self._frontier.hosts
        ended = hosts.ended
        if ended is None or not self.handlers or (job := hosts.choose(False)) is None:
            return None
        with url_noted(job):
            why = job.blocked or ended
            settlement = self.handlers[job.purpose].blocked(job, why, hosts.last(job))
        self._bytes += settlement.size
        return settlement

    def wake(self) -> None:
        """Let a caller that waits for the workers skip URLs: the crawl has ended early."""
        waits = self._receiver.statistics().tasks_waiting_receive
        if waits and (settlement := self._skip()) is not None:
            self._sender.send_nowait(settlement)

    async def _portioned(self, settlement: Settlement) -> Settlement:
        """Admit the first of many successors; return the settlement with the others.

        So the loop is not held for long. The job is counted out last: if this is cancelled, or the
        process is killed, the job is not settled, and the links that were admitted are known.
        """
        successors = settlement.successors
        last = (len(successors) - 1) // PORTION * PORTION
        for start in range(0, last, PORTION):
            await self._frontier.add(successors[start : start + PORTION])
        return replace(settlement, successors=successors[last:])


class OutcomeBlock(AbstractAsyncContextManager[AsyncIterator[Outcome]]):
    """The block in which a crawl runs; its value is the iterator over the outcomes."""

    def __init__(self, block: AbstractAsyncContextManager[AsyncIterator[Outcome]]) -> None:
        self._block = block

    # Ctrl-C waits until both are done: between this block and that of the generator it would leave
    # a nursery open. The tasks of the crawl, and the block itself, are hit as ever.

    @trio.lowlevel.enable_ki_protection
    async def __aenter__(self) -> AsyncIterator[Outcome]:
        check_in_trio("a crawl")
        return await self._block.__aenter__()

    @trio.lowlevel.enable_ki_protection
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
    """Decorate a method that yields the iterator over outcomes: it becomes an `OutcomeBlock`."""
    opened = asynccontextmanager(run)

    @wraps(run)
    def block(crawler: _T) -> OutcomeBlock:
        return OutcomeBlock(opened(crawler))

    return block


class Caught:
    """Catch an exception of one class that leaves the block, and keep it in `error`.

    Without `cancellation` Trio's own goes on.
    """

    def __init__(self, kind: type[BaseException], *, cancellation: bool = True) -> None:
        self.error: BaseException | None = None
        self._kind = kind
        self._cancellation = cancellation

    def __enter__(self) -> Caught:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        cancelled = any(isinstance(leaf, trio.Cancelled) for leaf in _leaves(error))
        if isinstance(error, self._kind) and (self._cancellation or not cancelled):
            self.error = error
        return self.error is not None


class BareExceptions:
    """Carry the caller's own exception past a nursery, which would put it into a group.

    The inner `with bare.carried:` catches the exception, unless it is Trio's cancellation. The
    outer `with bare:` raises it again, after the nursery between the two has ended.
    """

    def __init__(self) -> None:
        self.carried = Caught(BaseException, cancellation=False)

    def __enter__(self) -> BareExceptions:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        mine = self.carried.error
        others = [leaf for leaf in _leaves(error) if not isinstance(leaf, trio.Cancelled)]
        raised = [*_leaves(mine), *others]
        if raised and all(isinstance(leaf, KeyboardInterrupt) for leaf in raised):
            # Ctrl-C may hit any task, and each Ctrl-C another one.
            mine = raised[0]
        elif mine is not None and error is not None and others:
            # Neither may hide the other: the bug that ended the crawl, the exception of the block.
            raise BaseExceptionGroup("the crawl and its block", [error, mine]) from None
        if mine is not None:
            raise_bare(mine)


def raise_bare(error: BaseException) -> NoReturn:
    """Raise `error` with its own context, not with the group or cancellation that it replaces."""
    context = error.__context__
    try:
        raise error
    finally:
        error.__context__ = context


def _leaves(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the exceptions in a group, or the one that is no group."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    elif error is not None:
        yield error


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
        ended, seconds = sum(self._counts.values()), self._earlier.seconds
        if self._started is not None:
            until = trio.current_time() if self._ended is None else self._ended
            seconds += until - self._started
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
            seconds=seconds,
        )
