"""What the first half of the page of failures says beyond the runs that it shows."""

from __future__ import annotations

import asyncio
import gc
import re
import signal
import sys
from contextlib import nullcontext, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import chapter
import modern
import nursery
import pytest
import run
import trio
import workers
from sites import drip, endless, liar, plain, shared
from virtual import Stuck, run_asyncio, run_trio, visitor

sys.path.append(str(Path(run.__file__).parent / "failures"))

import deadline_chapter
import no_cancel_chapter
import no_cancel_modern
import no_cancel_trio
import seen_race_chapter
import seen_race_trio

AWAITS = 1000


def crawl(module: ModuleType, answer: Any) -> Any:
    """Return a program that makes one crawl and returns the pages it has found."""

    async def program() -> set[str]:
        client, site = visitor(answer)
        crawler = module.Crawler(client, site.url)
        await crawler.crawl()
        return crawler.pages

    return program


# 1. A worker raises


def test_a_raising_worker_of_the_chapter_leaves_the_crawl_waiting_and_is_heard_by_the_collector(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gc.disable()
    try:
        with suppress(Stuck):
            pytest.fail(f"it ended: {run_asyncio(crawl(chapter, liar.answer))}")
        assert "never retrieved" not in caplog.text
    finally:
        gc.enable()
    gc.collect()
    assert "Task exception was never retrieved" in caplog.text


def test_a_raising_worker_of_a_task_group_or_a_nursery_ends_the_crawl_with_its_error() -> None:
    with pytest.raises(ExceptionGroup) as of_group:
        run_asyncio(crawl(modern, liar.answer))
    with pytest.raises(ExceptionGroup) as of_nursery:
        run_trio(crawl(workers, liar.answer))
    for caught in (of_group, of_nursery):
        assert [type(error) for error in caught.value.exceptions] == [UnicodeDecodeError]


def test_neither_a_task_group_nor_a_nursery_says_at_which_page_a_worker_raised() -> None:
    for started in (
        lambda: run_asyncio(crawl(modern, liar.answer)),
        lambda: run_trio(crawl(workers, liar.answer)),
    ):
        with pytest.raises(ExceptionGroup) as caught:
            started()
        (error,) = caught.value.exceptions
        assert not hasattr(error, "__notes__")


def test_until_the_worker_raises_the_chapter_and_trio_ask_for_the_same_twelve_pages() -> None:
    (client, left), (other, right) = visitor(liar.answer), visitor(liar.answer)
    with pytest.raises(Stuck):
        run_asyncio(chapter.Crawler(client, left.url).crawl)
    with pytest.raises(ExceptionGroup):
        run_trio(workers.Crawler(other, right.url).crawl)
    assert left.hits == right.hits
    assert len(left.hits) == left.hits.total() == 12


# 2. The crawl is cancelled from outside


async def cancelled_on_asyncio(module: ModuleType) -> tuple[int, int]:
    client, site = visitor(endless.answer)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(module.Crawler(client, site.url).crawl(), 0.45)
    before = site.hits.total()
    await asyncio.sleep(1)
    return before, site.hits.total()


async def cancelled_on_trio(module: ModuleType) -> tuple[int, int]:
    client, site = visitor(endless.answer)
    with trio.move_on_after(0.45):
        await module.Crawler(client, site.url).crawl()
    before = site.hits.total()
    await trio.sleep(1)
    return before, site.hits.total()


def test_after_the_cancellation_only_the_workers_of_the_chapter_go_on() -> None:
    before, after = run_asyncio(cancelled_on_asyncio, chapter)
    assert after - before == round(4 / endless.answer("/").wait)
    for before, after in (
        run_asyncio(cancelled_on_asyncio, modern),
        run_trio(cancelled_on_trio, workers),
    ):
        assert before == after > 4


# 3. Ctrl-C


async def interrupted() -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)
        raise KeyboardInterrupt


@pytest.mark.parametrize("swallows", [True, False])
def test_asyncio_cancels_the_main_task_first_and_goes_on_if_that_swallows_it(
    swallows: bool,
) -> None:
    said: list[str] = []

    async def wait(name: str) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            said.append(f"{name} is cancelled")
            if not swallows:
                raise

    async def main() -> None:
        task = asyncio.create_task(wait("worker"))
        asyncio.get_running_loop().call_later(0.01, signal.raise_signal, signal.SIGINT)
        await wait("main")
        said.append(f"main goes on, the worker is {'over' if task.done() else 'waiting'}")

    with nullcontext() if swallows else pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    goes_on = ["main goes on, the worker is waiting"] if swallows else []
    assert said == ["main is cancelled", *goes_on, "worker is cancelled"]


@pytest.mark.parametrize("restricted", [True, False])
def test_trio_raises_an_interrupt_between_two_lines_unless_it_is_told_not_to(
    restricted: bool,
) -> None:
    said: list[str] = []

    async def main() -> None:
        signal.raise_signal(signal.SIGINT)
        said.append("the next line")
        await trio.lowlevel.checkpoint()
        said.append("behind the checkpoint")

    with pytest.raises(KeyboardInterrupt):
        trio.run(main, restrict_keyboard_interrupt_to_checkpoints=restricted)
    assert said == ["the next line"] * restricted


def test_except_star_catches_the_interrupt_that_a_nursery_has_wrapped() -> None:
    caught = []
    try:
        trio.run(interrupted)
    except* KeyboardInterrupt:
        caught.append("caught")
    assert caught == ["caught"]


# 4. Forgetting to cancel the workers


def test_in_a_task_group_forgotten_workers_are_a_hang() -> None:
    with pytest.raises(Stuck):
        run_asyncio(crawl(no_cancel_modern, plain.answer))


def test_in_a_nursery_a_forgotten_count_is_a_hang() -> None:
    with pytest.raises(Stuck):
        run_trio(crawl(no_cancel_trio, plain.answer))


def test_without_a_block_forgotten_workers_do_not_keep_the_crawl_from_ending() -> None:
    assert len(run_asyncio(crawl(no_cancel_chapter, plain.answer))) == plain.SIZE


def test_the_nursery_alone_ends_with_nothing_to_forget() -> None:
    client, site = visitor(plain.answer)
    assert len(run_trio(nursery.crawl, client, site.url)) == plain.SIZE


# 5. A deadline over a page that drips


def test_each_read_of_the_page_that_drips_is_in_time_and_the_page_is_not() -> None:
    page = drip.answer("/")
    assert page.drip < deadline_chapter.LIMIT
    assert page.drip * (len(page.body) - 1) > 2 * deadline_chapter.LIMIT


# 6. Edge and level


def test_a_goodbye_of_less_than_its_second_is_said_on_both_sides() -> None:
    said = []

    async def on_asyncio() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                try:
                    await asyncio.sleep(60)
                finally:
                    async with asyncio.timeout(1):
                        await asyncio.sleep(0.9)
                        said.append("asyncio")

    async def on_trio() -> None:
        with trio.move_on_after(0.5):
            try:
                await trio.sleep(60)
            finally:
                with trio.move_on_after(1, shield=True):
                    await trio.sleep(0.9)
                    said.append("trio")

    run_asyncio(on_asyncio)
    run_trio(on_trio)
    assert said == ["asyncio", "trio"]


def test_a_limit_alone_does_not_let_trio_say_goodbye() -> None:
    said = []

    async def visit() -> None:
        with trio.move_on_after(0.5):
            try:
                await trio.sleep(60)
            finally:
                with trio.move_on_after(1):
                    await trio.sleep(0.9)
                    said.append("goodbye")

    run_trio(visit)
    assert said == []


def test_a_loop_that_swallows_each_cancellation_spins_in_trio_and_waits_in_asyncio() -> None:
    async def on_trio() -> float:
        with trio.move_on_after(0.5):
            for _ in range(AWAITS):
                with suppress(trio.Cancelled):
                    await trio.sleep(60)
        return trio.current_time()

    async def swallowing() -> None:
        for _ in range(AWAITS):
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(60)

    async def on_asyncio() -> float:
        task = asyncio.ensure_future(swallowing())
        await asyncio.sleep(0.5)
        task.cancel()
        await task
        return asyncio.get_running_loop().time()

    async def began() -> float:
        return trio.current_time()

    assert run_asyncio(on_asyncio) == 0.5 + 60 * (AWAITS - 1)
    assert run_trio(on_trio) - run_trio(began) == 0.5


def test_a_cancellation_is_no_exception_that_except_exception_would_catch() -> None:
    assert not issubclass(asyncio.CancelledError, Exception)
    assert not issubclass(trio.Cancelled, Exception)


# 7. The seen-set race


def twice(program: Any, kind: type, *args: int) -> list[str]:
    async def hits() -> list[str]:
        client, site = visitor(shared.answer)
        await kind(client, site.url, *args).crawl()
        return sorted(path for path, count in site.hits.items() if count > 1)

    return program(hits)


@pytest.mark.parametrize("room", [0, 1, 2, 3])
def test_marking_first_cures_the_race_of_asyncio_in_a_queue_of_any_room(room: int) -> None:
    assert twice(run_asyncio, seen_race_chapter.MarkedFirst, room) == []


def test_marking_first_cures_the_race_of_trio() -> None:
    assert twice(run_trio, seen_race_trio.MarkedFirst) == []
    assert twice(run_trio, seen_race_trio.Awaited) == ["/x", "/y", "/z"]


# 8. Awaits that never wait


async def others_on_asyncio(room: int) -> int:
    """Count the turns of another task while one makes many awaits on a queue with room."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    q: asyncio.Queue[int] = asyncio.Queue(room)
    task = asyncio.ensure_future(other())
    for number in range(AWAITS):
        await q.put(number)
        await q.get()
    seen = turns
    task.cancel()
    await asyncio.wait([task])
    return seen


def test_a_receive_of_trio_that_raises_is_no_checkpoint() -> None:
    turns: list[int] = []

    async def other() -> None:
        turns.append(0)

    async def main() -> int:
        send, receive = trio.open_memory_channel[int](1)
        send.close()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(other)
            for _ in range(1000):
                with suppress(trio.EndOfChannel):
                    await receive.receive()
            return len(turns)

    assert trio.run(main) == 0


def test_a_task_of_trio_belongs_to_the_scopes_around_its_nursery() -> None:
    async def main() -> float:
        async with trio.open_nursery() as nursery:
            with trio.CancelScope() as scope:
                nursery.start_soon(trio.sleep, 60)
                scope.cancel()
                await trio.lowlevel.checkpoint()
        return trio.current_time()

    assert run_trio(main) == 60


async def others_on_trio() -> int:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    send, receive = trio.open_memory_channel[int](1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        for number in range(AWAITS):
            await send.send(number)
            await receive.receive()
        nursery.cancel_scope.cancel()
    return turns


def test_an_await_of_asyncio_that_need_not_wait_lets_nobody_run() -> None:
    assert run_asyncio(others_on_asyncio, 1) == 0


def test_an_await_of_trio_lets_the_others_run_whether_it_has_to_wait_or_not() -> None:
    assert run_trio(others_on_trio) >= 2 * AWAITS - 2


# The page itself


def test_each_failure_has_a_page_that_the_first_page_lists_in_order() -> None:
    docs = Path(run.__file__).parent
    lines = (docs / "failures.md").read_text().splitlines()
    listed = [f"{line}.md" for line in lines if line.startswith("failures/")]
    assert listed == sorted(f"failures/{each.name}" for each in docs.glob("failures/*.md"))
    begins = [(docs / each).read_text().partition(".")[0] for each in listed]
    assert begins == [f"# {number}" for number in range(1, 20)]


def test_each_failure_begins_with_a_run_and_ends_with_an_exercise() -> None:
    for page in (Path(run.__file__).parent / "failures").glob("*.md"):
        text = page.read_text()
        programs = [text.find(each) for each in (":{pair}", "\nprogram ") if each in text]
        assert 0 < text.index("{run") < min(programs), page
        exercise = text.rpartition("\n\n")[2]
        assert exercise.startswith("**Exercise.**"), page
        assert "`python docs/run.py " in exercise, page


def test_no_program_of_the_page_is_too_wide_or_too_long_to_stand_beside_another() -> None:
    programs = sorted((Path(run.__file__).parent / "failures").glob("*.py"))
    assert len(programs) > 30
    for program in programs:
        lines = program.read_text().splitlines()
        assert len(lines) <= 90, program
        assert max(map(len, lines)) <= 84, program


def test_the_table_of_the_first_page_leads_to_each_failure_once_and_in_order() -> None:
    page = (Path(run.__file__).parent / "failures.md").read_text()
    rows = re.findall(r"^\| (\d+) \| \[[^]]+\]\(failures/0?(\d+)_", page, re.MULTILINE)
    assert rows == [(str(number), str(number)) for number in range(1, 20)]
