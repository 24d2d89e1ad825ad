"""The chapter's design in today's asyncio and aiohttp, `chapter_crawler.py URL N`.

A joinable queue, N workers, a seen set, a regular expression for the links, redirects by hand.
It keeps to one host, may open a connection for each worker, and prints one line of JSON. None of
our limits, checks and accounts is in it: it is as cheap as that design gets.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from urllib.parse import urldefrag, urljoin, urlsplit

import aiohttp
from tell import tell

LINK = re.compile(r"""<a\s[^>]*?\bhref\s*=\s*["']?([^\s"'<>]+)""", re.IGNORECASE)
REDIRECTS = (300, 301, 302, 303, 307, 308)


class Crawler:
    """Fetch every URL of one host, each once; `statuses` is what came."""

    def __init__(self, root: str, *, max_redirects: int = 10, max_tries: int = 4) -> None:
        self.host = urlsplit(root).netloc
        self.max_redirects = max_redirects
        self.max_tries = max_tries
        self.queue: asyncio.Queue[tuple[str, int]] = asyncio.Queue()
        self.seen: set[str] = set()
        self.statuses: dict[str, int] = {}
        self.add(root, max_redirects)

    async def crawl(self, workers: int) -> None:
        """Run to the end of the queue."""
        connector = aiohttp.TCPConnector(limit=workers)
        async with aiohttp.ClientSession(connector=connector) as session:
            tasks = [asyncio.create_task(self.work(session)) for _ in range(workers)]
            await self.queue.join()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def work(self, session: aiohttp.ClientSession) -> None:
        """Fetch what the queue gives, for ever."""
        while True:
            url, redirects = await self.queue.get()
            try:
                await self.fetch(session, url, redirects)
            finally:
                self.queue.task_done()

    async def fetch(self, session: aiohttp.ClientSession, url: str, redirects: int) -> None:
        """Ask for one URL and queue where it leads."""
        for _ in range(self.max_tries):
            try:
                async with session.get(url, allow_redirects=False) as response:
                    await self.follow(response, url, redirects)
                return
            except (aiohttp.ClientError, TimeoutError):
                continue
        self.statuses[url] = 0

    async def follow(self, response: aiohttp.ClientResponse, url: str, redirects: int) -> None:
        """Queue the target of a redirect, or the links of a page."""
        body = await response.read()
        self.statuses[url] = response.status
        if response.status in REDIRECTS and "location" in response.headers:
            if redirects > 0:
                self.add(urljoin(url, response.headers["location"]), redirects - 1)
        elif response.status == 200 and response.content_type == "text/html":
            text = body.decode(response.charset or "utf-8", "replace")
            for href in set(LINK.findall(text)):
                self.add(urljoin(url, href), self.max_redirects)

    def add(self, url: str, redirects: int) -> None:
        """Queue a URL of this host that was not seen before."""
        url = urldefrag(url).url
        if url not in self.seen and urlsplit(url).netloc == self.host:
            self.seen.add(url)
            self.queue.put_nowait((url, redirects))


def run(crawler: Crawler, workers: str) -> None:
    """Crawl, and print what `peers.py` reads."""
    start_up, wall = time.process_time(), time.perf_counter()
    asyncio.run(crawler.crawl(int(workers)))
    wall = time.perf_counter() - wall
    failed = list(crawler.statuses.values()).count(0)
    tell(len(crawler.statuses), failed, start_up, wall, crawler.statuses)


if __name__ == "__main__":
    run(Crawler(sys.argv[1]), sys.argv[2])
