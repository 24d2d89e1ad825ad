"""The same threads; a nursery waits for them and hears of errors."""

from __future__ import annotations

import sys

import trio
from blocking import fetch
from web import links, show


class Crawler:
    def __init__(self, root: str) -> None:
        self.limiter = trio.CapacityLimiter(4)
        self.root = root
        self.seen_urls = {root}

    async def crawl(self) -> None:
        async with trio.open_nursery() as self.nursery:  # (2)
            self.nursery.start_soon(self.visit, self.root)

    async def visit(self, url: str) -> None:
        data = await trio.to_thread.run_sync(  # (1)
            fetch, url, limiter=self.limiter
        )
        new = sorted(links(url, data) - self.seen_urls)  # (3) (4)
        self.seen_urls.update(new)
        for link in new:
            self.nursery.start_soon(self.visit, link)  # (5)


async def main(root: str) -> None:
    crawler = Crawler(root)
    await crawler.crawl()
    show(crawler.seen_urls)


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
