"""An async generator with a task group in it; the consumer wants only one page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
from modern import Crawler

from sites.endless import answer
from virtual import run_asyncio, visitor


class Streaming(Crawler):
    async def fetch(self, url: str, max_redirect: int) -> None:
        await super().fetch(url, max_redirect)
        self.found.put_nowait(url)


async def pages(client: httpx.AsyncClient, root: str) -> AsyncIterator[str]:
    crawler = Streaming(client, root)
    crawler.found = asyncio.Queue()
    async with asyncio.TaskGroup() as group:  # (1)
        group.create_task(crawler.crawl())
        while True:
            yield await crawler.found.get()  # (2)


async def main() -> None:
    client, site = visitor(answer)
    stream = pages(client, site.url)  # (3)
    async for url in stream:
        print("has", url, "and leaves")
        break
    await asyncio.sleep(0.05)
    before = site.hits.total()
    await asyncio.sleep(10)
    print("requests in the next 10 s:", site.hits.total() - before)


if __name__ == "__main__":
    run_asyncio(main)
