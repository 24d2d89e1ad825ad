"""What pages 7 to 10 and 12 to 15 claim beyond the runs that they show."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import traceback
import types
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import closing, suppress
from inspect import iscoroutinefunction
from typing import Any

import awaits
import awaits_trio
import blocking
import both
import both_trio
import cancel
import cancel_trio
import complete
import complete_trio
import counting
import counting_trio
import futures
import futures_trio
import pytest
import tasks
import tasks_trio
import trio
import yield_from
import yield_from_trio
from futures import Future, selector
from ground import soon, turn
from sites.serving import Site, named, serving
from virtual import Stuck, run_asyncio, run_trio


@pytest.fixture(scope="module")
def plain() -> Iterator[Site]:
    with serving(named("plain")) as site:
        yield site


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def drive() -> None:
    """Turn the loop until nobody waits for a socket any more."""
    while soon or selector.get_map():
        turn()


def with_cancel(root: str) -> set[str]:
    crawler = cancel.Crawler(root, 1000)
    cancel.Task(crawler.crawl())
    drive()
    return crawler.pages


def with_count(root: str) -> set[str]:
    crawler = counting.Crawler(root)
    cancel.Task(crawler.crawl())
    drive()
    return crawler.seen_urls


async def with_scope(root: str) -> set[str]:
    crawler = cancel_trio.Crawler(root, 1000)
    await crawler.crawl()
    return crawler.pages


@pytest.mark.parametrize(
    "crawl",
    [
        futures.crawl,
        lambda root: tasks.Crawler().crawl(root),
        yield_from.crawl,
        awaits.crawl,
        with_cancel,
        with_count,
        lambda root: complete.EventLoop().run_until_complete(complete.Crawler(root).crawl()),
        lambda root: both.EventLoop().run_until_complete(both.crawl(root)),
        futures_trio.crawl,
        lambda root: trio.run(tasks_trio.Crawler().crawl, root),
        yield_from_trio.crawl,
        awaits_trio.crawl,
        with_scope,
        lambda root: trio.run(complete_trio.Crawler(root).crawl),
        both_trio.crawl,
    ],
)
def test_each_program_finds_the_pages_that_blocking_sockets_find(
    crawl: Callable[[str], Any], plain: Site
) -> None:
    pages = trio.run(crawl, plain.url) if iscoroutinefunction(crawl) else crawl(plain.url)
    assert pages == blocking.crawl(plain.url)
    assert len(pages) == 13


# 7 · futures


def test_a_callback_that_comes_late_is_called() -> None:
    future, results = Future(), []
    future.set_result(7)
    future.add_done_callback(lambda f: results.append(f.result))
    assert results == [7]


def test_the_future_of_the_chapter_forgets_a_callback_that_comes_late() -> None:
    class AsPrinted(Future):
        def add_done_callback(self, fn: Callable[[Future], None]) -> None:
            self._callbacks.append(fn)

    future, results = AsPrinted(), []
    future.set_result(7)
    future.add_done_callback(lambda f: results.append(f.result))
    assert results == []


# 8 · tasks


def test_a_task_of_asyncio_keeps_its_error_and_the_loop_goes_on() -> None:
    async def main() -> BaseException | None:
        async def fail() -> None:
            raise ValueError

        task = asyncio.create_task(fail())
        await asyncio.sleep(1)
        return task.exception()

    assert isinstance(run_asyncio(main), ValueError)


def test_a_task_group_waits_until_the_siblings_of_a_failed_task_have_left() -> None:
    left = []

    async def wait() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            left.append(asyncio.get_running_loop().time())

    async def fail() -> None:
        await asyncio.sleep(1)
        raise ValueError

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(wait())
            group.create_task(fail())

    with pytest.raises(ExceptionGroup):
        run_asyncio(main)
    assert left == [1]


# 9 · yield from


def test_the_future_that_read_yields_comes_out_of_read_all(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    reading = yield_from.read_all(ours)
    future = reading.send(None)
    theirs.sendall(b"some")
    for key, _ in selector.select():
        key.data()
    assert future.result == b"some"
    selector.unregister(ours)


def test_what_is_thrown_into_read_all_comes_out_of_read_by_way_of_each_part(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    reading = yield_from.read_all(pair[0])
    reading.send(None)
    with pytest.raises(ValueError) as error:  # noqa: PT011
        reading.throw(ValueError())
    frames = [frame.name for frame in traceback.extract_tb(error.tb)]
    assert frames[-2:] == ["read_all", "read"]
    selector.unregister(pair[0])


def test_a_forgotten_yield_from_says_nothing() -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        yield_from.fetch("http://site/")
        gc.collect()
    assert [str(each.message) for each in said if "fetch" in str(each.message)] == []


def test_asyncio_has_a_limit_around_a_call() -> None:
    async def main() -> float:
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                await asyncio.sleep(100)
        return asyncio.get_running_loop().time()

    assert run_asyncio(main) == 1


# 10 · await


def test_a_forgotten_await_is_warned_about() -> None:
    with pytest.warns(RuntimeWarning, match=r"'fetch' was never awaited"):
        awaits.fetch("http://site/")


@pytest.mark.parametrize("module", [yield_from, awaits])
def test_yield_from_and_await_read_the_same_bytes(module: Any, plain: Site) -> None:
    got, todo = [], {plain.url}

    @types.coroutine
    def visit() -> Generator[Future, Any, None]:
        sock = yield from module.connect(plain.url)
        with closing(sock):
            sock.sendall(b"GET / HTTP/1.0\r\n\r\n")
            got.append((yield from module.read_all(sock)))
        todo.clear()

    tasks.Task(visit())  # type: ignore[arg-type]
    tasks.loop(todo)
    with socket.create_connection(awaits.address(plain.url)) as sock:
        sock.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert got == [b"".join(iter(lambda: sock.recv(4096), b""))]


def test_a_future_that_has_its_result_does_not_pause_who_awaits_it() -> None:
    future = awaits.Future()
    future.set_result(7)

    async def wait() -> int:
        return int(await future)

    with pytest.raises(StopIteration) as end:
        wait().send(None)
    assert end.value.value == 7


def test_a_task_runs_up_to_its_first_pause_before_its_constructor_returns() -> None:
    begun = []

    async def wait() -> None:
        begun.append("begun")
        await awaits.Future()

    tasks.Task(wait())  # type: ignore[arg-type]
    assert begun == ["begun"]


def test_what_a_coroutine_yields_to_trio_is_a_message_with_a_way_to_call_the_wait_off() -> None:
    def call_off(_: object) -> trio.lowlevel.Abort:
        return trio.lowlevel.Abort.SUCCEEDED

    with closing(trio.lowlevel.wait_task_rescheduled(call_off)) as waiting:  # noqa: ASYNC105
        message = waiting.send(None)
    assert message.abort_func is call_off
    assert not hasattr(message, "add_done_callback")


# 12 · cancel


def test_a_cancelled_task_raises_where_it_is_paused_and_not_in_who_cancels() -> None:
    events = []

    async def wait() -> None:
        try:
            await awaits.Future()
        except cancel.CancelledError:
            events.append("raised in the task")
            raise

    task = cancel.Task(wait())
    drive()
    task.cancel()
    events.append("cancel has returned")
    drive()
    assert events == ["cancel has returned", "raised in the task"]
    assert task.cancelled


def test_a_future_that_was_given_up_does_not_wake_its_task() -> None:
    given_up, other, events = awaits.Future(), awaits.Future(), []

    async def wait() -> None:
        try:
            await given_up
        except cancel.CancelledError:
            events.append(await other)

    task = cancel.Task(wait())
    drive()
    task.cancel()
    drive()
    given_up.set_result("stale")
    drive()
    assert events == []
    other.set_result("awaited")
    drive()
    assert events == ["awaited"]


def test_to_cancel_a_task_that_has_ended_does_nothing() -> None:
    async def end() -> None:
        pass

    task = cancel.Task(end())
    drive()
    task.cancel()
    drive()
    assert not task.cancelled


def test_a_coroutine_that_runs_cannot_be_thrown_into() -> None:
    async def throw() -> None:
        itself.throw(cancel.CancelledError())

    itself = throw()
    with pytest.raises(ValueError, match="already executing"):
        itself.send(None)


def test_a_goodbye_that_waits_outlives_a_cancelled_task_of_asyncio() -> None:
    async def stay() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(50)

    async def main() -> float:
        task = asyncio.create_task(stay())
        await asyncio.sleep(1)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        return asyncio.get_running_loop().time()

    assert run_asyncio(main) == 51


def test_without_a_goodbye_that_waits_the_cancelled_workers_end() -> None:
    class Crawler(cancel.Crawler):
        async def fetch(self, url: str) -> bytes:
            return await awaits.fetch(url)

    with serving(named("trickle")) as site:
        crawler = Crawler(site.url, 12)
        cancel.Task(crawler.crawl())
        drive()
        assert crawler.pages == crawler.seen_urls - {f"{site.url}2"}
    assert len(crawler.pages) == 12


@pytest.mark.parametrize(("shield", "over"), [(False, 1), (True, 3)])
def test_a_goodbye_on_trio_waits_only_under_a_shield_and_up_to_its_limit(
    shield: bool, over: float
) -> None:
    async def stay() -> None:
        try:
            await trio.sleep(100)
        finally:
            with trio.move_on_after(2, shield=shield):
                await trio.sleep(50)

    async def main() -> float:
        began = trio.current_time()
        with trio.move_on_after(1):
            await stay()
        return trio.current_time() - began

    assert run_trio(main) == pytest.approx(over)


# 13 · a queue that counts


def test_a_queue_can_be_joined_again() -> None:
    queue, joined = counting.Queue(), []

    async def join(name: str) -> None:
        await queue.join()
        joined.append(name)

    cancel.Task(join("nothing was put"))
    drive()
    assert joined == ["nothing was put"]
    for name in ("first", "again"):
        queue.put_nowait(name)
        cancel.Task(join(name))
        drive()
        assert name not in joined
        queue.task_done()
        drive()
    assert joined == ["nothing was put", "first", "again"]


def test_a_dead_worker_keeps_its_error_and_its_url_uncounted() -> None:
    alive = cancel.Task.alive
    with serving(named("liar")) as site:
        crawler = counting.Crawler(site.url)
        crawl = crawler.crawl()
        cancel.Task(crawl)
        drive()
    workers = crawl.cr_frame.f_locals["workers"]
    errors = [type(worker.error) for worker in workers if worker.error]
    assert errors == [UnicodeDecodeError]
    assert crawler.q._unfinished_tasks == 1
    assert cancel.Task.alive == alive + 4  # the crawl, and the workers that are left
    crawler.q.task_done()  # for the dead one
    drive()
    assert cancel.Task.alive == alive


def test_with_task_done_in_a_finally_the_crawl_ends_and_the_error_is_lost(
    capfd: pytest.CaptureFixture[str],
) -> None:
    class Crawler(counting.Crawler):
        async def work(self) -> None:
            while True:
                url = await self.q.get()
                try:
                    await self.fetch(url)
                finally:
                    self.q.task_done()

    with serving(named("liar")) as site:
        crawler = Crawler(site.url)
        task = cancel.Task(crawler.crawl())
        drive()
    assert crawler.q._unfinished_tasks == 0
    assert task.error is None
    assert capfd.readouterr() == ("", "")


def test_a_channel_of_trio_counts_nothing() -> None:
    assert not {"join", "task_done"} & {
        *dir(trio.MemorySendChannel),
        *dir(trio.MemoryReceiveChannel),
    }


def test_a_unit_that_nobody_counts_out_is_waited_for_for_ever_on_trio_too() -> None:
    async def main() -> None:
        join = counting_trio.Join()
        join.add()
        await join.wait()

    with pytest.raises(Stuck):
        run_trio(main)


# 14 · until complete


@pytest.mark.parametrize("loop", [complete.EventLoop, both.EventLoop])
def test_run_until_complete_returns_what_a_coroutine_returns_that_never_waits(loop: Any) -> None:
    async def main() -> int:
        return 7

    assert loop().run_until_complete(main()) == 7


@pytest.mark.parametrize("loop", [complete.EventLoop, both.EventLoop])
def test_run_until_complete_raises_what_the_coroutine_raises(loop: Any) -> None:
    async def main() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        loop().run_until_complete(main())


def test_a_loop_that_is_stopped_leaves_its_tasks_where_they_are() -> None:
    left = []

    async def wait() -> None:
        try:
            await awaits.Future()
        finally:
            left.append("left")

    waiting = wait()

    async def main() -> None:
        cancel.Task(waiting)

    complete.EventLoop().run_until_complete(main())
    soon.clear()
    assert left == []
    waiting.close()


def test_trio_run_returns_when_no_other_task_is_left() -> None:
    left = []

    async def wait() -> None:
        await trio.sleep(10)
        left.append("left")

    async def main() -> str:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
        return "returned"

    assert run_trio(main) == "returned"
    assert left == ["left"]


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(
    left: list[str], sleep: Callable[[float], Awaitable[None]]
) -> tuple[Callable[[], Coroutine[Any, Any, None]], Callable[[], Coroutine[Any, Any, None]]]:
    """Return a worker that says when it has left, and one that presses Ctrl-C."""

    async def wait() -> None:
        try:
            await sleep(10)
        finally:
            left.append("left")

    async def press() -> None:
        await sleep(0.01)
        signal.raise_signal(signal.SIGINT)
        await sleep(10)

    return wait, press


@pytest.mark.usefixtures("ctrl_c")
def test_asyncio_run_ends_every_task_at_ctrl_c_and_raises_a_plain_keyboard_interrupt() -> None:
    left: list[str] = []
    wait, press = interrupted(left, asyncio.sleep)

    async def main() -> None:
        other = asyncio.create_task(wait())
        await press()
        await other

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert left == ["left"]


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_leaves_a_nursery_in_a_group() -> None:
    left: list[str] = []
    wait, press = interrupted(left, trio.sleep)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            nursery.start_soon(press)

    with pytest.raises(BaseExceptionGroup) as error:
        trio.run(main)
    assert error.value.split(KeyboardInterrupt)[1] is None
    assert left == ["left"]


# 15 · a task that is a future


def test_whoever_awaits_a_task_is_given_its_value_or_its_error() -> None:
    async def give() -> int:
        return 7

    async def fail() -> None:
        raise LookupError

    async def main() -> tuple[int, str]:
        try:
            await both.Task(fail())
        except LookupError:
            return await both.Task(give()), "caught"
        return 0, ""

    assert both.EventLoop().run_until_complete(main()) == (7, "caught")


def test_an_error_waits_in_its_task_until_the_crawl_comes_to_it() -> None:
    with serving(named("silence")) as site:
        crawl = both.crawl(site.url)
        crawling = both.Task(crawl)
        while crawl.cr_frame is None or len(crawl.cr_frame.f_locals.get("tasks", ())) < 4:
            turn()
        _, silent, lying, good = crawl.cr_frame.f_locals["tasks"]
        while not (lying.done and good.done):
            turn()
        assert isinstance(lying.error, UnicodeDecodeError)
        assert not silent.done
        assert not crawling.done
        crawl.close()
        silent.coro.close()


def test_a_task_group_hands_out_tasks_that_can_be_awaited_and_does_not_wait_in_order() -> None:
    async def give() -> int:
        return 7

    async def fail() -> None:
        await asyncio.sleep(1)
        raise LookupError

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            assert await group.create_task(give()) == 7
            silent = group.create_task(asyncio.sleep(100))
            group.create_task(fail())
            await silent

    with pytest.raises(ExceptionGroup) as error:
        run_asyncio(main)
    assert error.group_contains(LookupError)


def test_start_soon_returns_none() -> None:
    async def main() -> None:
        async with trio.open_nursery() as nursery:
            assert nursery.start_soon(trio.sleep, 0) is None  # type: ignore[func-returns-value]

    trio.run(main)
