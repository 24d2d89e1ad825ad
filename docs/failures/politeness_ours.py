"""`trio_crawler` on the same hosts: the slow one says its rest in robots.txt."""

from __future__ import annotations

from urllib.parse import urlsplit

import trio
from trio_crawler import Crawler
from trio_crawler.testing import Web, html, robots

from sites.hosts import urls
from virtual import run_trio


async def main() -> None:
    site = {url: html(title=url) for url in urls()}
    site["http://slow/robots.txt"] = robots("User-agent: *", "Crawl-delay: 10")
    web = Web(site, delay=0.1)
    crawler = Crawler(urls(), fetch=web)
    ended = {}
    async with crawler.outcomes() as outcomes:
        async for outcome in outcomes:
            ended[urlsplit(outcome.url).hostname] = trio.current_time()
    for host, seconds in sorted(ended.items()):
        print(f"{host}: over after {seconds:.1f} s")


if __name__ == "__main__":
    run_trio(main)
