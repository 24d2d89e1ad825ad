"""A channel has no join: the count is an object, and ends once."""

from __future__ import annotations

import math
import sys

import trio
from awaits_trio import fetch
from web import links, show


class Join:
    def __init__(self) -> None:
        self._unfinished = 0
        self._zero = trio.Event()

    def add(self) -> None:
        self._unfinished += 1  # (1)

    def done(self) -> None:
        self._unfinished -= 1  # (2)
        if self._unfinished == 0:
            self._zero.set()  # (3)

    async def wait(self) -> None:
        await self._zero.wait()


class Crawler:
    def __init__(self, root: str) -> None:
        self.max_tasks = 4
        self.seen_urls = {root}
        self.join = Join()
        self.send, self.jobs = trio.open_memory_channel[str](math.inf)
        self.put(root)  # (4)

    async def crawl(self) -> None:
        async with trio.open_nursery() as nursery:  # (5)
            for _ in range(self.max_tasks):
                nursery.start_soon(self.work)
            await self.join.wait()  # (6)
            self.send.close()  # (7)

    async def work(self) -> None:
        async for url in self.jobs:  # (8)
            await self.fetch(url)
            self.join.done()

    async def fetch(self, url: str) -> None:
        new = links(url, await fetch(url)) - self.seen_urls
        self.seen_urls.update(new)
        for link in sorted(new):
            self.put(link)

    def put(self, url: str) -> None:
        self.join.add()
        self.send.send_nowait(url)


async def main(root: str) -> None:
    crawler = Crawler(root)
    await crawler.crawl()
    show(crawler.seen_urls)


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
