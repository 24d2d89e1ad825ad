"""Cancel the task group's crawl after half a second, and ask what goes on."""

from __future__ import annotations

import asyncio
import sys

import httpx
from modern import Crawler
from witness import asked, told


async def main(root: str) -> None:
    async with httpx.AsyncClient() as client:
        crawler = Crawler(client, root)
        try:
            async with asyncio.timeout(0.5):  # (1)
                await crawler.crawl()
        except TimeoutError:
            print("crawl() was cancelled")
        await asyncio.sleep(0.25)
        before = await asked(client, root)
        await asyncio.sleep(1)  # (2)
        after = await asked(client, root)
        print("requests in the second after it:", told(after - before))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
