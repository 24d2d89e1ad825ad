"""Workers, a channel, a count that ends it: as in `trio_crawler`."""

from __future__ import annotations

import math
import sys
from urllib.parse import urljoin

import httpx
import trio
from web import links, show


class Crawler:
    def __init__(
        self, client: httpx.AsyncClient, root: str, max_redirect: int = 10
    ) -> None:
        self.client = client
        self.max_tasks = 4
        self.max_redirect = max_redirect
        self.send, self.jobs = trio.open_memory_channel(math.inf)
        self.unfinished = 0
        self.seen_urls: set[str] = set()
        self.pages: set[str] = set()
        self.add({root}, max_redirect)

    async def crawl(self) -> None:
        async with trio.open_nursery() as nursery:  # (1) (2) (3)
            for _ in range(self.max_tasks):
                nursery.start_soon(self.work)

    async def work(self) -> None:
        async for url, max_redirect in self.jobs:  # (4)
            await self.fetch(url, max_redirect)
            self.done()  # (5)

    async def fetch(self, url: str, max_redirect: int) -> None:
        response = await self.client.get(url, follow_redirects=False)
        if response.is_redirect:
            if max_redirect > 0:
                location = response.headers["location"]
                target = urljoin(url, location)
                self.add({target}, max_redirect - 1)
        else:
            self.pages.add(url)
            self.add(links(url, response.content), self.max_redirect)

    def add(self, urls: set[str], max_redirect: int) -> None:
        for url in sorted(urls - self.seen_urls):  # (6)
            self.unfinished += 1
            self.send.send_nowait((url, max_redirect))
        self.seen_urls |= urls

    def done(self) -> None:
        self.unfinished -= 1
        if self.unfinished == 0:
            self.send.close()


async def crawl(client: httpx.AsyncClient, root: str) -> set[str]:
    crawler = Crawler(client, root)
    await crawler.crawl()
    return crawler.pages


async def main(root: str) -> None:
    async with httpx.AsyncClient() as client:
        show(await crawl(client, root))


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
