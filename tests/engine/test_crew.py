"""The crew: workers start as there is work for them, and never hold the loop."""

from __future__ import annotations

import sys

import pytest
import trio

from trio_crawler import Crawler, Politeness
from trio_crawler.engine.build import AT_ONCE
from trio_crawler.testing import Web, html

HOME = "http://site.test/"
MANY = 100_000


async def longest_hold(stop: trio.Event) -> int:
    """Return the most lines that run between two checkpoints of this task, which never waits."""
    longest = lines = 0

    def count(frame, event, arg):
        nonlocal lines
        lines += 1
        return count

    before = sys.gettrace()
    sys.settrace(count)
    while not stop.is_set():
        lines = 0
        await trio.lowlevel.checkpoint()
        longest = max(longest, lines)
    sys.settrace(before)
    return longest


@pytest.mark.parametrize("leave", [False, True])
async def test_a_hundred_thousand_workers_hold_the_loop_for_less_than_two_lines_each(leave):
    stop, found = trio.Event(), list[int]()

    async def measure() -> None:
        found.append(await longest_hold(stop))

    web = Web({HOME: html("/a"), HOME + "a": html()})
    # Expressions compile when they are first used.
    await Crawler([HOME], fetch=web).crawl()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(measure)
        async with Crawler([HOME], fetch=web, workers=MANY).outcomes() as outcomes:
            async for _ in outcomes:
                if leave:
                    break
        stop.set()
    # 50,000 lines at most where this was written: 200 workers end together.
    assert found[0] < 2 * MANY


async def test_a_crawl_that_needs_few_workers_starts_few(autojump_clock):
    most = 0

    async def fetch(job):
        nonlocal most
        most = max(most, trio.lowlevel.current_statistics().tasks_living)
        return await web(job)

    web = Web({HOME: html(*(f"/{n}" for n in range(50)))})
    await Crawler([HOME], fetch=fetch, workers=MANY).crawl()
    assert most < AT_ONCE + 100


@pytest.mark.parametrize("workers", [1, 10, AT_ONCE + 500])
async def test_as_many_urls_are_fetched_at_once_as_there_are_workers(autojump_clock, workers):
    busy = most = 0

    async def fetch(job):
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        await trio.sleep(1)
        busy -= 1
        return html()

    seeds = [f"{HOME}{n}" for n in range(3 * workers)]
    gently = Politeness(per_host=3 * workers, robots=False)
    figures = await Crawler(seeds, fetch=fetch, workers=workers, politeness=gently).crawl()
    assert most == workers
    assert figures.pages == 3 * workers
