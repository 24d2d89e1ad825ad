"""The outbox: outcomes on their way to the caller, and the caller's way out of the crawl."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from math import inf
from types import TracebackType
from typing import NoReturn

import trio

from trio_crawler.eager import Eager
from trio_crawler.engine.exceptions import Noting
from trio_crawler.engine.pages import Verdict
from trio_crawler.model import Job, Outcome, Page

MOST_BYTES = 16 * 1024 * 1024
"""Bytes of pages from which on workers wait for the caller."""

_LINK = 150


class Outbox(AsyncIterator[Outcome]):
    """Take verdicts from `senders` tasks, give their outcomes to the caller.

    As many as there are senders may wait for the caller, with 16 MiB of pages or one more. It
    ends when each sender has left its `with` block. `count` is called with each outcome that is
    about to be given, `settle` when the caller asks for the next one. All that happens in the
    caller's own task: `trio.as_safe_channel` has one more, and took 121 us a URL, not 77.
    """

    def __init__(
        self,
        senders: int,
        count: Callable[[Outcome], None],
        settle: Callable[[Outcome, Sequence[Job]], Awaitable[None]],
    ) -> None:
        self._senders = senders
        self._sender, verdicts = trio.open_memory_channel[Verdict](senders)
        self._verdicts = Eager(verdicts)
        self._count = count
        self._settle = settle
        self._given: Verdict | None = None
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
        self._senders -= 1
        if not self._senders:
            self._sender.close()

    async def room(self) -> None:
        """Wait while the caller has too much before it; else no checkpoint."""
        while self._bytes > MOST_BYTES:
            await self._waiting.park()

    async def put(self, verdict: Verdict) -> None:
        """Hand over a verdict; a checkpoint only to wait until the caller has less before it."""
        await self.room()
        self._bytes += _weight(verdict)
        try:
            self._sender.send_nowait(verdict)
        except trio.WouldBlock:
            await self._sender.send(verdict)

    async def __anext__(self) -> Outcome:
        if self._busy:
            # Of two that wait, one would forget to settle what the other was given.
            raise trio.BusyResourceError("another task waits for the next outcome of this crawl")
        self._busy = True
        try:
            if self._given is not None:
                with Noting(self._given.outcome):
                    await self._settle(*self._given)
                # Only now: a call that was cancelled is made again.
                self._given = None
            self._given = verdict = await anext(self._verdicts)
        finally:
            self._busy = False
        self._bytes -= _weight(verdict)
        if self._bytes <= MOST_BYTES:
            # One at a time: who is woken hands something over, so another will be woken. To wake
            # all would cost 10,000 workers more than their pages do.
            self._waiting.unpark(count=1 if self._bytes else inf)
        self._count(verdict.outcome)
        return verdict.outcome


def _weight(verdict: Verdict) -> int:
    page = verdict.outcome
    if not isinstance(page, Page):
        return 0
    return len(page.body) + _LINK * (len(page.links) + len(page.refused))


class Apart:
    """Carry the caller's own exception past a nursery, which would make a group of it.

    It ends in the inner `with apart.carried:`, unless it is Trio's cancellation, and is raised
    again by the outer `with apart:`, once the nursery between them has ended.
    """

    def __init__(self) -> None:
        self.carried = _Carried()

    def __enter__(self) -> Apart:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        mine = self.carried.error
        if mine is None:
            mine = _interrupt(error)
        elif error is not None and not _is_all_cancellation(error):
            # A bug that ended the crawl, and what the block made of that: neither may hide.
            raise BaseExceptionGroup("the crawl and its block", [error, mine]) from None
        if mine is not None:
            _raise(mine)


class _Carried:
    """Take along the exception that ends a block."""

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if error is None or _is_cancellation(error):
            return False
        self.error = error
        return True


def _raise(error: BaseException) -> NoReturn:
    """Raise what was raised before, in the place of a group or a cancellation that is not told."""
    context = error.__context__
    try:
        raise error
    finally:
        error.__context__ = context


def _interrupt(error: BaseException | None) -> BaseException | None:
    """Return the KeyboardInterrupt of a group that holds nothing else: Ctrl-C may hit any task."""
    if isinstance(error, BaseExceptionGroup) and error.split(KeyboardInterrupt)[1] is None:
        return next(_leaves(error))
    return None


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error


def _is_all_cancellation(error: BaseException) -> bool:
    """Tell whether nothing but cancel scopes wait for this exception."""
    if isinstance(error, BaseExceptionGroup):
        return error.split(trio.Cancelled)[1] is None
    return isinstance(error, trio.Cancelled)


def _is_cancellation(error: BaseException) -> bool:
    """Tell whether a cancel scope waits for this exception, or for a part of it."""
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup(trio.Cancelled) is not None
    return isinstance(error, trio.Cancelled)
