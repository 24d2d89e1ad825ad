"""Crawl with workers in a nursery, and forget the count that closes the channel."""

from __future__ import annotations

import sys

import httpx
import trio
import workers


class Crawler(workers.Crawler):
    def done(self) -> None:
        """Forget to count."""


async def main(root: str) -> None:
    async with httpx.AsyncClient() as client:
        crawler = Crawler(client, root)
        await crawler.crawl()
        print(len(crawler.pages), "pages")


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
