"""The bridge: a program under asyncio runs a crawl, under Trio in a thread of its own.

Each thread only posts calls to the loop of the other, so neither ever blocks the other.
"""

# No `from __future__ import annotations` here: `typing.get_type_hints` would look the names up in
# `__module__`, which is set to another module.

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from contextvars import copy_context
from threading import Thread
from typing import Any, TypeAlias

import anyio
import trio

from trio_crawler.arguments import check_callable, check_kind, public
from trio_crawler.crawler import Crawler
from trio_crawler.engine.outbox import SECOND_READER, Caught, raise_bare
from trio_crawler.model import Outcome, Reason, Statistics

_Open: TypeAlias = Callable[[], Crawler | AbstractAsyncContextManager[Crawler]]
_CRAWLER = "a Crawler, or an async context manager of one (see contextlib.asynccontextmanager)"


@public("trio_crawler")
class BridgedOutcomes(AsyncIterator[Outcome]):
    """The outcomes of a crawl, as `bridged` yields them; each item is a checkpoint.

    Only `bridged` makes it, of functions: `following` waits for the next outcome.

    >>> async def count() -> int:
    ...     web = Web({"/": html("/a", "/b"), "/a": html(), "/b": html()})
    ...     async with bridged(lambda: Crawler([web.url], fetch=web)) as outcomes:
    ...         assert isinstance(outcomes, BridgedOutcomes)
    ...         async for outcome in outcomes:
    ...             outcomes.stop()
    ...         return outcomes.statistics().admitted
    >>> asyncio.run(count())
    3
    """

    def __init__(
        self,
        following: Callable[[], Awaitable[Outcome]],
        statistics: Callable[[], Statistics],
        stop: Callable[[Reason], None],
    ) -> None:
        self._following, self._statistics, self._stop = following, statistics, stop

    async def __anext__(self) -> Outcome:
        return await self._following()

    def statistics(self) -> Statistics:
        """Return the counts at the last outcome received, or at the end."""
        return self._statistics()

    def stop(self, reason: Reason = Reason.STOPPED) -> None:
        """Admit and fetch nothing more, for a `reason`, as `Crawler.stop`. Outcomes still come."""
        check_kind("reason", reason, Reason, "a Reason")
        self._stop(reason)


@public("trio_crawler")
def bridged(open_crawler: _Open) -> AbstractAsyncContextManager[BridgedOutcomes]:
    """Crawl in a program under asyncio: `async with` this, then `async for` over the outcomes.

    `open_crawler` is called inside Trio, which runs in a thread. It returns a `Crawler`, or an
    async context manager of one, which opens and closes the crawler's fetch and frontier.

    The block behaves as that of `Crawler.outcomes()`: the next call settles an outcome, the end
    of the block ends the crawl, a bug is raised in an ExceptionGroup with the URL as a note. A
    cancellation of the asyncio task cancels the crawl inside Trio, and is raised when the crawl
    has ended. In a program under Trio no thread is started.

    Raises TypeError if `open_crawler` is not a function, or does not return a crawler.
    """
    check_callable("open_crawler", open_crawler, f"a function that returns {_CRAWLER}")
    if isinstance(open_crawler, AbstractAsyncContextManager):
        raise TypeError(f"open_crawler must be a function, not what it returns: {open_crawler!r}")
    return _bridged(open_crawler)


@asynccontextmanager
async def _bridged(open_crawler: _Open) -> AsyncIterator[BridgedOutcomes]:
    if trio.lowlevel.in_trio_task():
        async with _opened(open_crawler) as (crawler, outcomes):
            yield BridgedOutcomes(outcomes.__anext__, crawler.statistics, crawler.stop)
        return
    thread = _TrioThread(open_crawler)
    try:
        with thread.block:
            with Caught(BaseException) as left:
                await thread.opened()
                yield BridgedOutcomes(thread.next_outcome, thread.statistics, thread.stop)
            await thread.close(left.error)
    finally:
        if thread.failure is not None:
            raise_bare(thread.failure)


@asynccontextmanager
async def _opened(open_crawler: _Open) -> AsyncIterator[tuple[Crawler, AsyncIterator[Outcome]]]:
    made = open_crawler()
    if inspect.iscoroutine(made):
        made.close()  # or Python would warn that it was never awaited
    if isinstance(made, Crawler):
        made = nullcontext(made)
    check_kind("what open_crawler returns", made, AbstractAsyncContextManager, _CRAWLER)
    async with made as crawler:
        check_kind("what open_crawler yields", crawler, Crawler, "a Crawler")
        async with crawler.outcomes() as outcomes:
            yield crawler, outcomes


class _TrioThread:
    """Run a crawl under Trio in a thread; `failure` is the exception that ended the thread."""

    def __init__(self, open_crawler: _Open) -> None:
        self.block = anyio.CancelScope()
        self.failure: BaseException | None = None
        self._open_crawler = open_crawler
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._answer: asyncio.Future[Outcome | None] = self._loop.create_future()
        self._consumed = self._requesting = self._block_left = self._cancelled = False
        self._block_error: BaseException | None = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._crawl_scope, self._block_scope = trio.CancelScope(), trio.CancelScope()
        self._request_sender, self._request_receiver = trio.open_memory_channel[None](1)
        # A daemon: if the asyncio loop is dropped with its tasks, the program must still end.
        run = copy_context().run
        self._thread = Thread(target=run, args=(self._run,), name="trio_crawler", daemon=True)
        self._thread.start()

    # In asyncio's thread.

    async def opened(self) -> None:
        """Wait until the crawl is open."""
        await self._wait_for_answer()
        await anyio.lowlevel.checkpoint_if_cancelled()
        self._consumed = True

    async def close(self, error: BaseException | None) -> None:
        """Wait for the end of the thread; raise a CancelledError or GeneratorExit again."""
        self._block_left = True
        is_end = isinstance(error, asyncio.CancelledError | GeneratorExit)
        if isinstance(error, asyncio.CancelledError):
            self._cancel()
        else:
            self._block_error = None if is_end else error
            self._post(self._block_scope.cancel)
        ending = await self._until_ended(error if is_end else None)
        if self._block_error is not None:  # not raised inside Trio, which had ended
            both = [each for each in (self.failure, self._block_error) if each is not None]
            message = "the crawl and its block"
            self.failure = BaseExceptionGroup(message, both) if both[1:] else both[0]
        if ending is not None:
            raise_bare(ending)

    async def next_outcome(self) -> Outcome:
        """Return the next outcome."""
        if self._requesting:
            raise trio.BusyResourceError(SECOND_READER)
        if self._consumed:  # else a call was cancelled, and this one gets its answer
            self._consumed, self._answer = False, self._loop.create_future()
            self._post(self._request_sender.send_nowait, None)
        self._requesting = True
        try:
            await self._wait_for_answer()
        finally:
            self._requesting = False
        if not self._answer.done():
            # The crawl has failed: the cancelled block must not take it for complete.
            await anyio.lowlevel.checkpoint_if_cancelled()
            raise StopAsyncIteration
        if (outcome := self._answer.result()) is None:
            raise StopAsyncIteration
        self._consumed = True
        return outcome

    def statistics(self) -> Statistics:
        return self._statistics

    def stop(self, reason: Reason) -> None:
        self._post(self._crawler.stop, reason)

    async def _until_ended(self, ending: BaseException | None) -> BaseException | None:
        """Wait for Trio; pass a cancellation on to it, and return the last one."""
        while not self._ended.done():
            # Shielded: a cancelled scope of anyio would cancel this wait again and again. A shield
            # does not stop a cancellation by asyncio, so that is caught.
            caught = Caught(asyncio.CancelledError)
            with anyio.CancelScope(shield=ending is not None), caught:
                await asyncio.wait({self._ended})
            if caught.error is not None:
                ending = caught.error
                # With a cancellation by anyio as its context, anyio would take it for its own, and
                # the scope would swallow it.
                ending.__context__ = None
                self._cancel()
        return ending

    async def _wait_for_answer(self) -> None:
        """Wait for an answer, or for the end of the thread without one."""
        futures: set[asyncio.Future[Any]] = {self._answer, self._ended}
        await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)

    def _cancel(self) -> None:
        self._cancelled = True
        self._post(self._crawl_scope.cancel)

    def _post(self, call: Callable[..., object], *args: object) -> None:
        if self._token is not None:
            with suppress(trio.RunFinishedError):
                self._token.run_sync_soon(call, *args)

    def _receive(self, outcome: Outcome | None, statistics: Statistics) -> None:
        self._statistics = statistics
        self._answer.set_result(outcome)

    def _end(self) -> None:
        self._thread.join()
        self._ended.set_result(None)
        if not self._block_left:
            self.block.cancel()

    # In Trio's thread.

    def _run(self) -> None:
        with Caught(BaseException) as end:
            trio.run(self._main)
        self.failure = end.error
        with suppress(RuntimeError):  # asyncio's loop is closed
            self._loop.call_soon_threadsafe(self._end)

    async def _main(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        if self._cancelled:
            self._crawl_scope.cancel()
        with self._crawl_scope:
            async with _opened(self._open_crawler) as (crawler, outcomes):
                self._crawler = crawler
                self._send(None)
                with self._block_scope:
                    async for _ in self._request_receiver:
                        self._send(await anext(outcomes, None))
                if (error := self._block_error) is not None:
                    self._block_error = None
                    raise error

    def _send(self, outcome: Outcome | None) -> None:
        self._loop.call_soon_threadsafe(self._receive, outcome, self._crawler.statistics())
