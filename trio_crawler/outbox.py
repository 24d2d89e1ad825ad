"""The outbox: outcomes on their way to the caller, and the caller's way out of the crawl."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from types import TracebackType

import trio

from trio_crawler.model import Job, Outcome
from trio_crawler.verdict import Verdict


class Outbox(AsyncIterator[Outcome]):
    """Give the outcomes that come through a channel, in the caller's own task.

    `count` is called with each outcome that is about to be given, `settle` when the caller asks
    for the next one. `trio.as_safe_channel` would do this in a task of its own: with the hop
    through its channel 121 us a URL were measured, without it 77 us.
    """

    def __init__(
        self,
        count: Callable[[Outcome], None],
        settle: Callable[[Outcome, Sequence[Job]], Awaitable[None]],
    ) -> None:
        self._sender, self._verdicts = trio.open_memory_channel[Verdict](0)
        self._count = count
        self._settle = settle
        self._given: Verdict | None = None

    def entrance(self) -> trio.MemorySendChannel[Verdict]:
        """Return a channel for one sender; the outcomes end when all are closed."""
        return self._sender.clone()

    def close(self) -> None:
        """Make no more entrances."""
        self._sender.close()

    async def __anext__(self) -> Outcome:
        if self._given is not None:
            await self._settle(*self._given)
            # Only now: a call that was cancelled is made again.
            self._given = None
        try:
            self._given = await self._verdicts.receive()
        except trio.EndOfChannel:
            raise StopAsyncIteration from None
        self._count(self._given.outcome)
        return self._given.outcome


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
        # A bug that ended the crawl goes first.
        if error is None and self.carried.error is not None:
            raise self.carried.error


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


def _is_cancellation(error: BaseException) -> bool:
    """Tell whether a cancel scope waits for this exception, or for a part of it."""
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup(trio.Cancelled) is not None
    return isinstance(error, trio.Cancelled)
