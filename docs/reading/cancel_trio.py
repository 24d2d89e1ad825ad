"""What is cancelled is a region: a block, and what is awaited in it."""

from __future__ import annotations

import math
import sys

import trio
from web import address, body, links, request, show


class Crawler:
    def __init__(self, root: str, max_pages: int) -> None:
        self.max_tasks, self.max_pages = 4, max_pages
        self.seen_urls, self.pages = {root}, set()
        self.enough = trio.Event()
        self.send, self.jobs = trio.open_memory_channel[str](math.inf)
        self.send.send_nowait(root)

    async def crawl(self) -> None:
        async with trio.open_nursery() as nursery:  # (1)
            for _ in range(self.max_tasks):
                nursery.start_soon(self.work)
            await self.enough.wait()  # (2)
            nursery.cancel_scope.cancel()  # (3)

    async def work(self) -> None:
        while True:
            url = await self.jobs.receive()
            page = await self.fetch(url)
            for link in sorted(links(url, page) - self.seen_urls):
                self.seen_urls.add(link)
                self.send.send_nowait(link)
            self.pages.add(url)
            if len(self.pages) in (self.max_pages, len(self.seen_urls)):
                self.enough.set()

    async def fetch(self, url: str) -> bytes:
        async with await trio.open_tcp_stream(*address(url)) as stream:
            try:
                await stream.send_all(request(url))
                return body(await read_all(stream))
            finally:
                await read_all(stream)  # (4)


async def read_all(stream: trio.SocketStream) -> bytes:
    return b"".join([chunk async for chunk in stream])


async def main(root: str, max_pages: int) -> None:
    crawler = Crawler(root, max_pages)
    await crawler.crawl()
    show(crawler.pages)


if __name__ == "__main__":
    trio.run(main, sys.argv[1], int(sys.argv[2]) if sys.argv[2:] else 1000)
