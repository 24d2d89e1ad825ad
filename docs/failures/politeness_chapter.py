"""Be polite where the chapter leaves room for it: in the worker."""

from __future__ import annotations

import asyncio
from collections import Counter
from urllib.parse import urlsplit

from chapter import Crawler

from sites.hosts import REST, answer, urls
from virtual import run_asyncio, visitor


class Polite(Crawler):
    async def fetch(self, url: str, max_redirect: int) -> None:
        host = urlsplit(url).hostname or ""
        now = asyncio.get_running_loop().time()
        start = max(now, self.free[host])  # (1)
        self.free[host] = start + REST[host]
        await asyncio.sleep(start - now)  # (2)
        await super().fetch(url, max_redirect)
        self.ended[host] = asyncio.get_running_loop().time()


async def main() -> None:
    client, _site = visitor(answer)
    crawler = Polite(client, "http://fast/")
    crawler.free, crawler.ended = Counter(), {}
    for url in urls():
        crawler.add({url}, 0)
    await crawler.crawl()
    for host, ended in sorted(crawler.ended.items()):
        print(f"{host}: over after {ended:.1f} s")


if __name__ == "__main__":
    run_asyncio(main)
