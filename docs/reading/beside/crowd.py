"""Look at two crawls while two thousand pages wait: what does it cost?"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from typing import Any

import httpx
import nursery
import trio
import workers


async def measured(crawl: Any, root: str) -> tuple[int, int]:
    """Return how many tasks the crawl has, and how many bytes it takes."""
    async with httpx.AsyncClient(timeout=60) as client:
        before = trio.lowlevel.current_statistics().tasks_living
        already = int((await client.get(f"{root}~hits")).text)
        tracemalloc.start()
        async with trio.open_nursery() as looking:
            looking.start_soon(crawl, client, root)
            while int((await client.get(f"{root}~hits")).text) < already + 5:
                await trio.sleep(0.05)
            tasks = trio.lowlevel.current_statistics().tasks_living - before
            gc.collect()
            size = tracemalloc.get_traced_memory()[0]
            looking.cancel_scope.cancel()
        tracemalloc.stop()
    return tasks, size


async def main(root: str) -> None:
    tasks, size = await measured(nursery.crawl, root)
    fewer, smaller = await measured(workers.crawl, root)
    print(f"tasks of nursery.py: {tasks}, of workers.py: {fewer}")
    print(f"nursery.py takes more than ten times the memory: {size > 10 * smaller}")


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
