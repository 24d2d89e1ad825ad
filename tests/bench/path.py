"""Count the calls of one URL, from the settlement of its parent to its outcome; no network.

    python tests/bench/path.py [--calls]

Counted is what Python calls in the package, and how often the next call is in another file. The
page is of HTML, has a title, and links back to the first page; robots.txt is known, and all
else is as by default. With `--calls` each call is printed.
"""

from __future__ import annotations

import argparse
import sys
from itertools import pairwise
from pathlib import Path
from types import FrameType

import httpx
import trio

import trio_crawler
from trio_crawler import Crawler, Job, Response
from trio_crawler.testing import html, robots

PACKAGE = Path(trio_crawler.__file__).parent
SITE = "http://e.test/"
PARENT, URL = f"{SITE}parent", f"{SITE}page"
PAGE = Response(
    200,
    httpx.Headers({"content-type": "text/html; charset=utf-8"}),
    b"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>A page</title></head>
<body><h1>A page</h1><p>Back to the <a href="/">beginning</a>.</p></body>
</html>
""",
)


def followed() -> list[tuple[str, str]]:
    """Return the file and the name of each function that is called on the way of the URL."""
    calls: list[tuple[str, str]] = []
    begun = False

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal begun
        code = frame.f_code
        path = Path(code.co_filename)
        if event != "call" or PACKAGE not in path.parents:
            return
        if code.co_name == "settle":
            begun = begun or frame.f_locals["settlement"].job.url == PARENT
        if begun:
            calls.append((str(path.relative_to(PACKAGE)), code.co_qualname))

    async def main() -> None:
        pages = {SITE: html(PARENT), PARENT: html(URL), URL: PAGE}
        pages[f"{SITE}robots.txt"] = robots("/private")

        async def fetch(job: Job) -> Response:
            await trio.lowlevel.checkpoint()
            return pages[job.url]

        crawler = Crawler([SITE], fetch=fetch)
        async with crawler.outcomes() as outcomes:
            sys.setprofile(note)
            async for outcome in outcomes:
                if outcome.url == URL:
                    break
            sys.setprofile(None)

    try:
        trio.run(main)
    finally:
        sys.setprofile(None)
    return calls


def changes(calls: list[tuple[str, str]]) -> int:
    """Return how often a call is in another file than the one before."""
    return sum(before != after for (before, _), (after, _) in pairwise(calls))


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", action="store_true", help="print each call")
    shown = parser.parse_args().calls
    calls = followed()
    for path, name in calls if shown else ():
        print(path, name)
    files = {path for path, _ in calls}
    figures = f"{len(calls)} calls, {len(set(calls))} functions, {len(files)} files"
    print(f"{figures}, {changes(calls)} changes of file")


if __name__ == "__main__":
    main()
