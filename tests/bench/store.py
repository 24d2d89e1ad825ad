"""Measure the store alone: what a page costs to write, and how fast a large crawl is read back.

    python tests/bench/store.py [--pages 2000] [--urls 1000000] [--rounds 3]

Needs `pip install -e .` (or PYTHONPATH=.). CPU is that of the whole process, by page or URL; a
page has 100 links with anchors and 34 KB, which is also taken apart without its SHA-1.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import httpx

from trio_crawler.model import Anchor, Page
from trio_crawler.policy.settings import Checks
from trio_crawler.store.history import History
from trio_crawler.store.runs import End
from trio_crawler.store.store import Store
from trio_crawler.store.writer import Batch

SITE = "https://docs.example.org/reference/library/chapter-"
LINKS = 100
BODY = b"<p>Some text of the length that text has in documentation.</p>\n" * 545
HEADERS = httpx.Headers(
    [
        ("Server", "nginx"),
        ("Date", "Sat, 21 Nov 2026 22:00:00 GMT"),
        ("Content-Type", "text/html; charset=utf-8"),
        ("Content-Length", str(len(BODY))),
        ("Last-Modified", "Fri, 20 Nov 2026 22:00:00 GMT"),
        ("Connection", "keep-alive"),
        ("ETag", '"65f1a2b3-8a00"'),
        ("Accept-Ranges", "bytes"),
    ]
)


def url(number: int) -> str:
    """Give the URL of a number."""
    return f"{SITE}{number:07}.html"


def page(number: int, body: bytes) -> Page:
    """Make a page with its links."""
    links = tuple(url(number + step * 37) for step in range(LINKS))
    anchors = {link: Anchor("a", f"The chapter about {step}") for step, link in enumerate(links)}
    return Page(
        url(number),
        200,
        HEADERS,
        body,
        content_type="text/html",
        charset="utf-8",
        title=f"Chapter {number}",
        links=links,
        anchors=anchors,
    )


def batches(pages: int, size: int, body: bytes) -> Iterator[Batch]:
    """Make batches of so many pages, each with one new URL."""
    for start in range(1, pages + 1, size):
        batch = Batch()
        for number in range(start, min(start + size, pages + 1)):
            batch.admitted.append((number, url(number), "page", 3, 10, url(1), None))
            batch.settled.append((number, time.time(), page(number, body)))
        yield batch


def cpu(store: Store, made: list[Batch]) -> float:
    """Write batches; return the seconds of CPU."""
    before = time.process_time()
    for batch in made:
        store.write(batch)
    return time.process_time() - before


def written(pages: int, size: int, body: bytes) -> float:
    """Return the microseconds of CPU that a page takes, with its URL."""
    with tempfile.TemporaryDirectory() as directory, Store.open(directory) as store:
        return cpu(store, list(batches(pages, size, body))) / pages * 1e6


def admitted(count: int, size: int) -> float:
    """Return the microseconds of CPU that a new URL takes."""
    made = []
    for start in range(1, count + 1, size):
        rows = [(n, url(n), "page", 3, 10, url(1), None) for n in range(start, start + size)]
        made.append(Batch(admitted=rows))
    with tempfile.TemporaryDirectory() as directory, Store.open(directory) as store:
        return cpu(store, made) / count * 1e6


def empty(count: int) -> float:
    """Return the microseconds of CPU that an empty batch takes."""
    with tempfile.TemporaryDirectory() as directory, Store.open(directory) as store:
        return cpu(store, [Batch() for _ in range(count)]) / count * 1e6


def large(urls: int) -> Iterator[str]:
    """Read back a crawl of so many URLs, in which each has a page of few links."""
    with tempfile.TemporaryDirectory() as directory:
        _fill(directory, urls, 200)
        yield _timed("opening", lambda: Store.open(directory).close())
        with Store.open(directory) as store:
            yield _timed("urls()", lambda: sum(len(rows) for rows in store.walk.urls()))
            yield _timed("waiting()", lambda: sum(len(rows) for rows in store.walk.waiting()))
            yield _timed("statistics()", store.statistics)
            yield _timed("hops()", lambda: len(list(store.walk.hops())))
            yield _timed("bodies()", lambda: sum(len(rows) for rows in store.walk.bodies()))
        with History(directory) as history:
            yield _timed("outcomes()", lambda: sum(1 for _ in history.outcomes()))
        with Store.open(directory, refresh=True) as store:
            yield _timed("validators()", lambda: sum(1 for _ in store.validators(Checks.off())))
        _fill(directory, urls, 304)
        with History(directory) as history:
            yield _timed("changes()", lambda: sum(1 for _ in history.changes()))
        size = sum(file.stat().st_size for file in Path(directory).iterdir())
        yield f"{size / urls / 2:.0f} bytes on disk a page of 10 links"


def _fill(directory: str, urls: int, status: int) -> None:
    links = tuple(url(number) for number in range(10))
    with Store.open(directory) as store:
        first = store.last_number() + 1
        for start in range(0, urls, 1_000):
            batch = Batch()
            for number in range(start, start + 1_000):
                body = b"%d" % number
                found = Page(url(number), status, HEADERS, body, content_type="text/html")
                batch.admitted.append((first + number, url(number), "page", 0, 10, None, None))
                batch.settled.append((first + number, 0.0, _with_links(found, links)))
            store.write(batch)
        store.end(End.FINISHED, [], 1.0)


def _with_links(found: Page, links: tuple[str, ...]) -> Page:
    about = {"content_type": found.content_type, "title": "A title", "links": links}
    return Page(found.url, found.status, found.headers, found.body, **about)  # type: ignore[arg-type]


def _timed(name: str, step: Callable[[], object]) -> str:
    before = time.perf_counter()
    step()
    return f"{name:12} {time.perf_counter() - before:7.2f} s"


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=2_000)
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    rounds = range(asked.rounds)
    for size in (1, 3, 10, 100):
        whole = median(written(asked.pages, size, BODY) for _ in rounds)
        without = median(written(asked.pages, size, b"") for _ in rounds)
        print(f"{size:4} pages a batch: {whole:6.1f} us a page, {without:6.1f} without SHA-1")
    print(f"  10 URLs a batch: {median(admitted(20_000, 10) for _ in rounds):6.2f} us a URL")
    print(f" 100 URLs a batch: {median(admitted(100_000, 100) for _ in rounds):6.2f} us a URL")
    print(f"   an empty batch: {median(empty(5_000) for _ in rounds):6.1f} us")
    if asked.urls:
        print(f"{asked.urls:,} pages")
        for text in large(asked.urls):
            print("  " + text, flush=True)


if __name__ == "__main__":
    main()
