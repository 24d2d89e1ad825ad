"""A crawl in a program under asyncio: outcomes, ends and errors cross as they should."""

from __future__ import annotations

import asyncio
import selectors
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from contextvars import ContextVar
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import httpx
import pytest
import trio
from cases import for_each
from sites.left import sockets
from sites.webs import HOME, site_of
from trio.testing import wait_all_tasks_blocked

from trio_crawler import (
    Crawler,
    HttpFetch,
    HttpxFetch,
    Job,
    MemoryFrontier,
    Outcome,
    Page,
    Reason,
    Response,
    Skipped,
    SqliteFrontier,
    Traps,
    bridged,
)
from trio_crawler.frontier import Settlement
from trio_crawler.report import Warc
from trio_crawler.testing import Web, html

Open: TypeAlias = Callable[[], Any]
Run: TypeAlias = Callable[[Callable[[], Coroutine[Any, Any, Any]]], Any]


def on_asyncio(main: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run a program under asyncio; no thread and no cancellation may be left at its end."""

    async def whole() -> Any:
        try:
            result = await main()
        finally:
            assert threads() == before
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        return result

    before = threads()
    return asyncio.run(whole())


def threads() -> set[threading.Thread]:
    # Those that Trio keeps for its next call to a thread end by themselves.
    return {each for each in threading.enumerate() if not each.name.startswith("Trio thread")}


HOSTS = [on_asyncio, partial(anyio.run, backend="asyncio"), partial(anyio.run, backend="trio")]
HOST_NAMES = ["asyncio", "anyio on asyncio", "anyio on Trio"]


def open_site(pages: int = 5, **arguments: Any) -> Open:
    """Return a function that opens a crawl of one worker through a site in memory."""
    arguments = {"fetch": Web(site_of(pages)), "workers": 1, "traps": Traps.off(), **arguments}
    return lambda: Crawler([HOME], **arguments)


async def urls(open_crawler: Open) -> list[str]:
    async with bridged(open_crawler) as outcomes:
        return [outcome.url async for outcome in outcomes]


class Stage:
    """Run a crawl that may stop in one place for ever, and says so to a program under asyncio.

    The places: "open" the crawler, "fetch" its second page, the block's own "body" after a page,
    the "cleanup" of the crawler after the block was left.
    """

    def __init__(self, place: str = "") -> None:
        self.place = place
        self.log: list[str] = []
        self.reached = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._web = Web(site_of(3))

    async def stop_at(self, place: str) -> None:
        if place == self.place:
            self._loop.call_soon_threadsafe(self.reached.set)
            await trio.sleep_forever()

    async def fetch(self, job: Job) -> Response:
        if job.url != HOME and not job.url.endswith("robots.txt"):
            await self.stop_at("fetch")
        return await self._web(job)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Crawler]:
        try:
            await self.stop_at("open")
            yield Crawler([HOME], fetch=self.fetch)
            self.log.append("left")
        except BaseException as error:
            cancelled = (
                isinstance(error, BaseExceptionGroup) and not error.split(trio.Cancelled)[1]
            )
            self.log.append("Cancelled" if cancelled else type(error).__name__)
            raise
        finally:
            await self.cleanup()
            self.log.append("closed")

    async def cleanup(self) -> None:
        try:
            await self.stop_at("cleanup")
        except trio.Cancelled:
            self.log.append("cleanup was cancelled")
            raise

    async def crawl(self) -> None:
        async with bridged(self.open) as outcomes:
            async for _ in outcomes:
                if self.place == "body":
                    self.reached.set()
                    await asyncio.Event().wait()
                if self.place == "cleanup":
                    break


# The outcomes.


@pytest.mark.parametrize("run", HOSTS, ids=HOST_NAMES)
def test_the_outcomes_of_a_crawl_come_in_its_own_order_under(run: Run) -> None:
    async def native() -> list[str]:
        async with open_site(20)().outcomes() as outcomes:
            return [outcome.url async for outcome in outcomes]

    assert run(partial(urls, open_site(20))) == trio.run(native)


@pytest.mark.parametrize("run", HOSTS, ids=HOST_NAMES)
def test_an_outcome_is_settled_when_the_next_one_is_asked_for_under(run: Run) -> None:
    settled: list[str] = []

    class Noting(MemoryFrontier):
        async def settle(self, settlement: Settlement) -> None:
            if settlement.outcome is not None:
                settled.append(settlement.outcome.url)
            await super().settle(settlement)

    async def main() -> None:
        given: list[str] = []
        async with bridged(open_site(frontier=Noting(), workers=10)) as outcomes:
            async for outcome in outcomes:
                assert settled == given
                given.append(outcome.url)
        assert len(settled) == 6

    run(main)


def test_a_slow_caller_stops_the_fetching_with_a_page_for_each_worker_and_no_more() -> None:
    async def main() -> None:
        web = Web(site_of(200))
        tokens = []

        def open_crawler() -> Crawler:
            tokens.append(trio.lowlevel.current_trio_token())
            return Crawler([HOME], fetch=web, workers=4)

        async def until_nothing_moves() -> int:
            blocked = partial(trio.from_thread.run, wait_all_tasks_blocked, trio_token=tokens[0])
            await asyncio.to_thread(blocked)
            return web.hits.total()

        async with bridged(open_crawler) as outcomes:
            for taken in range(1, 6):
                await anext(outcomes)
                # One in the hands of each worker, and one of each in the outbox.
                assert await until_nothing_moves() <= taken + 4 + 4
            left = await until_nothing_moves()
        assert web.hits.total() == left

    asyncio.run(main())


async def cancelled_call(outcomes: AsyncIterator[Outcome]) -> None:
    """Ask for the next outcome, and cancel that at once."""
    call = asyncio.create_task(anext(outcomes))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


def test_a_call_that_is_cancelled_is_made_again_and_loses_no_outcome() -> None:
    async def main() -> None:
        found: list[str] = []
        async with bridged(open_site()) as outcomes:
            while len(found) < 6:
                await cancelled_call(outcomes)
                found.append((await anext(outcomes)).url)
            with pytest.raises(StopAsyncIteration):
                await anext(outcomes)
            with pytest.raises(StopAsyncIteration):
                await anext(outcomes)
        assert found == await urls(open_site())

    on_asyncio(main)


@pytest.mark.parametrize("run", [on_asyncio, trio.run])
def test_two_tasks_that_ask_for_the_next_outcome_are_refused_under(run: Run) -> None:
    async def main() -> None:
        async def ask_twice() -> None:
            async with anyio.create_task_group() as group:
                group.start_soon(anext, outcomes)
                group.start_soon(anext, outcomes)

        async with bridged(open_site(fetch=Web(site_of(2), delay=0.01))) as outcomes:
            with pytest.raises(ExceptionGroup) as caught:
                await ask_twice()
        (error,) = caught.value.exceptions
        assert isinstance(error, trio.BusyResourceError)
        assert str(error) == "another task waits for the next outcome of this crawl"

    run(main)


def test_the_statistics_are_those_of_the_last_outcome_and_then_of_the_end() -> None:
    async def main() -> None:
        async with bridged(open_site(20, workers=10)) as outcomes:
            assert outcomes.statistics().pages == 0
            taken = 0
            async for _ in outcomes:
                taken += 1
                totals = outcomes.statistics()
                assert totals.pages == taken
                assert totals.admitted == taken + totals.in_flight + totals.waiting
        assert outcomes.statistics().pages == outcomes.statistics().admitted == 21

    on_asyncio(main)


@pytest.mark.parametrize("run", [on_asyncio, trio.run])
def test_stop_ends_a_crawl_with_what_waits_as_skipped_under(run: Run) -> None:
    async def main() -> None:
        async with bridged(open_site(200)) as outcomes:
            found = [await anext(outcomes)]
            with pytest.raises(TypeError, match="reason must be a Reason"):
                outcomes.stop("enough")  # type: ignore[arg-type]
            outcomes.stop(Reason.PAGE_BUDGET)
            found += [outcome async for outcome in outcomes]
        skipped = [each for each in found if isinstance(each, Skipped)]
        assert len(found) == 201
        assert len(skipped) > 190
        assert {each.reason for each in skipped} == {Reason.PAGE_BUDGET}
        outcomes.stop()

    run(main)


def test_fifty_crawls_run_at_the_same_time() -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            crawls = [await stack.enter_async_context(bridged(open_site())) for _ in range(50)]
            firsts = await asyncio.gather(*(anext(outcomes) for outcomes in crawls))
            assert [first.url for first in firsts] == [HOME] * 50
            for outcomes in crawls:
                assert len([outcome async for outcome in outcomes]) == 5

    on_asyncio(main)


def test_a_notebook_crawls_once_in_each_cell() -> None:
    loop = asyncio.new_event_loop()
    before = threads()
    for _ in range(2):
        assert len(loop.run_until_complete(urls(open_site()))) == 6
        assert threads() == before
    loop.close()


def test_a_crawl_has_the_context_variables_of_the_program() -> None:
    name = ContextVar[str]("name")
    seen: set[str] = set()

    def scope(job: Job) -> bool:
        seen.add(name.get())
        return True

    async def main() -> None:
        name.set("mine")
        await urls(open_site(scope=scope))

    on_asyncio(main)
    assert seen == {"mine"}


def test_anyio_knows_that_the_crawl_is_under_trio() -> None:
    async def fetch(job: Job) -> Response:
        await anyio.lowlevel.checkpoint()
        assert trio.lowlevel.in_trio_task()
        return html()

    assert anyio.run(urls, open_site(fetch=fetch), backend="asyncio") == [HOME]


# Leaving the block.


@pytest.mark.parametrize("early", [True, False])
def test_when_the_block_is_left_the_crawler_is_closed_and_not_cancelled(early: bool) -> None:
    async def main() -> None:
        stage = Stage()
        async with bridged(stage.open) as outcomes:
            async for _ in outcomes:
                if early:
                    break
        assert stage.log == ["left", "closed"]

    on_asyncio(main)


def test_a_block_that_returns_while_a_page_is_fetched_leaves_at_once() -> None:
    async def main() -> None:
        stage = Stage("fetch")

        async def first() -> Outcome:
            async with bridged(stage.open) as outcomes:
                found = await anext(outcomes)
                await cancelled_call(outcomes)
                await stage.reached.wait()
                return found

        assert (await first()).url == HOME
        assert stage.log == ["left", "closed"]

    on_asyncio(main)


@pytest.mark.parametrize("kind", [KeyError, SystemExit, BaseExceptionGroup, StopAsyncIteration])
def test_an_exception_of_the_block_leaves_bare_and_passes_through_the_opener(
    kind: type[BaseException],
) -> None:
    mine = kind("mine", [ValueError()]) if kind is BaseExceptionGroup else kind("mine")

    async def crawl(open_crawler: Open) -> None:
        async with bridged(open_crawler) as outcomes:
            await anext(outcomes)
            raise mine

    async def main() -> None:
        stage = Stage()
        with pytest.raises(kind) as caught:
            await crawl(stage.open)
        assert caught.value is mine
        assert mine.__context__ is mine.__cause__ is None
        # The frames of the thread are nothing to the reader of the traceback.
        assert [entry.name for entry in caught.traceback] == ["main", "crawl"]
        assert stage.log == [type(mine).__name__, "closed"]

    on_asyncio(main)


@pytest.mark.parametrize("run", [on_asyncio, trio.run])
def test_an_opener_that_suppresses_the_exception_of_the_block_does_so_under(run: Run) -> None:
    @asynccontextmanager
    async def open_crawler() -> AsyncIterator[Crawler]:
        with suppress(KeyError):
            yield open_site()()

    async def main() -> str:
        async with bridged(open_crawler):
            raise KeyError
        return "went on"

    assert run(main) == "went on"


def test_a_crawl_over_sockets_leaves_none_however_it_ends() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                body = b"<a href=/1></a><a href=/2></a><a href=/3></a>"
                head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: "
                writer.write(head + str(len(body)).encode() + b"\r\n\r\n" + body)
        except asyncio.IncompleteReadError:
            writer.close()

    async def main() -> None:
        async with await asyncio.start_server(serve, "127.0.0.1") as server:
            before = sockets()
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
            for end in (10, 2):
                async with bridged(lambda: Crawler([url])) as outcomes:
                    async for outcome in outcomes:
                        assert isinstance(outcome, Page)
                        if outcomes.statistics().pages == end:
                            break
                assert outcomes.statistics().pages == min(end, 4)
            async with asyncio.timeout(5):
                while sockets() > before:  # noqa: ASYNC110 - the server closes its own
                    await asyncio.sleep(0)

    on_asyncio(main)


def test_a_generator_that_is_closed_inside_the_block_ends_the_crawl() -> None:
    async def main() -> None:
        stage = Stage()

        async def pages() -> AsyncIterator[Outcome]:
            async with bridged(stage.open) as outcomes:
                async for outcome in outcomes:
                    yield outcome

        found = pages()
        await anext(found)
        await found.aclose()  # type: ignore[attr-defined]
        assert stage.log == ["left", "closed"]

    on_asyncio(main)


DROPPED = """
import asyncio, sys, threading, trio
from trio_crawler import Crawler, bridged
from trio_crawler.testing import html

async def fetch(job):
    loop.call_soon_threadsafe(loop.stop)
    await trio.to_thread.run_sync(gate.wait)
    return html()

async def main():
    async with bridged(lambda: Crawler(["http://site.test/"], fetch=fetch)) as outcomes:
        async for outcome in outcomes:
            pass

gate = threading.Event()
loop = asyncio.new_event_loop()
task = loop.create_task(main())
loop.run_forever()
[thread] = [each for each in threading.enumerate() if each.name == "trio_crawler"]
"""


@pytest.mark.parametrize(
    "then",
    ["", "loop.close()\ngate.set()\nthread.join()\n"],
    ids=["left", "closed"],
)
def test_a_program_that_drops_its_loop_ends(then: str) -> None:
    command = [sys.executable, "-c", DROPPED + then]
    run = subprocess.run(command, check=True, capture_output=True, text=True, timeout=30)
    assert "Exception in thread" not in run.stderr


def test_to_wait_for_a_cleanup_costs_a_program_no_turns_of_its_loop() -> None:
    class Counting(selectors.DefaultSelector):  # type: ignore[valid-type, misc]
        turns = 0

        def select(self, timeout: float | None = None) -> Any:
            Counting.turns += 1
            return super().select(timeout)

    @asynccontextmanager
    async def slowly_closed() -> AsyncIterator[Crawler]:
        try:
            yield open_site()()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(0.1)

    async def main() -> None:
        with anyio.CancelScope() as scope:
            async with bridged(slowly_closed):
                scope.cancel()
                await anyio.lowlevel.checkpoint()

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(Counting())) as runner:
        runner.run(main())
    assert Counting.turns < 100


# Cancellation.


async def by_timeout(crawl: Callable[[], Awaitable[None]], reached: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        limit = asyncio.timeout(None)

        async def limited() -> None:
            with pytest.raises(TimeoutError):
                async with limit:
                    await crawl()

        group.create_task(limited())
        await reached.wait()
        limit.reschedule(loop.time())


async def by_cancel(
    crawl: Callable[[], Coroutine[Any, Any, None]], reached: asyncio.Event
) -> None:
    task = asyncio.create_task(crawl())
    await reached.wait()
    task.cancel("a reason")
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def by_anyio_deadline(crawl: Callable[[], Awaitable[None]], reached: asyncio.Event) -> None:
    async def limited() -> None:
        with anyio.fail_after(inf) as scope:
            scopes.append(scope)
            await crawl()

    async def refused() -> None:
        with pytest.raises(TimeoutError):
            await limited()

    scopes: list[anyio.CancelScope] = []
    async with anyio.create_task_group() as group:
        group.start_soon(refused)
        await reached.wait()
        scopes[0].deadline = anyio.current_time()


async def by_sibling(
    crawl: Callable[[], Coroutine[Any, Any, None]], reached: asyncio.Event
) -> None:
    async def sibling() -> None:
        await reached.wait()
        raise KeyError("the sibling's")

    async def both() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(crawl())
            group.create_task(sibling())

    # Before Python 3.13 the group's own task goes on as one that was cancelled.
    with pytest.raises(ExceptionGroup) as caught:
        await asyncio.create_task(both())
    assert [repr(each) for each in caught.value.exceptions] == ['KeyError("the sibling\'s")']


@for_each("cancelled", [by_timeout, by_cancel, by_anyio_deadline, by_sibling])
@for_each(
    "place, log",
    [
        ("open", ["Cancelled", "closed"]),
        ("fetch", ["Cancelled", "closed"]),
        ("body", ["Cancelled", "closed"]),
        ("cleanup", ["left", "cleanup was cancelled"]),
    ],
)
def test_a_cancellation_cancels_the_crawl_inside_trio_and_is_delivered(
    place: str, log: list[str], cancelled: Callable[..., Coroutine[Any, Any, None]]
) -> None:
    async def main() -> None:
        stage = Stage(place)
        async with asyncio.timeout(20):
            await cancelled(stage.crawl, stage.reached)
        assert stage.log == log

    on_asyncio(main)


def test_a_crawl_that_is_cancelled_before_its_thread_runs_ends() -> None:
    async def main() -> None:
        for turns in range(6):
            task = asyncio.create_task(urls(open_site(200)))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    on_asyncio(main)


@pytest.mark.parametrize("first", ["asyncio", "anyio"])
def test_a_second_cancellation_waits_for_the_cleanup_too_and_is_delivered(first: str) -> None:
    async def main() -> None:
        inside, cleaning, log = asyncio.Event(), asyncio.Event(), []
        loop = asyncio.get_running_loop()
        scope = anyio.CancelScope()
        released = threading.Event()

        @asynccontextmanager
        async def open_crawler() -> AsyncIterator[Crawler]:
            try:
                yield open_site()()
            finally:
                loop.call_soon_threadsafe(cleaning.set)
                with trio.CancelScope(shield=True):
                    await trio.to_thread.run_sync(released.wait)
                log.append("closed")

        async def crawl() -> None:
            with scope:
                async with bridged(open_crawler):
                    inside.set()
                    await asyncio.Event().wait()

        task = asyncio.create_task(crawl())
        await inside.wait()
        (scope if first == "anyio" else task).cancel()
        await cleaning.wait()
        task.cancel()
        for _ in range(100):
            await asyncio.sleep(0)
        assert not task.done()
        assert log == []
        released.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert log == ["closed"]

    on_asyncio(main)


def test_control_c_ends_the_crawl() -> None:
    stages: list[Stage] = []

    async def main() -> None:
        stage = Stage("fetch")
        stages.append(stage)
        loop = asyncio.get_running_loop()
        stopping = asyncio.create_task(stage.reached.wait())
        stopping.add_done_callback(lambda _: loop.call_soon(signal.raise_signal, signal.SIGINT))
        await stage.crawl()

    with pytest.raises(KeyboardInterrupt):
        on_asyncio(main)
    assert stages[0].log == ["Cancelled", "closed"]


def test_control_c_twice_is_one_bare_keyboard_interrupt_and_ends_the_crawl() -> None:
    stages: list[Stage] = []

    async def main() -> None:
        stage = Stage("fetch")
        stages.append(stage)
        loop = asyncio.get_running_loop()

        def strike() -> None:
            # The second leaves asyncio's loop at once; a third would leave its clearing up.
            for _ in range(2):
                loop.call_soon(signal.raise_signal, signal.SIGINT)

        stopping = asyncio.create_task(stage.reached.wait())
        stopping.add_done_callback(lambda _: strike())
        await stage.crawl()

    with pytest.raises(KeyboardInterrupt):
        on_asyncio(main)
    assert stages[0].log == ["Cancelled", "closed"]


# Exceptions of the crawl.


def stumble(job: Job) -> bool:
    if job.url.endswith("/bug"):
        raise LookupError("a bug")
    return True


def open_buggy() -> Crawler:
    """Open a crawl whose second page is a bug, once the first outcome is settled."""
    web = Web({"/": html("/1"), "/1": html("/bug")})
    return Crawler([HOME], fetch=web, scope=stumble, workers=1)


async def exhausted(outcomes: AsyncIterator[Outcome]) -> None:
    async for _ in outcomes:
        pass
    pytest.fail("the loop has ended as if the crawl had")


async def elsewhere(outcomes: AsyncIterator[Outcome]) -> None:
    await anext(outcomes)
    await cancelled_call(outcomes)
    await asyncio.Event().wait()


@pytest.mark.parametrize("wait", [exhausted, elsewhere])
def test_a_bug_leaves_as_a_group_with_the_url_wherever_the_block_waits(
    wait: Callable[[AsyncIterator[Outcome]], Awaitable[None]],
) -> None:
    async def crawl() -> None:
        async with bridged(open_buggy) as outcomes:
            await wait(outcomes)

    async def main() -> None:
        with pytest.raises(ExceptionGroup) as caught:
            await crawl()
        (error,) = caught.value.exceptions
        assert isinstance(error, LookupError)
        assert error.__notes__ == [f"while crawling {HOME}1, linked from {HOME}"]
        assert caught.value.__context__ is caught.value.__cause__ is None

    on_asyncio(main)


def test_a_bug_before_the_block_begins_leaves_as_a_group() -> None:
    async def fetch(job: Job) -> Response:
        raise LookupError("a bug")

    async def main() -> None:
        for _ in range(20):
            with pytest.raises(ExceptionGroup) as caught:
                await urls(open_site(fetch=fetch))
            assert isinstance(caught.value.exceptions[0], LookupError)

    on_asyncio(main)


def test_a_bug_and_what_the_block_makes_of_it_leave_together() -> None:
    async def crawl() -> None:
        async with bridged(open_buggy) as outcomes:
            try:
                await elsewhere(outcomes)
            finally:
                raise KeyError("mine")

    async def main() -> None:
        with pytest.raises(ExceptionGroup, match="the crawl and its block") as caught:
            await crawl()
        group, mine = caught.value.exceptions
        assert isinstance(group, ExceptionGroup)
        assert isinstance(group.exceptions[0], LookupError)
        assert isinstance(mine, KeyError)

    on_asyncio(main)


def test_a_bug_ends_the_iterator_for_another_task() -> None:
    async def main() -> None:
        found: list[str] = []

        async def take(outcomes: AsyncIterator[Outcome]) -> None:
            found.extend([outcome.url async for outcome in outcomes])

        async def crawl() -> None:
            async with bridged(open_buggy) as outcomes:
                tasks.append(asyncio.create_task(take(outcomes)))
                await asyncio.Event().wait()

        tasks: list[asyncio.Task[None]] = []
        with pytest.raises(ExceptionGroup, match="nursery"):
            await crawl()
        await tasks[0]
        assert found == [HOME]

    on_asyncio(main)


def test_an_opener_that_suppresses_a_bug_ends_the_block_quietly() -> None:
    @asynccontextmanager
    async def open_crawler() -> AsyncIterator[Crawler]:
        with suppress(ExceptionGroup):
            yield open_buggy()

    async def main() -> None:
        async with bridged(open_crawler) as outcomes:
            await exhausted(outcomes)
        assert outcomes.statistics().pages == 1

    on_asyncio(main)


def test_a_block_that_swallows_its_cancellation_after_a_bug_is_cancelled_again() -> None:
    async def crawl() -> None:
        async with bridged(open_buggy) as outcomes:
            with suppress(asyncio.CancelledError):
                await elsewhere(outcomes)
            for _ in range(3):
                with suppress(asyncio.CancelledError):
                    await exhausted(outcomes)

    async def main() -> None:
        with pytest.raises(ExceptionGroup, match="nursery"):
            await crawl()

    on_asyncio(main)


@for_each("place", ["call", "enter", "exit"])
@for_each("run", [on_asyncio, trio.run])
def test_an_exception_of_the_opener_leaves_bare_under(run: Run, place: str) -> None:
    mine = KeyError("the opener's")

    @asynccontextmanager
    async def opened() -> AsyncIterator[Crawler]:
        if place == "enter":
            raise mine
        yield open_site()()
        raise mine

    def open_crawler() -> Any:
        if place == "call":
            raise mine
        return opened()

    async def main() -> None:
        with pytest.raises(KeyError) as caught:
            await urls(open_crawler)
        assert caught.value is mine
        assert mine.__context__ is None

    run(main)


# What is refused.


async def coroutine() -> Crawler:
    return open_site()()


async def generator() -> AsyncIterator[Crawler]:
    yield open_site()()


@asynccontextmanager
async def fetch_alone() -> AsyncIterator[HttpFetch]:
    async with HttpFetch() as fetch:
        yield fetch


@for_each("run", [on_asyncio, trio.run])
@for_each(
    "open_crawler, said",
    [
        (lambda: None, "what open_crawler returns must be a Crawler, or an async context manager"),
        (coroutine, "what open_crawler returns must be .*contextlib.asynccontextmanager"),
        (generator, "what open_crawler returns must be .*contextlib.asynccontextmanager"),
        (fetch_alone, "what open_crawler yields must be a Crawler, not <HttpFetch"),
    ],
)
def test_an_opener_that_opens_no_crawler_is_an_error_under(
    run: Run, open_crawler: Open, said: str
) -> None:
    async def main() -> None:
        with pytest.raises(TypeError, match=said):
            await urls(open_crawler)

    run(main)


def test_what_is_no_function_is_refused_at_the_call() -> None:
    with pytest.raises(TypeError, match="open_crawler must be a function that returns a Crawler"):
        bridged(Crawler([]))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="open_crawler must be a function, not what it returns"):
        bridged(Stage.open(None))  # type: ignore[arg-type]


@for_each(
    "use",
    [
        lambda path: Crawler([HOME]).crawl(),
        lambda path: Crawler([HOME]).outcomes().__aenter__(),
        lambda path: HttpFetch().__aenter__(),
        lambda path: HttpxFetch(
            httpx.MockTransport(lambda request: httpx.Response(200))
        ).__aenter__(),
        lambda path: SqliteFrontier(path).__aenter__(),
        lambda path: HttpFetch()(Job(HOME)),
        lambda path: HttpFetch(proxy="http://127.0.0.1:1/")(Job(HOME)),
        lambda path: HttpxFetch(httpx.AsyncClient())(Job(HOME)),
        lambda path: Warc(seeds=[HOME]).recording(HttpFetch())(Job(HOME)),
        lambda path: Web({"/": html()})(Job(HOME)),
        lambda path: MemoryFrontier().open(Crawler([HOME]).plan),
    ],
    ids=[
        *("crawl", "outcomes", "HttpFetch", "HttpxFetch", "SqliteFrontier", "HttpFetch()"),
        *("HttpFetch() by a proxy", "HttpxFetch()", "Warc", "Web", "MemoryFrontier"),
    ],
)
@for_each("run", HOSTS[:2], ids=HOST_NAMES[:2])
def test_what_needs_trio_names_the_bridge_under_asyncio(
    run: Run, use: Any, tmp_path: Path
) -> None:
    async def main() -> None:
        says = r" runs under Trio, not under asyncio: .* with trio_crawler\.bridged\(\)$"
        with pytest.raises(RuntimeError, match=says):
            await use(tmp_path)

    run(main)


def test_in_a_notebook_whose_loop_runs_trio_run_crawls_as_the_sentence_says() -> None:
    async def crawl() -> int:
        web = Web({"/": html("/b"), "/b": html()})
        return (await Crawler([web.url], fetch=web).crawl()).pages

    async def main() -> tuple[int, int]:
        return trio.run(crawl), await asyncio.to_thread(trio.run, crawl)

    assert asyncio.run(main()) == (2, 2)
