"""Interrupt the chapter's crawl, run with its loop and its client, aiohttp."""

from __future__ import annotations

import asyncio
import sys

import aiohttp
import chapter
from web import links


class Crawler(chapter.Crawler):
    async def fetch(self, url: str, max_redirect: int) -> None:
        async with self.client.get(url) as response:
            self.add(links(url, await response.read()), max_redirect)


async def main(root: str) -> None:
    await Crawler(aiohttp.ClientSession(), root).crawl()


if __name__ == "__main__":
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(main(sys.argv[1]))  # (1)
    except KeyboardInterrupt:  # (2)
        print("caught: KeyboardInterrupt")
    loop.close()
