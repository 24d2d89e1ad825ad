"""Measure what a crawl by several workers costs: CPU of the server and of the workers, and calls.

    python tests/bench/shared.py [--workers N] [--shape HOSTSxPAGES ...]

Each worker has 64 tasks and a directory, and fetches from memory: an answer comes at once, with
four links below it. The first one tells the seeds. Beside the workers the same pages are crawled
by one process with a directory of its own. Printed are, for each shape: microseconds of CPU a URL
of the server, of the workers, and of the crawl alone; the ratio of these two; the calls a URL; by
what the memory of the workers grew, and of the crawl alone; and the memory of the server, at its
most and at the end, when nothing waits any more. Memory is in bytes a URL. The import of the
client, which takes a worker 0.2 s, is not counted.
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
FIRST = "w0"
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

    import coredis  # noqa: F401 - its time is not that of URLs

    began, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    calls = 0
    if url == "-":
        async with SqliteFrontier(home) as lasting:
            urls = await crawled(lasting)
    else:
        async with opened_store(url, "bench") as store:
            counted = Counted(store)
            about = {"meaning": {}, "directory": home, "seeds": home.name == FIRST}
            async with SharedFrontier(counted, **about) as frontier:
                urls = await crawled(frontier)
        calls = counted.calls
    cpu = time.process_time() - began
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
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


def told_by(url: str) -> dict[str, Any]:
    """Return what the server tells of itself."""

    async def asked() -> dict[str, Any]:
        async with opened_store(url, "bench") as store:
            return dict(await store._client.info())

    return trio.run(asked)


def cpu_of(told: dict[str, Any]) -> float:
    return float(told["used_cpu_user"]) + float(told["used_cpu_sys"])


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
    print(
        "shape, server us, workers us, alone us, workers/alone, calls a URL, worker bytes, "
        "alone bytes, server bytes at most, server bytes at the end"
    )
    for shape in given.shape or SHAPES:
        with TemporaryDirectory(prefix="b") as name:
            home = Path(name)
            for part in ("store", "alone", "shared"):
                (home / part).mkdir()
            (alone,) = run(["-"], 1, home / "alone", shape)
            with valkey.server(home / "store") as url:
                before = told_by(url)
                found = run([url], given.workers, home / "shared", shape)
                after = told_by(url)
            urls = sum(each["urls"] for each in found)
            assert urls == alone["urls"], "each URL has one outcome"
            mine, own = (sum(each["cpu"] for each in group) / urls for group in (found, [alone]))
            calls = sum(each["calls"] for each in found) / urls
            server = cpu_of(after) - cpu_of(before)
            bytes_ = [
                sum(each["memory"] for each in found),
                alone["memory"],
                after["used_memory_peak"] - before["used_memory"],
                after["used_memory"] - before["used_memory"],
            ]
            memory = ", ".join(f"{each / urls:.0f}" for each in bytes_)
            print(
                f"{shape}, {server / urls * 1e6:.0f}, {mine * 1e6:.0f}, {own * 1e6:.0f}, "
                f"{mine / own:.2f}, {calls:.3f}, {memory}",
                flush=True,
            )


if __name__ == "__main__":
    main()
