"""Ask asyncio in the middle of a crawl which tasks there are: a set, no parents."""

from __future__ import annotations

import asyncio

from chapter import crawl

from sites.uneven import answer
from virtual import run_asyncio, visitor


async def main() -> None:
    client, site = visitor(answer)
    crawling = asyncio.create_task(crawl(client, site.url))
    await asyncio.sleep(3)
    for name in sorted(task.get_coro().__name__ for task in asyncio.all_tasks()):
        print(name)
    await crawling


if __name__ == "__main__":
    run_asyncio(main)
