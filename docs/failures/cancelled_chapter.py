"""Cancel the chapter's crawl after half a second, and ask what goes on."""

from __future__ import annotations

import asyncio
import sys

import httpx
from chapter import Crawler
from witness import asked, told


async def main(root: str) -> None:
    client = httpx.AsyncClient()  # never closed, as in the chapter
    crawler = Crawler(client, root)
    try:
        await asyncio.wait_for(crawler.crawl(), 0.5)  # (1)
    except TimeoutError:
        print("crawl() was cancelled")
    await asyncio.sleep(0.25)
    before = await asked(client, root)
    await asyncio.sleep(1)  # (2)
    after = await asked(client, root)
    print("requests in the second after it:", told(after - before))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
