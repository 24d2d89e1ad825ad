"""Be polite before the channel: a pacer for each host lets its jobs out."""

from __future__ import annotations

import math
from urllib.parse import urlsplit

import httpx
import trio
from workers import Crawler

from sites.hosts import REST, answer, urls
from virtual import run_trio, visitor


class Paced(Crawler):
    def __init__(self, client: httpx.AsyncClient, root: str) -> None:
        super().__init__(client, root)
        self.send, self.jobs = trio.open_memory_channel(0)

    async def crawl(self) -> None:
        async with trio.open_nursery() as nursery:
            for host in REST:
                nursery.start_soon(self.pace, host)
            await super().crawl()
            nursery.cancel_scope.cancel()

    async def pace(self, host: str) -> None:
        async for job in self.lines[host][1]:
            await self.send.send(job)  # (1)
            await trio.sleep(REST[host])  # (2)

    def add(self, urls: set[str], max_redirect: int) -> None:
        for url in sorted(urls - self.seen_urls):
            self.unfinished += 1
            self.lines[urlsplit(url).hostname][0].send_nowait((url, max_redirect))
        self.seen_urls |= urls

    async def fetch(self, url: str, max_redirect: int) -> None:
        await super().fetch(url, max_redirect)
        self.ended[urlsplit(url).hostname] = trio.current_time()


async def main() -> None:
    client, _site = visitor(answer)
    Paced.lines = {host: trio.open_memory_channel(math.inf) for host in REST}
    crawler = Paced(client, "http://fast/")
    crawler.ended = {}
    for url in urls():
        crawler.add({url}, 0)
    await crawler.crawl()
    for host, ended in sorted(crawler.ended.items()):
        print(f"{host}: over after {ended:.1f} s")


if __name__ == "__main__":
    run_trio(main)
