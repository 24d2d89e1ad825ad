"""The chapter's crawler in today's syntax: workers and a joined queue."""

from __future__ import annotations

import asyncio
import sys
from urllib.parse import urljoin

import httpx
from web import links, show


class Crawler:
    def __init__(
        self, client: httpx.AsyncClient, root: str, max_redirect: int = 10
    ) -> None:
        self.client = client
        self.max_tasks = 4
        self.max_redirect = max_redirect
        self.q: asyncio.Queue[tuple[str, int]] = asyncio.Queue()
        self.seen_urls = {root}
        self.pages: set[str] = set()
        self.q.put_nowait((root, max_redirect))

    async def crawl(self) -> None:
        workers = [
            asyncio.create_task(self.work()) for _ in range(self.max_tasks)
        ]  # (1)
        await self.q.join()  # (2)
        for w in workers:
            w.cancel()  # (3)

    async def work(self) -> None:
        while True:  # (4)
            url, max_redirect = await self.q.get()
            await self.fetch(url, max_redirect)
            self.q.task_done()  # (5)

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
            self.q.put_nowait((url, max_redirect))
        self.seen_urls |= urls


async def crawl(client: httpx.AsyncClient, root: str) -> set[str]:
    crawler = Crawler(client, root)
    await crawler.crawl()
    return crawler.pages


async def main(root: str) -> None:
    async with httpx.AsyncClient() as client:
        show(await crawl(client, root))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
