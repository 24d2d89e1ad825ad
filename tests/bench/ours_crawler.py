"""Our crawler with every default on but two, `ours_crawler.py URL [URL ...] N`.

Others do not limit the requests to one host, and follow what is marked as not to be followed.

    PYTHONPATH=. python tests/bench/ours_crawler.py http://127.0.0.1:8000/ 10

With BENCH_ANCHORS=1 in the environment links have texts, as they have in `lasting_crawler.py`.
With BENCH_TRAPS=0 no URL is left out because a site seems endless, as one of 1,000,000 pages may.
With BENCH_FOUND it says which URLs it found, and is not to be measured.
"""

from __future__ import annotations

import os
import sys
import time

import trio
from tell import tell

from trio_crawler import Crawler, Page, Politeness, Redirect, Traps


def main(*arguments: str) -> None:
    """Crawl, and print what `peers.py` reads."""
    *seeds, workers = arguments
    politeness = Politeness(per_host=int(workers), nofollow=False)
    anchors = os.environ.get("BENCH_ANCHORS") == "1"
    traps = Traps.off() if os.environ.get("BENCH_TRAPS") == "0" else None
    crawler = Crawler(
        seeds, workers=int(workers), politeness=politeness, anchors=anchors, traps=traps
    )
    found: dict[str, int] = {}
    start_up, wall = time.process_time(), time.perf_counter()
    if "BENCH_FOUND" in os.environ:
        trio.run(listed, crawler, found)
    else:
        trio.run(crawler.crawl)
    wall = time.perf_counter() - wall
    totals = crawler.statistics()
    tell(totals.admitted, totals.failures + totals.retries, start_up, wall, found)


async def listed(crawler: Crawler, found: dict[str, int]) -> None:
    """Note the status of every URL, 0 where no response came."""
    async with crawler.outcomes() as outcomes:
        async for outcome in outcomes:
            found[outcome.url] = outcome.status if isinstance(outcome, Page | Redirect) else 0


if __name__ == "__main__":
    main(*sys.argv[1:])
