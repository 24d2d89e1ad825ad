"""The crawl of `ours_crawler.py` in a crawl directory, `lasting_crawler.py URL [URL ...] N`.

    PYTHONPATH=. python tests/bench/lasting_crawler.py http://127.0.0.1:8000/ 10

Everything lasts: outcomes, links with their texts, what waits. The directory is gone at the end;
it is in the one for temporary files, or in BENCH_DIR. With BENCH_ANCHORS=0 links have no texts.
"""

from __future__ import annotations

import os
import sys
import time
from tempfile import TemporaryDirectory

import trio
from tell import tell

from trio_crawler import Crawler, Politeness, SqliteFrontier, Statistics


def main(*arguments: str) -> None:
    """Crawl, and print what `peers.py` reads."""
    *seeds, workers = arguments
    start_up, wall = time.process_time(), time.perf_counter()
    with TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as directory:
        totals = trio.run(crawled, directory, seeds, int(workers))
    wall = time.perf_counter() - wall
    tell(totals.admitted, totals.failures + totals.retries, start_up, wall, {})


async def crawled(directory: str, seeds: list[str], workers: int) -> Statistics:
    """Crawl into a directory."""
    politeness = Politeness(per_host=workers, nofollow=False)
    anchors = os.environ.get("BENCH_ANCHORS") != "0"
    async with SqliteFrontier(directory) as frontier:
        crawler = Crawler(
            seeds, workers=workers, politeness=politeness, frontier=frontier, anchors=anchors
        )
        return await crawler.crawl()


if __name__ == "__main__":
    main(*sys.argv[1:])
