"""Crawl a broad web that `broad_server.py` serves, by ours or by Scrapy: `broad_client.py TASK`.

Started by `broad.py`; TASK is JSON. The names of the web are looked up by a `socket.getaddrinfo`
of our own, which blocks its thread as that of the system would: until a name that is silent is
given up. It prints one line of JSON at its end.
"""

from __future__ import annotations

import json
import resource
import socket
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from sites.broad import BroadWeb, Kind

HERE, NOBODY, GARBAGE = "127.0.0.1", "127.0.0.2", "127.0.0.3"
SUFFIX = ".broad.test"
_getaddrinfo = socket.getaddrinfo


def look_up_in(web: BroadWeb) -> None:
    """Look up the names of the web from now on, in the time that it takes there."""

    def getaddrinfo(host: Any, port: Any, *more: Any, **how: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if not (name and name.endswith(SUFFIX)):
            return _getaddrinfo(host, port, *more, **how)
        failing = web.failing_lookup(name)
        if failing is not None:
            time.sleep(failing.seconds)
            raise socket.gaierror(failing.number, "made by the benchmark")
        places = {Kind.REFUSED: NOBODY, Kind.GARBAGE: GARBAGE}
        address = places.get(web.host(name).kind, HERE)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, int(port or 0)))]

    def gethostbyname(host: str) -> str:
        found: str = getaddrinfo(host, 0)[0][4][0]
        return found

    socket.getaddrinfo, socket.gethostbyname = getaddrinfo, gethostbyname


def ours(web: BroadWeb, task: dict[str, Any]) -> dict[str, Any]:
    """Crawl with every default but the scope, and what the task says."""
    import trio

    from trio_crawler import Crawler, HttpFetch, Page, Politeness, Traps

    pages: set[str] = set()

    async def crawl() -> dict[str, Any]:
        politeness = Politeness(patience=task["patience"])
        traps = Traps() if task["traps"] else Traps.off()
        async with HttpFetch(
            allow_private=["127.0.0.0/8"], cacert=task["authority"], timeout=task["timeout"]
        ) as fetch:
            # The hosts of this web stand for machines of their own.
            fetch.addresses = lambda url: ()  # type: ignore[method-assign]
            crawler = Crawler(
                web.seeds,
                scope=lambda job: True,
                workers=task["workers"],
                fetch=fetch,
                politeness=politeness,
                traps=traps,
            )
            with trio.move_on_after(task["seconds"]) as scope:
                async with crawler.outcomes() as outcomes:
                    async for outcome in outcomes:
                        if isinstance(outcome, Page) and outcome.ok:
                            pages.add(outcome.url)
            totals, wire = crawler.statistics(), fetch.statistics().wire
        ended = totals.pages + totals.redirects + totals.failures + totals.skipped
        return {
            "ended": not scope.cancelled_caught,
            "account": totals.admitted == ended + totals.in_flight + totals.waiting,
            "connections": None if wire is None else wire.made,
        }

    return {**trio.run(crawl), "lost": sum(url not in pages for url in web.wanted())}


def scrapy(web: BroadWeb, task: dict[str, Any]) -> dict[str, Any]:
    """Crawl with Scrapy's settings for broad crawls, four requests at once to a host."""
    from scrapy import Spider
    from scrapy.crawler import CrawlerProcess
    from scrapy.http import TextResponse

    pages: set[str] = set()

    class Broad(Spider):
        name = "broad"
        start_urls = web.seeds

        def parse(self, response: Any) -> Any:
            if response.status == 200 and isinstance(response, TextResponse):
                pages.add(response.url)
                for href in response.css("a::attr(href)").getall():
                    yield response.follow(href, self.parse)

    process = CrawlerProcess(
        {
            "LOG_LEVEL": "CRITICAL",
            "CONCURRENT_REQUESTS": task["workers"],
            "CONCURRENT_REQUESTS_PER_DOMAIN": 4,
            "DOWNLOAD_DELAY": 0,
            "DOWNLOAD_TIMEOUT": task["timeout"],
            "RETRY_TIMES": 3,
            "ROBOTSTXT_OBEY": True,
            "COOKIES_ENABLED": False,
            "REACTOR_THREADPOOL_MAXSIZE": 32,
            "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue",
            "CLOSESPIDER_TIMEOUT": task["seconds"] if task["seconds"] < 10**6 else 0,
        }
    )
    crawler = process.create_crawler(Broad)
    process.crawl(crawler)
    process.start()
    ended = crawler.stats.get_value("finish_reason") == "finished"
    return {"ended": ended, "lost": sum(url not in pages for url in web.wanted())}


def main(given: str) -> None:
    """Crawl, and print what it cost."""
    task = json.loads(given)
    web = BroadWeb(**task["web"])
    look_up_in(web)
    if task["files"]:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (task["files"], hard))
    start_up, wall = time.process_time(), time.perf_counter()
    found = {"ours": ours, "scrapy": scrapy}[task["peer"]](web, task)
    wall = time.perf_counter() - wall
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cpu = usage.ru_utime + usage.ru_stime - start_up
    print(json.dumps({**found, "wall": wall, "cpu": cpu, "peak_kib": usage.ru_maxrss}))


if __name__ == "__main__":
    main(sys.argv[1])
