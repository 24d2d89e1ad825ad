"""Measure what a crawl by several workers costs: CPU of the server and of the workers, and calls.

    python tests/bench/shared.py [--workers N] [--shape HOSTSxPAGES ...]

Each worker has 64 tasks and a directory, and fetches from memory: an answer comes at once, with
four links below it. Beside the workers the same pages are crawled by one process with a directory
of its own. Printed are, for each shape: microseconds of CPU a URL of the server, of the workers,
and of the crawl alone; the ratio of these two; the calls a URL; and the most memory of a worker.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import trio
from sites import valkey

from trio_crawler import Crawler, Job, Politeness, Response, SqliteFrontier, Traps
from trio_crawler.shared import SharedFrontier, opened_store
from trio_crawler.testing import html

TASKS = 64
SHAPES = ["20x500", "3000x3"]


class Counted:
    """A store that counts its calls."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.calls = 0

    async def call(self, command: str, message: bytes) -> bytes:
        self.calls += 1
        reply: bytes = await self._store.call(command, message)
        return reply


async def work(url: str, home: Path, hosts: int, pages: int) -> dict[str, float]:
    """Crawl as one worker, or alone if there is no server; return the figures."""
    answers = [
        html(*(f"/{each}" for each in range(4 * page + 1, 4 * page + 5) if each < pages))
        for page in range(pages)
    ]

    async def fetch(job: Job) -> Response:
        await trio.lowlevel.checkpoint()
        return answers[int(job.url.rpartition("/")[2])]

    seeds = [f"http://h{host}.test/0" for host in range(hosts)]

    async def crawled(frontier: Any) -> int:
        crawler = Crawler(
            seeds,
            frontier=frontier,
            fetch=fetch,
            workers=TASKS,
            politeness=Politeness(per_host=TASKS, robots=False),
            traps=Traps.off(),
        )
        return (await crawler.crawl()).pages

    began = time.process_time()
    calls = 0
    if url == "-":
        async with SqliteFrontier(home) as lasting:
            urls = await crawled(lasting)
    else:
        async with opened_store(url, "bench") as store:
            counted = Counted(store)
            async with SharedFrontier(counted, meaning={}, directory=home) as frontier:
                urls = await crawled(frontier)
        calls = counted.calls
    cpu = time.process_time() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"urls": urls, "cpu": cpu, "calls": calls, "memory": memory}


def run(words: list[str], count: int, home: Path, shape: str) -> list[dict[str, float]]:
    """Run so many processes of this program at once; return their figures."""
    started = [
        subprocess.Popen(
            [sys.executable, __file__, "--work", *words, str(home / f"w{each}"), shape],
            stdout=subprocess.PIPE,
        )
        for each in range(count)
    ]
    return [json.loads(each.communicate(timeout=600)[0]) for each in started]


def cpu_of(url: str) -> float:
    """Return the CPU seconds that the server has taken."""

    async def asked() -> float:
        async with opened_store(url, "bench") as store:
            about = await store._client.info("cpu")
        return float(about["used_cpu_user"]) + float(about["used_cpu_sys"])

    return trio.run(asked)


def main() -> None:
    """Run by the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--shape", action="append")
    parser.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work is not None:
        url, home, shape = given.work
        print(json.dumps(trio.run(work, url, Path(home), *map(int, shape.split("x")))))
        return
    print("shape, server us, workers us, alone us, workers/alone, calls a URL, MiB a worker")
    for shape in given.shape or SHAPES:
        with TemporaryDirectory(prefix="b") as name:
            home = Path(name)
            for part in ("store", "alone", "shared"):
                (home / part).mkdir()
            (alone,) = run(["-"], 1, home / "alone", shape)
            with valkey.server(home / "store") as url:
                before = cpu_of(url)
                found = run([url], given.workers, home / "shared", shape)
                server = cpu_of(url) - before
            urls = sum(each["urls"] for each in found)
            assert urls == alone["urls"], "each URL has one outcome"
            mine, own = (sum(each["cpu"] for each in group) / urls for group in (found, [alone]))
            calls = sum(each["calls"] for each in found) / urls
            memory = max(each["memory"] for each in found)
            print(
                f"{shape}, {server / urls * 1e6:.0f}, {mine * 1e6:.0f}, {own * 1e6:.0f}, "
                f"{mine / own:.2f}, {calls:.3f}, {memory:.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
