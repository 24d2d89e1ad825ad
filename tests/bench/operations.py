"""Measure the frontiers alone: how many URLs a second are admitted, taken, answered and settled.

    python tests/bench/operations.py [--urls 50000] [--workers 10] [--links 10] [--rounds 3]

Needs `pip install -e .`. Each URL is answered at once by a page without a body, that leads to
URLs of which one is new: there is no network, no robots.txt, and nothing to read.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from statistics import median

import httpx
import trio

from trio_crawler import Job, MemoryFrontier, Page, Politeness, Response, SqliteFrontier
from trio_crawler.frontier import Attempt, Plan, Settlement

HEADERS = httpx.Headers({"content-type": "text/html"})
SITE = "https://docs.example.org/reference/library/chapter-"


async def operate(
    frontier: MemoryFrontier | SqliteFrontier, urls: int, workers: int, links: int
) -> None:
    """Take all URLs through a frontier."""
    admitted = links
    seeds = [f"{SITE}{number}" for number in range(workers)]
    politeness = Politeness(per_host=workers, robots=False)
    await frontier.open(Plan(seeds, politeness=politeness, workers=workers))

    async def work() -> None:
        nonlocal admitted
        async for job in frontier.jobs:
            frontier.hosts.answered(Attempt(job, Response(200, HEADERS), 0.001))
            found = [f"{SITE}{max(0, admitted - step)}" for step in range(links)]
            if admitted < urls:
                admitted += 1
            known = frontier.known(found)
            fresh = [Job(url, job.depth + 1, 10, job.url) for url in found if url not in known]
            page = Page(job.url, 200, HEADERS, b"", links=tuple(found), depth=job.depth)
            await frontier.settle(Settlement(job, page, fresh))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(frontier.run)
        for _ in range(workers):
            nursery.start_soon(work)


def measured(lasting: bool, urls: int, workers: int, links: int) -> tuple[float, float]:
    """Return URLs a second, and microseconds of CPU a URL."""

    async def main() -> int:
        if not lasting:
            memory = MemoryFrontier()
            await operate(memory, urls, workers, links)
            return memory.statistics().admitted
        with tempfile.TemporaryDirectory() as directory:
            async with SqliteFrontier(directory) as frontier:
                await operate(frontier, urls, workers, links)
                return frontier.statistics().admitted

    wall, cpu = time.perf_counter(), time.process_time()
    count = trio.run(main)
    return count / (time.perf_counter() - wall), (time.process_time() - cpu) / count * 1e6


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--urls", type=int, default=50_000)
    parser.add_argument("--workers", type=int, default=10)
    parser.add_argument("--links", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    found: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for _ in range(asked.rounds):
        for lasting, rows in found.items():
            rows.append(measured(lasting, asked.urls, asked.workers, asked.links))
    for lasting, rows in found.items():
        name = "lasting" if lasting else "memory"
        rate, cpu = median(row[0] for row in rows), median(row[1] for row in rows)
        print(f"{name:8}{rate:8.0f} URLs a second, {cpu:6.1f} us of CPU each")


if __name__ == "__main__":
    main()
