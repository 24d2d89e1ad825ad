"""What a crawl in memory takes for each URL, all included, as it grows from 10,000 to 1,000,000.

    python tests/bench/memory.py [--urls 10000 100000 1000000] [--how library report command]
                                 [--site tree mesh]

Needs `pip install -e .` (or PYTHONPATH=.) and Linux. One host, ten workers, no traps, no `-o`.
Each row is a process of its own. `library` is a `Crawler` with a fetch that makes the pages;
`report` is the same with the report that the command prints, whose `add` gets every outcome.
`command` is the command at a server on the loopback device (the site of `slow.py`, whatever
--site says), with its sockets. Of the sites, a page of `tree` has ten links to new pages and three
back, so that nine of ten URLs wait for long. A page of `mesh` has 20 links to any pages of the
site: after a tenth of the crawl nearly all URLs are known, and the report must keep up to five
links a URL, since their targets may turn out to be broken.

"peak" is the most memory that the process had in use. "bytes a URL" is what that is above the peak
of the first row, the smallest crawl, divided by the URLs that it has more. "CPU" is microseconds a
URL, start-up not included, but with the making of the pages in `library` and `report`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import httpx
import trio
from measure import CLIENT, HERE, SERVER, load, pinned, port, started

from trio_crawler import Crawler, Job, Politeness, Response, Traps
from trio_crawler.report import CrawlFacts, Report

WORKERS = 10
FEW, MANY = 10, 20
"""New links of a page of the tree, and links of a page of the mesh."""

SITE = "https://docs.example.org/reference/library/chapter-"
HTML = httpx.Headers({"content-type": "text/html; charset=utf-8"})
HOWS, SITES = ("library", "report", "command"), ("tree", "mesh")


class Cost(NamedTuple):
    """Say what one crawl took: bytes, and seconds of CPU."""

    urls: int
    peak: int
    cpu: float


def url_of(number: int) -> str:
    """Make a URL of a usual length."""
    return f"{SITE}{number:07}.html"


def links_of(site: str, number: int, count: int) -> list[int]:
    """Return the pages that a page links to."""
    if site == "tree":
        back = [number // FEW, number // 2, number // 3]
        return [*back, *range(FEW * number + 1, min(FEW * number + FEW + 1, count))]
    chance = random.Random(number)
    return [(number + 1) % count, *(chance.randrange(count) for _ in range(MANY - 1))]


def fetch_of(site: str, count: int) -> Callable[[Job], Awaitable[Response]]:
    """Return a fetch that makes the pages of a site and answers at once."""

    async def fetch(job: Job) -> Response:
        number = int(job.url[len(SITE) :].removesuffix(".html"))
        pages = links_of(site, number, count)
        links = "".join(f'<a href="{url_of(page)}">{page}</a>' for page in pages)
        body = f"<!doctype html><title>{number}</title><p>Page {number}: {links}"
        return Response(200, HTML, body.encode())

    return fetch


def crawl(site: str, how: str, count: int) -> Cost:
    """Crawl in this process; return what it took."""
    politeness = Politeness(per_host=WORKERS, robots=False)
    crawler = Crawler(
        [url_of(0)],
        workers=WORKERS,
        fetch=fetch_of(site, count),
        politeness=politeness,
        traps=Traps.off(),
    )
    report = Report() if how == "report" else None

    async def consume() -> None:
        async with crawler.outcomes() as outcomes:
            async for outcome in outcomes:
                if report is not None:
                    report.add(outcome)

    begun = time.process_time()
    trio.run(consume)
    if report is not None:
        seeds = crawler.plan.seeds
        facts = CrawlFacts(crawler.statistics(), WORKERS, seeds=seeds, hosts=crawler.hosts)
        report.text(facts)
    cpu = time.process_time() - begun
    if crawler.statistics().pages != count:
        sys.exit(f"{crawler.statistics().pages} pages of {count} came")
    status = Path("/proc/self/status").read_text()
    return Cost(count, int(status.split("VmHWM:")[1].split()[0]) * 1024, cpu)


def measured(site: str, how: str, count: int) -> Cost:
    """Crawl in a process of its own; return what it took."""
    if how == "command":
        return commanded(count)
    command = [sys.executable, __file__, "--row", site, how, str(count)]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return Cost(*json.loads(run.stdout))


def commanded(count: int) -> Cost:
    """Let the command crawl a server; return what it took."""
    never = count + 1
    server = (sys.executable, HERE / "slow_server.py", count, 0, never, never, "127.0.0.1")
    with started(SERVER, *server) as running:
        options = ["--max-tasks", str(WORKERS), "--per-host", str(WORKERS), "--no-traps"]
        url = f"http://127.0.0.1:{port(running)}/0"
        child = subprocess.Popen(
            [sys.executable, "-m", "trio_crawler", url, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            preexec_fn=pinned(CLIENT),
        )
        assert child.stdout is not None
        with child.stdout as pipe:
            said = pipe.read()
        # Not `child.wait`: only wait4 says what the process used.
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode or f"admitted {count:,} = {count:,} pages" not in said:
        sys.exit(f"the command ended with {child.returncode}: {said[-500:]}")
    return Cost(count, usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime)


def growth(smallest: Cost, cost: Cost) -> float:
    """Return how many bytes each further URL takes in a larger crawl."""
    return (cost.peak - smallest.peak) / (cost.urls - smallest.urls)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description="Measure the memory of crawls that grow.")
    parser.add_argument("--urls", nargs="+", type=int, default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--how", nargs="+", choices=HOWS, default=list(HOWS))
    parser.add_argument("--site", nargs="+", choices=SITES, default=list(SITES))
    options = parser.parse_args()
    print(load())
    print(f"{'site':8}{'how':9}{'URLs':>11}{'peak MiB':>10}{'bytes a URL':>13}{'CPU us':>8}")
    cases = [(site, how) for how in options.how if how != "command" for site in options.site]
    if "command" in options.how:
        cases.append(("slow.py", "command"))
    for site, how in cases:
        costs = []
        for count in sorted(options.urls):
            costs.append(cost := measured(site, how, count))
            each = "" if len(costs) == 1 else f"{growth(costs[0], cost):.0f}"
            row = f"{site:8}{how:9}{count:11,}{cost.peak / 2**20:10.1f}{each:>13}"
            print(f"{row}{cost.cpu / count * 1e6:8.0f}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--row"]:
        print(json.dumps(crawl(sys.argv[2], sys.argv[3], int(sys.argv[4]))))
    else:
        main()
