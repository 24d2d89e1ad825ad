"""Crawl a page that links to a large video, and look at the peak of memory."""

from __future__ import annotations

import asyncio
import sys
import tracemalloc

import httpx
from chapter import Crawler

from sites.video import SIZE


async def main(root: str) -> None:
    async with httpx.AsyncClient() as client:
        crawler = Crawler(client, root)
        await crawler.crawl()
        for url in sorted(crawler.pages):
            print("page:", url)


if __name__ == "__main__":
    tracemalloc.start()
    asyncio.run(main(sys.argv[1]))
    _, peak = tracemalloc.get_traced_memory()
    print("memory grew by the video or more:", peak >= SIZE)
