"""What the page of failures says in sections 9 to 16 beyond the runs that it shows."""

from __future__ import annotations

import asyncio
import itertools
import math
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from trio_crawler import Crawler, HttpxFetch, Limits, Statistics

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
sys.path[:0] = [str(DOCS / "failures")]

import chapter  # noqa: E402
import politeness_chapter  # noqa: E402
import politeness_modern  # noqa: E402
import politeness_trio  # noqa: E402
import streaming_owned  # noqa: E402
import streaming_trio  # noqa: E402
import task_tree_trio  # noqa: E402
import workers  # noqa: E402
from fake_time_asyncio import VirtualLoop  # noqa: E402
from sites import endless, hosts, small, uneven, video  # noqa: E402
from sites.serving import Answer  # noqa: E402
from small_witness import answer_in_memory  # noqa: E402
from virtual import run_asyncio, run_trio, visitor  # noqa: E402


def test_the_consumers_own_error_ends_the_stream_and_comes_out_bare_in_trio() -> None:
    client, site = visitor(endless.answer)

    async def main() -> int:
        async def consume() -> None:
            async with streaming_trio.pages(client, site.url) as stream:
                async for _url in stream:
                    raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            await consume()
        before = site.hits.total()
        await trio.sleep(10)
        return site.hits.total() - before

    assert run_trio(main) == 0


def test_the_consumers_own_error_ends_the_stream_cured_by_hand_in_a_group() -> None:
    client, site = visitor(endless.answer)

    async def main() -> int:
        async def consume() -> None:
            async with streaming_owned.pages(client, site.url) as stream:
                async for _url in stream:
                    raise KeyError("mine")

        with pytest.raises(ExceptionGroup) as caught:
            await consume()
        assert [type(error) for error in caught.value.exceptions] == [KeyError]
        before = site.hits.total()
        await asyncio.sleep(10)
        return site.hits.total() - before

    assert run_asyncio(main) == 0


def test_a_generator_of_asyncio_that_cancels_its_crawl_at_generator_exit_ends_well() -> None:
    async def pages() -> AsyncGenerator[int, None]:
        async with asyncio.TaskGroup() as group:
            crawl = group.create_task(asyncio.sleep(60))
            try:
                while True:
                    yield 1
            except GeneratorExit:
                crawl.cancel()

    async def main() -> int:
        async with aclosing(pages()) as stream:
            async for _page in stream:
                break
        return len(asyncio.all_tasks())

    assert run_asyncio(main) == 1


def test_a_deadline_around_each_await_leaves_the_reader_of_a_generator_alone_on_both() -> None:
    """The fetches take half of their deadline, and the reader far more than it."""
    read: list[str] = []

    async def on_asyncio() -> None:
        async def pages() -> AsyncIterator[int]:
            for number in range(3):
                async with asyncio.timeout(7200):
                    await asyncio.sleep(3600)
                yield number

        async for number in pages():
            await asyncio.sleep(20_000)
            read.append(f"asyncio {number}")

    @trio.as_safe_channel
    async def pages() -> AsyncGenerator[int, None]:
        for number in range(3):
            with trio.fail_after(7200):
                await trio.sleep(3600)
            yield number

    async def on_trio() -> None:
        async with pages() as stream:
            async for number in stream:
                await trio.sleep(20_000)
                read.append(f"trio {number}")

    run_asyncio(on_asyncio)
    run_trio(on_trio)
    assert read == [f"{side} {number}" for side in ("asyncio", "trio") for number in range(3)]


@pytest.mark.parametrize("shield", [True, False])
def test_in_trio_a_goodbye_without_a_shield_is_cancelled_at_its_first_await(shield: bool) -> None:
    said: list[str] = []

    async def watch() -> None:
        try:
            await trio.sleep_forever()
        finally:
            said.append("begins")
            with trio.CancelScope(shield=shield):
                await trio.sleep(0.01)
                said.append("is over")

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()

    trio.run(main)
    assert said == (["begins", "is over"] if shield else ["begins"])


def test_what_a_task_raises_after_gather_has_raised_is_dropped_without_a_word() -> None:
    logged: list[dict[str, Any]] = []
    raised: list[str] = []

    async def fail(after: float) -> None:
        await asyncio.sleep(after)
        raised.append(f"after {after:g} s")
        raise OSError(after)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: logged.append(context))
        with pytest.raises(OSError, match="1"):
            await asyncio.gather(fail(1), fail(2))
        await asyncio.sleep(10)

    run_asyncio(main)
    assert (raised, logged) == (["after 1 s", "after 2 s"], [])


def test_of_two_timers_at_one_instant_a_task_group_tells_both_errors_a_nursery_one() -> None:
    async def grouped() -> None:
        async def fail() -> None:
            await asyncio.sleep(1)
            raise OSError

        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            group.create_task(fail())

    async def nursed() -> None:
        async def fail() -> None:
            await trio.sleep(1)
            raise OSError

        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail)
            nursery.start_soon(fail)

    with pytest.raises(ExceptionGroup) as both:
        run_asyncio(grouped)
    with pytest.raises(ExceptionGroup) as one:
        run_trio(nursed)
    assert (len(both.value.exceptions), len(one.value.exceptions)) == (2, 1)


@pytest.mark.parametrize("name", small.SITES)
def test_every_url_of_a_small_site_ends_in_exactly_one_way(name: str) -> None:
    client, site = visitor(answer_in_memory)
    crawler = Crawler(
        [f"{site.url}{name}/"], limits=Limits(max_redirects=1), fetch=HttpxFetch(client)
    )

    async def main() -> list[str]:
        async with crawler.outcomes() as outcomes:
            return [outcome.url async for outcome in outcomes]

    urls = run_trio(main)
    totals: Statistics = crawler.statistics()
    assert len(urls) == len(set(urls)) == totals.admitted > 1
    assert (totals.waiting, totals.in_flight) == (0, 0)


def test_the_port_and_its_trio_form_read_a_video_as_if_it_were_a_page() -> None:
    def answer(path: str) -> Answer:
        said = video.answer(path)
        return replace(said, body=said.body[:100_000])

    client, site = visitor(answer)
    on_asyncio = run_asyncio(chapter.crawl, client, site.url)
    assert on_asyncio == run_trio(workers.crawl, visitor(answer)[0], site.url)
    assert on_asyncio == {site.url, f"{site.url}film.mp4"}


def test_neither_clock_waits_for_the_time_that_passes_in_a_thread() -> None:
    ended: list[str] = []
    done = threading.Event()

    async def on_trio() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, done.wait)
            await trio.sleep(3600)
            ended.append("an hour of Trio")
            done.set()
        ended.append("the thread")

    async def on_asyncio(pool: ThreadPoolExecutor) -> None:
        working = asyncio.get_running_loop().run_in_executor(pool, done.wait)
        await asyncio.sleep(3600)
        assert not working.done()
        ended.append("an hour of asyncio")
        done.set()

    trio.run(on_trio, clock=trio.testing.MockClock(autojump_threshold=0))
    done.clear()
    with ThreadPoolExecutor() as pool, asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(on_asyncio(pool))
    assert ended == ["an hour of Trio", "the thread", "an hour of asyncio"]


def test_workers_that_rest_for_the_slow_host_leave_the_quick_one_alone_for_seconds() -> None:
    client, site = visitor(hosts.answer)

    async def main() -> list[int]:
        crawler = politeness_chapter.Polite(client, "http://fast/")
        crawler.free, crawler.ended = politeness_chapter.Counter(), {}
        for url in hosts.urls():
            crawler.add({url}, 0)
        crawl = asyncio.create_task(crawler.crawl())
        asked = []
        await asyncio.sleep(12)
        for _ in range(14):  # from 12 s to 19 s, from 22 s to 29 s, ...
            before = site.hits.total()
            await asyncio.sleep(7)
            asked.append(site.hits.total() - before)
            await asyncio.sleep(3)
        assert 0 < site.hits.total() < 220
        await crawl
        assert site.hits.total() == 221
        return asked

    assert run_asyncio(main) == [0] * 14


def crowded(paced: Any, now: Callable[[], float]) -> tuple[Any, list[float]]:
    """Make a crawler that has a hundred pages of the fast host for each one of the slow."""
    asked: list[float] = []

    def answer(path: str) -> Answer:
        if path.startswith("/slow"):
            asked.append(now())
        return Answer(wait=0.1)

    crawler = paced(visitor(answer)[0], "http://fast/")
    crawler.ended = {}
    crawler.add({f"http://fast/{number}" for number in range(500)}, 0)
    crawler.add({f"http://slow/slow{number}" for number in range(5)}, 0)
    return crawler, asked


def gaps(asked: list[float]) -> list[float]:
    return [later - sooner for sooner, later in itertools.pairwise(asked)]


def test_a_pacer_of_trio_keeps_a_host_at_its_rest_however_many_jobs_others_have() -> None:
    async def main() -> list[float]:
        politeness_trio.Paced.lines = {
            host: trio.open_memory_channel[Any](math.inf) for host in hosts.REST
        }
        crawler, asked = crowded(politeness_trio.Paced, trio.current_time)
        await crawler.crawl()
        return gaps(asked)

    found = run_trio(main)
    assert len(found) == 4
    assert min(found) >= hosts.REST["slow"]


def test_a_pacer_of_asyncio_does_so_but_for_the_time_in_which_all_workers_are_busy() -> None:
    async def main() -> list[float]:
        politeness_modern.Paced.lines = {host: asyncio.Queue() for host in hosts.REST}
        politeness_modern.Paced.over = asyncio.Event()
        crawler, asked = crowded(politeness_modern.Paced, asyncio.get_running_loop().time)
        await crawler.crawl()
        return gaps(asked)

    found = run_asyncio(main)
    assert len(found) == 4
    assert min(found) >= hosts.REST["slow"] - 0.1


def test_with_a_pacer_before_it_the_queue_of_asyncio_is_over_too_early() -> None:
    async def main() -> tuple[int, int]:
        politeness_modern.Paced.lines = {host: asyncio.Queue() for host in hosts.REST}
        crawler = politeness_modern.Paced(visitor(hosts.answer)[0], "http://fast/")
        crawler.add(set(hosts.urls()), 0)
        await crawler.q.join()
        return crawler.unfinished, crawler.q.qsize()

    assert run_asyncio(main) == (221, 0)


def test_in_trio_every_task_but_the_first_has_a_parent() -> None:
    lanes = task_tree_trio.Lanes()
    clock = trio.testing.MockClock(autojump_threshold=0)
    client, site = visitor(uneven.answer)
    trio.run(workers.crawl, client, site.url, clock=clock, instruments=[lanes])
    assert [task.name for task in lanes.steps if task.parent_nursery is None] == ["<init>"]
    assert len(lanes.steps) > 5


def test_the_table_of_costs_says_what_it_is_and_it_can_be_measured_again() -> None:
    table = (DOCS / "generated" / "reading_cost.md").read_text()
    assert "not compared by the tests" in table
    assert "`python tests/bench/reading_cost.py`" in table
    assert "| its Trio form |" in table
    command = [sys.executable, str(ROOT / "tests/bench/reading_cost.py"), "its Trio form"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert float(said) > 0
