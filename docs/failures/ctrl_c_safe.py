"""Interrupt a nursery behind `as_safe_channel`: a bare KeyboardInterrupt."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator

import httpx
import trio
from workers import Crawler


@trio.as_safe_channel
async def crawl(root: str) -> AsyncGenerator[str, None]:
    async with httpx.AsyncClient() as client:
        crawler = Crawler(client, root)
        await crawler.crawl()
        for page in sorted(crawler.pages):
            yield page


async def main(root: str) -> None:
    async with crawl(root) as pages:
        async for page in pages:
            print(page)


if __name__ == "__main__":
    try:
        trio.run(main, sys.argv[1])
    except KeyboardInterrupt:
        print("caught: KeyboardInterrupt")
    except BaseExceptionGroup as group:
        print("missed:", type(group).__name__, group.exceptions)
