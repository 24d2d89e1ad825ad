"""Count what a URL calls, as the mean of a whole crawl in memory.

    python tests/bench/path.py [--calls]

The site has 400 pages of HTML, each with five links to new pages and five to known ones, and a
robots.txt; all else is as by default. Counted is what Python calls in the package between the
first outcome and the last, how often the next call is in another file, and the files that are
called for at least every second URL. With `--calls` the functions are printed that are called as
often, with their calls for a URL.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import trio

import trio_crawler
from trio_crawler import Crawler, Job, Response
from trio_crawler.testing import html, robots

PACKAGE = Path(trio_crawler.__file__).parent
SITE = "http://e.test/"
PAGES, LINKS = 400, 5


class Steps(NamedTuple):
    """What a URL calls: calls, changes of file, files; and the calls of each function."""

    calls: float
    changes: float
    files: int
    functions: dict[tuple[str, str], float]


def site() -> dict[str, Response]:
    """Return a tree of pages, by their URLs."""
    pages = {f"{SITE}robots.txt": robots("User-agent: *", "Disallow: /private")}
    for page in range(PAGES):
        below = [f"/{each}" for each in range(page * LINKS + 1, page * LINKS + 1 + LINKS)]
        known = [f"/{each}" for each in range(max(1, page - LINKS), page + 1)][:LINKS]
        links = [link for link in below if int(link[1:]) < PAGES]
        pages[f"{SITE}{page or ''}"] = html(*links, *known, title=f"Page {page}")
    return pages


def measured() -> Steps:
    """Crawl the site, and return what a URL of it calls."""
    calls: Counter[tuple[str, str]] = Counter()
    changes, last, pages = 0, "", site()

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal changes, last
        code = frame.f_code
        path = Path(code.co_filename)
        if event != "call" or PACKAGE not in path.parents:
            return
        file = str(path.relative_to(PACKAGE))
        calls[file, code.co_qualname] += 1
        changes += file != last
        last = file

    async def fetch(job: Job) -> Response:
        await trio.lowlevel.checkpoint()
        return pages[job.url]

    async def main() -> int:
        urls = 0
        async with Crawler([SITE], fetch=fetch).outcomes() as outcomes:
            async for _ in outcomes:
                urls += 1
                sys.setprofile(note)
            sys.setprofile(None)
        return urls - 1

    try:
        urls = trio.run(main)
    finally:
        sys.setprofile(None)
    by_file: Counter[str] = Counter()
    for (file, _), times in calls.items():
        by_file[file] += times
    files = sum(times * 2 >= urls for times in by_file.values())
    often = {name: times / urls for name, times in calls.items() if times * 2 >= urls}
    return Steps(calls.total() / urls, changes / urls, files, often)


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", action="store_true", help="print the functions")
    shown = parser.parse_args().calls
    found = measured()
    for (file, name), times in sorted(found.functions.items()) if shown else ():
        print(f"{times:6.2f} {file} {name}")
    figures = f"{found.calls:.0f} calls, {found.changes:.0f} changes of file"
    print(f"{figures}, {found.files} files for every second URL")


if __name__ == "__main__":
    main()
