"""Measure for how long the event loop is held, by a crawl in memory and by one that lasts.

    python tests/bench/held.py [--root DIRECTORY] [--workers 10] [--rounds 3]

Needs `pip install -e .`. A heartbeat notes how late it comes: what held the loop meanwhile is
some task, or a thread that did not let go of the interpreter. What the store itself does to it is
the difference between the two crawls; a page of 200 KB takes some 10 ms in either.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import trio
from measure import serving

from trio_crawler import Crawler, MemoryFrontier, Politeness, SqliteFrontier

BEAT = 0.001
"""Seconds from one beat to the next."""

PROMISED = 0.02


class Heartbeat:
    """Note how much later than it should a task goes on, in `gaps`, in seconds."""

    def __init__(self) -> None:
        self.gaps: list[float] = []

    @property
    def longest(self) -> float:
        """Return the longest."""
        return max(self.gaps, default=0.0)

    async def beat(self) -> None:
        """Beat until cancelled."""
        while True:
            before = time.perf_counter()
            await trio.sleep(BEAT)
            self.gaps.append(time.perf_counter() - before - BEAT)

    def told(self) -> str:
        """Say the longest gaps, and how many were longer than promised."""
        last = " ".join(f"{1000 * gap:.0f}" for gap in sorted(self.gaps)[:-6:-1])
        over = sum(gap > PROMISED for gap in self.gaps)
        ranked = sorted(self.gaps)
        late = ranked[math.floor(0.999 * len(ranked))] if ranked else 0.0
        return f"{last} ms; {over} over 20 ms of {len(ranked)}; 99.9 %: {1000 * late:.1f} ms"


async def crawled(url: str, workers: int, directory: str | None) -> None:
    """Crawl, and print the longest gaps."""
    politeness = Politeness(per_host=workers, nofollow=False)
    heartbeat = Heartbeat()
    async with trio.open_nursery() as nursery:
        if directory is None:
            frontier = MemoryFrontier()
            nursery.start_soon(heartbeat.beat)
            await _crawl(url, workers, politeness, frontier)
        else:
            async with SqliteFrontier(directory) as lasting:
                nursery.start_soon(heartbeat.beat)
                await _crawl(url, workers, politeness, lasting)
        nursery.cancel_scope.cancel()
    print(heartbeat.told(), flush=True)


async def _crawl(
    url: str, workers: int, politeness: Politeness, frontier: MemoryFrontier | SqliteFrontier
) -> None:
    crawler = Crawler(
        [url], workers=workers, politeness=politeness, frontier=frontier, anchors=True
    )
    await crawler.crawl()


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default="/usr/share/doc/linux-doc-6.1/html")
    parser.add_argument("--workers", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--lasting", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.url and asked.lasting:
        with tempfile.TemporaryDirectory() as directory:
            trio.run(crawled, asked.url, asked.workers, directory)
    elif asked.url:
        trio.run(crawled, asked.url, asked.workers, None)
    else:
        _in_turns(asked)


def _in_turns(asked: argparse.Namespace) -> None:
    with serving(Path(asked.root)) as (_, url):
        for _ in range(asked.rounds):
            for how in ([], ["--lasting"]):
                print(f"{'lasting' if how else 'memory':8}", end="", flush=True)
                command = [sys.executable, __file__, "--url", url, "--workers"]
                subprocess.run([*command, str(asked.workers), *how], check=True)


if __name__ == "__main__":
    main()
