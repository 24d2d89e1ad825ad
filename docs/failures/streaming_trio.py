"""The same generator behind a decorator: the block that opens it closes it."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator

import httpx
import trio
from workers import Crawler

from sites.endless import answer
from virtual import run_trio, visitor


class Streaming(Crawler):
    async def fetch(self, url: str, max_redirect: int) -> None:
        await super().fetch(url, max_redirect)
        self.found.send_nowait(url)


@trio.as_safe_channel
async def pages(client: httpx.AsyncClient, root: str) -> AsyncGenerator[str, None]:
    crawler = Streaming(client, root)
    crawler.found, found = trio.open_memory_channel[str](math.inf)
    async with trio.open_nursery() as nursery:  # (1)
        nursery.start_soon(crawler.crawl)
        while True:
            yield await found.receive()  # (2)


async def main() -> None:
    client, site = visitor(answer)
    async with pages(client, site.url) as stream:  # (3)
        async for url in stream:
            print("has", url, "and leaves")
            break
    await trio.sleep(0.05)
    before = site.hits.total()
    await trio.sleep(10)
    print("requests in the next 10 s:", site.hits.total() - before)


if __name__ == "__main__":
    run_trio(main)
