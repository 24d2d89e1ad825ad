"""Weigh an idle task, and time a crawl without a network, on both."""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from collections.abc import Awaitable, Callable

import chapter
import trio
import trio.testing
import workers

TASKS, PAGES, ROUNDS = 1000, 2000, 5


async def idle_asyncio() -> float:
    """Return the bytes that a task takes which waits."""
    async with asyncio.TaskGroup() as group:
        never, before = asyncio.Event(), weight()
        tasks = [group.create_task(never.wait()) for _ in range(TASKS)]
        await asyncio.sleep(0)
        grown = weight() - before
        for task in tasks:
            task.cancel()
    return grown / TASKS


async def idle_trio() -> float:
    async with trio.open_nursery() as nursery:
        never, before = trio.Event(), weight()
        for _ in range(TASKS):
            nursery.start_soon(never.wait)
        await trio.testing.wait_all_tasks_blocked()
        grown = weight() - before
        nursery.cancel_scope.cancel()
    return grown / TASKS


def weight() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


class Nowhere:
    """Give each page after one turn of the loop, without links."""

    is_redirect, content = False, b""

    def __init__(self, turn: Callable[[], Awaitable[None]]) -> None:
        self.turn = turn

    async def get(self, url: str, follow_redirects: bool) -> Nowhere:
        await self.turn()
        return self


async def crawl(crawler: chapter.Crawler | workers.Crawler) -> float:
    """Return the seconds of CPU that a page takes."""
    for n in range(PAGES):
        crawler.add({f"http://nowhere/{n}"}, 0)
    began = time.process_time()
    await crawler.crawl()
    return (time.process_time() - began) / PAGES


async def crawl_asyncio() -> float:
    return await crawl(
        chapter.Crawler(Nowhere(lambda: asyncio.sleep(0)), "http://a/")
    )


async def crawl_trio() -> float:
    return await crawl(
        workers.Crawler(Nowhere(trio.lowlevel.checkpoint), "http://a/")
    )


if __name__ == "__main__":
    tracemalloc.start()
    light, heavy = asyncio.run(idle_asyncio()), trio.run(idle_trio)
    tracemalloc.stop()
    print("an idle task is lighter in asyncio:", light < heavy)
    print("and lighter than 10 KiB in both:", max(light, heavy) < 10 * 1024)
    quick = min(asyncio.run(crawl_asyncio()) for _ in range(ROUNDS))
    slow = min(trio.run(crawl_trio) for _ in range(ROUNDS))
    print("a crawl without a network is quicker in asyncio:", quick < slow)
