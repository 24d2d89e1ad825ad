"""Measure how long a crawl directory of many URLs takes until its first request is made again.

    python tests/bench/resume.py [--urls 1000000]

Needs `pip install -e .` (or PYTHONPATH=.). Once all URLs but one have ended, with pages of ten
links, and once all of them wait. Each is a process of its own; `held` is the longest time for
which the event loop did nothing else.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time

import httpx
import trio
from held import Heartbeat

from trio_crawler import Crawler, Job, Page, Politeness, Response, SqliteFrontier
from trio_crawler.store.store import Store
from trio_crawler.store.writer import Batch

SITE = "https://docs.example.org/reference/library"
LINKS = 10
PORTION = 1_000


def url(number: int) -> str:
    """Give the URL of a number: a hundred pages in a directory."""
    return f"{SITE}/{number // 100}/chapter-{number:07}.html"


def fill(directory: str, count: int, *, ended: bool) -> None:
    """Write a crawl that was cut short: the last URL waits, or all of them."""
    headers = httpx.Headers({"content-type": "text/html", "etag": '"65f1a2b3-8a00"'})
    links = tuple(map(url, range(LINKS)))
    with Store.open(directory) as store:
        for start in range(0, count, PORTION):
            batch = Batch()
            for number in range(start, start + PORTION):
                about = ("page", 3, 10, url(number // LINKS) if number else None, None)
                batch.admitted.append((number + 1, url(number), *about))
                if ended and number + 1 < count:
                    body = b"%d" % number
                    page = Page(url(number), 200, headers, body, content_type="text/html")
                    page = _with_links(page, links)
                    batch.settled.append((number + 1, 0.0, page))
            store.write(batch)


def _with_links(page: Page, links: tuple[str, ...]) -> Page:
    about = {"content_type": page.content_type, "title": "A title", "links": links}
    return Page(page.url, page.status, page.headers, page.body, **about)  # type: ignore[arg-type]


async def resumed(directory: str) -> None:
    """Go on with the crawl until the first page is asked for, and print what that took."""
    began, used = time.perf_counter(), time.process_time()
    asked = trio.Event()
    took = [0.0, 0.0]

    async def fetch(job: Job) -> Response:
        if not asked.is_set():
            took[:] = time.perf_counter() - began, time.process_time() - used
            asked.set()
        await trio.sleep_forever()
        raise AssertionError

    politeness = Politeness(robots=False)
    async with SqliteFrontier(directory) as frontier, trio.open_nursery() as nursery:
        crawler = Crawler([url(0)], fetch=fetch, frontier=frontier, politeness=politeness)
        heartbeat = Heartbeat()
        nursery.start_soon(heartbeat.beat)
        nursery.start_soon(crawler.crawl)
        await asked.wait()
        # All that was seen, and all that waits, is to be there, too.
        await crawler._engine.restored.wait()
        before = -1
        while before < (before := frontier.statistics().unsettled):  # noqa: ASYNC110 - none tells
            await trio.sleep(0.3)
        whole = time.perf_counter() - began - 0.3
        nursery.cancel_scope.cancel()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"first request after {took[0]:.2f} s ({took[1]:.2f} s of CPU), all there after "
        f"{whole:.2f} s, held for {1000 * heartbeat.longest:.0f} ms, {peak:.0f} MiB"
    )


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("directory", nargs="?", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.directory:
        trio.run(resumed, asked.directory)
        return
    for ended in (True, False):
        with tempfile.TemporaryDirectory() as directory:
            fill(directory, asked.urls, ended=ended)
            print(f"{asked.urls:,} URLs {'ended' if ended else 'wait'}: ", end="", flush=True)
            subprocess.run([sys.executable, __file__, directory], check=True)


if __name__ == "__main__":
    main()
