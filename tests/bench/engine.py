"""Measure the engine alone: no network, a fetch that answers at once.

    python tests/bench/engine.py [--urls 20000] [--waiting 200000] [--rounds 3]

Needs `pip install -e .` (or PYTHONPATH=.).

`bare`: every URL is a seed and no body is HTML, so this is the cost of the workers, the
channels, the frontier and the records. `tree`: one seed, 50 links a page; `reading` is what
`trio_crawler.page.read` takes of it, measured apart. Then the memory of URLs that wait, by
tracemalloc and by resident size, in processes of their own.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median

import httpx
import trio
import trio.testing

from trio_crawler import Crawler, Politeness, Traps
from trio_crawler.frontier import Plan
from trio_crawler.frontier.memory import MemoryFrontier
from trio_crawler.model import Job, Response
from trio_crawler.page.read import read

SITE = "https://docs.example.org/reference/library/chapter-"
LINKS = 50
HTML = httpx.Headers({"content-type": "text/html; charset=utf-8"})
BYTES = httpx.Headers({"content-type": "application/octet-stream"})


@dataclass(frozen=True)
class Site:
    """Hold a site as the answers to its URLs, made before the clock runs."""

    name: str
    seeds: list[str]
    answers: dict[str, Response]

    async def fetch(self, job: Job) -> Response:
        """Answer at once."""
        return self.answers[job.url]

    def crawl(self, workers: int) -> tuple[float, float]:
        """Crawl once; return the seconds by the wall and of CPU."""
        politeness = Politeness(per_host=workers, robots=False)
        crawler = Crawler(
            self.seeds, workers=workers, fetch=self.fetch, politeness=politeness, traps=Traps.off()
        )
        gc.collect()
        wall, cpu = time.perf_counter(), time.process_time()
        totals = trio.run(crawler.crawl)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        if totals.pages != len(self.answers):
            sys.exit(f"{self.name}: {totals.pages} pages of {len(self.answers)} came")
        return wall, cpu

    def reading(self) -> float:
        """Return the CPU seconds that reading every body takes."""
        cpu = time.process_time()
        for url, answer in self.answers.items():
            read(answer.body, answer.headers["content-type"], url)
        return time.process_time() - cpu


def main() -> None:
    """Measure and print two tables."""
    parser = argparse.ArgumentParser(description="Measure the engine without a network.")
    parser.add_argument("--urls", type=int, default=20_000)
    parser.add_argument("--waiting", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(f"{options.urls} URLs, medians of {options.rounds} rounds; times in us of CPU per URL")
    print(f"{'site':6}{'workers':>9}{'outcomes/s':>12}{'CPU':>8}{'reading':>9}{'engine':>8}")
    for site in (bare(options.urls), tree(options.urls)):
        for workers in (10, 100, 1000):
            speed(site, workers, options.rounds)
    print(f"\n{options.waiting} URLs waiting, of {len(url_of(options.waiting))} characters")
    for how in ("traced", "resident"):
        command = [sys.executable, __file__, "--memory", how, str(options.waiting)]
        print(f"{how:10}{subprocess.check_output(command, text=True).strip():>8} bytes per URL")


def speed(site: Site, workers: int, rounds: int) -> None:
    """Print one row."""
    count = len(site.answers)
    runs = [site.crawl(workers) for _ in range(rounds)]
    reading = median(site.reading() for _ in range(rounds)) / count * 1e6
    cpu = median(cpu for _, cpu in runs) / count * 1e6
    outcomes = count / median(wall for wall, _ in runs)
    print(f"{site.name:6}{workers:9}{outcomes:12,.0f}{cpu:8.1f}{reading:9.1f}{cpu - reading:8.1f}")


def bare(count: int) -> Site:
    """Make a site of `count` seeds that lead nowhere."""
    answers = {url_of(number): Response(200, BYTES, b"\x00") for number in range(count)}
    return Site("bare", list(answers), answers)


def tree(count: int) -> Site:
    """Make a site in which page n links to the pages 50 n + 1 to 50 n + 50."""
    answers = {url_of(number): Response(200, HTML, page(number, count)) for number in range(count)}
    return Site("tree", [url_of(0)], answers)


def page(number: int, count: int) -> bytes:
    """Make one page of the tree; most are leaves."""
    below = range(LINKS * number + 1, min(LINKS * number + LINKS + 1, count))
    links = "".join(f'<a href="{url_of(child)}">{child}</a>' for child in below)
    return f"<!doctype html><title>{number}</title><p>{links}".encode()


def url_of(number: int) -> str:
    """Make a URL of a usual length."""
    return f"{SITE}{number:07}.html"


def waiting(count: int) -> Iterator[Job]:
    """Make the jobs of pages with 50 links each."""
    for number in range(count):
        if number % LINKS == 0:
            referrer = url_of(number // LINKS)
        yield Job(url_of(number), 1, referrer=referrer)


async def fill(jobs: Iterator[Job], how: str) -> tuple[int, int]:
    """Let jobs wait in a frontier; return the bytes in use before and then."""
    frontier = MemoryFrontier()
    await frontier.open(Plan([SITE]))
    before = in_use(how)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(frontier.run)
        await trio.testing.wait_all_tasks_blocked()
        while some := list(islice(jobs, LINKS)):
            await frontier.add(some)
        after = in_use(how)
        nursery.cancel_scope.cancel()
    return before, after


def memory(how: str, count: int) -> None:
    """Print the bytes that one waiting URL takes."""
    if how == "traced":
        tracemalloc.start()
    before, after = trio.run(fill, waiting(count), how)
    print(round((after - before) / count))


def in_use(how: str) -> int:
    """Return the bytes in use, as Python or as Linux counts them."""
    gc.collect()
    if how == "traced":
        return tracemalloc.get_traced_memory()[0]
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--memory"]:
        memory(sys.argv[2], int(sys.argv[3]))
    else:
        main()
