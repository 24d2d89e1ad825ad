"""The pacer in asyncio: the same tasks before the same workers."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import httpx
from modern import Crawler

from sites.hosts import REST, answer, urls
from virtual import run_asyncio, visitor


class Paced(Crawler):
    unfinished = 0

    def __init__(self, client: httpx.AsyncClient, root: str) -> None:
        super().__init__(client, root)
        self.q = asyncio.Queue(1)

    async def crawl(self) -> None:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self.pace(host)) for host in REST]
            tasks += [group.create_task(self.work()) for _ in range(self.max_tasks)]
            await self.over.wait()
            for task in tasks:
                task.cancel()

    async def pace(self, host: str) -> None:
        while True:
            await self.q.put(await self.lines[host].get())  # (1)
            await asyncio.sleep(REST[host])  # (2)

    def add(self, urls: set[str], max_redirect: int) -> None:
        for url in sorted(urls - self.seen_urls):
            self.unfinished += 1  # the queue counts only what is in it
            self.lines[urlsplit(url).hostname].put_nowait((url, max_redirect))
        self.seen_urls |= urls

    async def fetch(self, url: str, max_redirect: int) -> None:
        await super().fetch(url, max_redirect)
        self.ended[urlsplit(url).hostname] = asyncio.get_running_loop().time()
        self.unfinished -= 1
        if self.unfinished == 0:
            self.over.set()


async def main() -> None:
    client, _site = visitor(answer)
    Paced.lines = {host: asyncio.Queue() for host in REST}
    Paced.over = asyncio.Event()
    crawler = Paced(client, "http://fast/")
    crawler.ended = {}
    for url in urls():
        crawler.add({url}, 0)
    await crawler.crawl()
    for host, ended in sorted(crawler.ended.items()):
        print(f"{host}: over after {ended:.1f} s")


if __name__ == "__main__":
    run_asyncio(main)
