"""Crawl with a task group, and forget to end the workers."""

from __future__ import annotations

import asyncio
import sys

import httpx
import modern


class Crawler(modern.Crawler):
    async def crawl(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(self.max_tasks):
                group.create_task(self.work())
            await self.q.join()


async def main(root: str) -> None:
    async with httpx.AsyncClient() as client:
        crawler = Crawler(client, root)
        await crawler.crawl()
        print(len(crawler.pages), "pages")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
