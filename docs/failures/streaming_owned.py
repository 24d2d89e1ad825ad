"""The cure by hand: a context manager owns the tasks, an iterator only reads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from streaming_modern import Streaming

from sites.endless import answer
from virtual import run_asyncio, visitor


async def each(found: asyncio.Queue[str]) -> AsyncIterator[str]:
    while True:
        yield await found.get()  # (2)


@asynccontextmanager
async def pages(
    client: httpx.AsyncClient, root: str
) -> AsyncIterator[AsyncIterator[str]]:
    crawler = Streaming(client, root)
    crawler.found = asyncio.Queue()
    async with asyncio.TaskGroup() as group:  # (1)
        crawl = group.create_task(crawler.crawl())
        yield each(crawler.found)
        crawl.cancel()


async def main() -> None:
    client, site = visitor(answer)
    async with pages(client, site.url) as stream:  # (3)
        async for url in stream:
            print("has", url, "and leaves")
            break
    await asyncio.sleep(0.05)
    before = site.hits.total()
    await asyncio.sleep(10)
    print("requests in the next 10 s:", site.hits.total() - before)


if __name__ == "__main__":
    run_asyncio(main)
