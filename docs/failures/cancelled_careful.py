"""Cancel the careful crawl after half a second, and ask what goes on."""

from __future__ import annotations

import asyncio
import sys

import httpx
from witness import asked, told
from worker_raises_careful import Crawler


async def main(root: str) -> None:
    async with httpx.AsyncClient() as client:
        try:
            await asyncio.wait_for(Crawler(client, root).crawl(), 0.5)
        except TimeoutError:
            print("crawl() was cancelled")
        await asyncio.sleep(0.25)
        before = await asked(client, root)
        await asyncio.sleep(1)
        after = await asked(client, root)
        print("requests in the second after it:", told(after - before))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
