"""The same crawl on Scrapy, tuned, `scrapy_crawler.py URL N`.

    python tests/bench/scrapy_crawler.py http://127.0.0.1:8000/ 10

Everything that can be left out is: the middlewares, the extensions, the log, its filter of
duplicates and its selectors. The links are those of `raw`. As the manual of Scrapy has it, a
crawl costs some three times as much.
"""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Iterator

from outlinks import REDIRECTS, outlinks, resolved
from scrapy import Request, Spider
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response
from tell import tell

SETTINGS = {
    "CONCURRENT_ITEMS": 1,
    "COOKIES_ENABLED": False,
    "DOWNLOADER_MIDDLEWARES_BASE": {},
    "DOWNLOAD_DELAY": 0,
    "DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter",
    "EXTENSIONS_BASE": {},
    "LOG_ENABLED": False,
    "ROBOTSTXT_OBEY": False,
    "SPIDER_MIDDLEWARES_BASE": {},
    "STATS_CLASS": "scrapy.statscollectors.DummyStatsCollector",
    "TELNETCONSOLE_ENABLED": False,
}


class SiteSpider(Spider):
    """Fetch every URL of one host, each once; `statuses` is what came."""

    name = "site"

    def __init__(self, root: str) -> None:
        super().__init__()
        self.root = root
        self.host = root[: root.index("/", 8) + 1]
        self.statuses: dict[str, int] = {}
        self.seen = {root}

    async def start(self) -> AsyncIterator[Request]:
        """Ask for the first URL."""
        yield self.asked(self.root)

    def asked(self, url: str) -> Request:
        """Return the request for a URL."""
        return Request(url, self.parse, errback=self.failed, dont_filter=True)

    def parse(self, response: Response) -> Iterator[Request]:
        """Note a status, and ask for where the response leads."""
        url = response.request.url
        self.statuses[url] = response.status
        headers = response.headers
        fresh: set[str] = set()
        if response.status in REDIRECTS and b"Location" in headers:
            fresh = resolved([headers[b"Location"].decode("latin-1")], url, self.host)
        elif response.status == 200 and headers.get(b"Content-Type", b"").startswith(b"text/html"):
            fresh = outlinks(response.body, url, self.host)
        fresh -= self.seen
        self.seen |= fresh
        yield from map(self.asked, fresh)

    def failed(self, failure: object) -> None:
        """Leave a URL without a status."""


def main(root: str, workers: str) -> None:
    """Crawl, and print what `peers.py` reads."""
    limits = {"CONCURRENT_REQUESTS": int(workers), "CONCURRENT_REQUESTS_PER_DOMAIN": int(workers)}
    process = CrawlerProcess({**SETTINGS, **limits})
    crawler = process.create_crawler(SiteSpider)
    start_up, wall = time.process_time(), time.perf_counter()
    process.crawl(crawler, root=root)
    process.start()
    wall = time.perf_counter() - wall
    spider = crawler.spider
    statuses = dict.fromkeys(spider.seen, 0) | spider.statuses
    tell(len(statuses), len(spider.seen) - len(spider.statuses), start_up, wall, statuses)


if __name__ == "__main__":
    main(*sys.argv[1:])
