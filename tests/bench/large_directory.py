"""Measure the report and the exports of a crawl directory of very many pages.

    python tests/bench/large_directory.py [--urls 1000000] [--rounds 1] [--directory DIR]

Needs `pip install -e .` (or PYTHONPATH=.). A page has ten links inside the site, all found there
by its neighbours too, and one that leads elsewhere. Of a hundred pages two are broken and one
redirects. CPU and peak are those of the whole process of the command. The directory is made by
the store's own writer, in the one for temporary files; a DIRECTORY is kept, and used again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import httpx

from trio_crawler.model import Anchor, Outcome, Page, Reason, Redirect, RejectedLink
from trio_crawler.store.runs import End
from trio_crawler.store.store import Store
from trio_crawler.store.writer import Batch

SITE = "https://docs.example.org/reference/library"
ELSEWHERE = RejectedLink("https://elsewhere.example/", Reason.OTHER_SITE)
LINKS = 10
PORTION = 1_000
HTML = httpx.Headers({"content-type": "text/html; charset=utf-8", "etag": '"65f1a2b3-8a00"'})
EXPORTS = ("--csv", "--links", "--jsonl", "--sitemap-xml")


def url(number: int) -> str:
    """Return the URL of a number: a hundred pages in a directory."""
    return f"{SITE}/{number // 100}/chapter-{number:07}.html"


def outcome(number: int, count: int, *, texts: bool) -> Outcome:
    """Return the outcome of a URL."""
    about = {"depth": 3, "referrer": url(number // LINKS) if number else None}
    if number % 100 == 7:
        return Redirect(url(number), 301, url(number - 1), **about)  # type: ignore[arg-type]
    if number % 50 == 3:
        return Page(url(number), 404, HTML, b"gone", content_type="text/html", **about)  # type: ignore[arg-type]
    first = number * LINKS if number * LINKS + LINKS < count else number - number % LINKS
    links = tuple(url(each) for each in range(first, first + LINKS))
    named = {each: Anchor("a", "The chapter about " + each[-9:]) for each in links if texts}
    return Page(
        url(number),
        200,
        HTML,
        b"%d" % number,
        content_type="text/html",
        charset="utf-8",
        title=f"Chapter {number}",
        links=links,
        anchors=named,
        rejected=(ELSEWHERE,),
        **about,  # type: ignore[arg-type]
    )


def fill(directory: str | Path, count: int, *, texts: bool = False) -> None:
    """Write a crawl of so many URLs that has ended."""
    with Store.open(directory, settings={"seeds": [url(0)]}) as store:
        for start in range(0, count, PORTION):
            batch = Batch()
            for number in range(start, min(start + PORTION, count)):
                made = outcome(number, count, texts=texts)
                about = ("page", made.depth, 10, made.referrer, None)
                batch.admitted.append((number + 1, made.url, *about))
                batch.settled.append((number + 1, 0.0, made))
            store.write(batch)
        store.end(End.FINISHED, [], 1.0)


@contextmanager
def made(count: int, kept: str | None) -> Iterator[str]:
    """Return a directory of so many URLs, until the end of the block."""
    with tempfile.TemporaryDirectory() as temporary:
        directory = temporary if kept is None else kept
        if not Path(directory, "crawl.sqlite").exists():
            fill(directory, count)
        yield directory


def reported(directory: str, *options: str) -> tuple[float, float]:
    """Return the seconds of CPU and the peak in MiB of the command `report`."""
    command = [sys.executable, "-m", "trio_crawler", "report", directory, *options]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    # Broken links are reported with 1.
    if child.returncode not in (0, 1):
        sys.exit(f"report ended with {child.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--directory", help="keep the directory there, and use it again")
    asked = parser.parse_args()
    with made(asked.urls, asked.directory) as directory, tempfile.TemporaryDirectory() as files:
        print(f"{asked.urls:,} URLs, {Path(directory, 'crawl.sqlite').stat().st_size:,} bytes")
        for option in ("", *EXPORTS):
            more = (option, f"{files}/export") if option else ()
            runs = [reported(directory, *more) for _ in range(asked.rounds)]
            cpu, peak = (median(each) for each in zip(*runs, strict=True))
            print(f"report {option:14}{cpu:8.1f} s of CPU{peak:8.0f} MiB", flush=True)


if __name__ == "__main__":
    main()
