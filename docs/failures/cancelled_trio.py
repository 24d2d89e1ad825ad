"""Cancel the nursery's crawl after half a second, and ask what goes on."""

from __future__ import annotations

import sys

import httpx
import trio
from witness import asked, told
from workers import Crawler


async def main(root: str) -> None:
    async with httpx.AsyncClient() as client:
        crawler = Crawler(client, root)
        with trio.move_on_after(0.5) as scope:  # (1)
            await crawler.crawl()
        if scope.cancelled_caught:
            print("crawl() was cancelled")
        await trio.sleep(0.25)
        before = await asked(client, root)
        await trio.sleep(1)  # (2)
        after = await asked(client, root)
        print("requests in the second after it:", told(after - before))


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
