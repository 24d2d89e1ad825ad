"""The chapter's design on aiohttp with good link finding, `fast_crawler.py URL N`.

    python tests/bench/fast_crawler.py http://127.0.0.1:8000/ 10

As `chapter_crawler.py`, but the links are found by lexbor and resolved as those of `raw` are. A
crawler of some hundred lines on asyncio becomes as cheap as this by its links alone.
"""

from __future__ import annotations

import sys

import aiohttp
from chapter_crawler import Crawler, run
from outlinks import REDIRECTS, outlinks, resolved


class FastCrawler(Crawler):
    """Fetch every URL of one host, each once."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.below = f"http://{self.host}/"

    async def follow(self, response: aiohttp.ClientResponse, url: str, redirects: int) -> None:
        """Queue the target of a redirect, or the links of a page."""
        body = await response.read()
        self.statuses[url] = response.status
        if response.status in REDIRECTS and "location" in response.headers:
            if redirects > 0:
                self.admit(
                    resolved([response.headers["location"]], url, self.below), redirects - 1
                )
        elif response.status == 200 and response.content_type == "text/html":
            self.admit(outlinks(body, url, self.below), self.max_redirects)

    def admit(self, urls: set[str], redirects: int) -> None:
        """Queue those that were not seen before."""
        fresh = urls - self.seen
        self.seen |= fresh
        for url in fresh:
            self.queue.put_nowait((url, redirects))


if __name__ == "__main__":
    run(FastCrawler(sys.argv[1]), sys.argv[2])
