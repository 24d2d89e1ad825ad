"""Crawl as the chapter does, and forget to cancel the workers at the end."""

from __future__ import annotations

import asyncio
import sys

import chapter
import httpx


class Crawler(chapter.Crawler):
    async def crawl(self) -> None:
        for _ in range(self.max_tasks):
            asyncio.create_task(self.work())
        await self.q.join()


async def main(root: str) -> None:
    async with httpx.AsyncClient() as client:
        crawler = Crawler(client, root)
        await crawler.crawl()
        print(len(crawler.pages), "pages")


if __name__ == "__main__":
    loop = asyncio.new_event_loop()
    loop.run_until_complete(main(sys.argv[1]))
    loop.close()
