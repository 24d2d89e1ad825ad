"""The chapter's crawler, with the care that its asyncio asks for."""

from __future__ import annotations

import asyncio
import sys

import chapter
import httpx
from web import show


class Crawler(chapter.Crawler):
    async def crawl(self) -> None:
        tasks = [asyncio.create_task(self.q.join())]
        for _ in range(self.max_tasks):
            tasks.append(asyncio.create_task(self.work()))
        try:
            first = asyncio.FIRST_COMPLETED  # (1)
            done, _ = await asyncio.wait(tasks, return_when=first)
            for task in done:
                task.result()  # (2)
        finally:
            for task in tasks:
                task.cancel()  # (3)
            await asyncio.gather(*tasks, return_exceptions=True)


async def main(root: str) -> None:
    async with httpx.AsyncClient() as client:
        crawler = Crawler(client, root)
        await crawler.crawl()
        show(crawler.pages)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
