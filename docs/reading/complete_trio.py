"""`trio.run` returns what main returns, when all else has ended."""

from __future__ import annotations

import sys

import counting_trio
import trio
from web import show


class Crawler(counting_trio.Crawler):
    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.begun: set[str] = set()  # pages that are being fetched

    async def crawl(self) -> set[str]:
        await super().crawl()
        return self.seen_urls  # (1)

    async def fetch(self, url: str) -> None:
        self.begun.add(url)
        try:
            await super().fetch(url)
        finally:
            self.begun.remove(url)  # (3)


if __name__ == "__main__":
    crawler = Crawler(sys.argv[1])
    try:
        show(trio.run(crawler.crawl))  # (2)
    except BaseException:
        print("fetches never left:", len(crawler.begun))
        raise
