"""Measure what the links of a page cost, beside the least that a crawler could do with them.

    python tests/bench/links.py [ROOT ...] [--rounds 5]

No network: the HTML files below each ROOT are read once, and then crawled in memory from its index
on. `ours` is `PageHandler.settled` and the frontier's `settle`, as in a crawl with every default
on. `floor` parses by lexbor, asks for the `a` elements, cuts fragments, drops duplicates, joins
the plain links by hand and the rest by ada-url, and looks them up in a set; it detects no charset,
decodes no entity of its own, judges no scope and keeps no record. The two take turns in one
process; figures are medians over the rounds, in us of CPU per page. Both must come to the same
URLs. Needs `pip install -e .`
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from statistics import median

import ada_url
import httpx
import trio
from selectolax.lexbor import LexborHTMLParser

from trio_crawler import Crawler, Politeness, Response
from trio_crawler.frontier import Attempt
from trio_crawler.page import charset, media, urls
from trio_crawler.page.read import parse_html, read, scan_html

SITE = "http://127.0.0.1:8000/"
HEADERS = httpx.Headers({"content-type": "text/html"})
ROOTS = [
    Path("/usr/share/doc/linux-doc-6.1/html"),
    Path("/usr/share/doc/postgresql-doc-15/html"),
    Path("/usr/share/doc/python3-doc/html"),
]
PLAIN = re.compile(r"((?:\.\./)*+)([\w-][\w.-]*+(?:/[\w-][\w.-]*+)*+/?+)", re.ASCII).fullmatch


class Floor:
    """Crawl with as little as can be done for each page."""

    def __init__(self, pages: dict[str, bytes]) -> None:
        self.pages = pages
        self.seen = {next(iter(pages))}
        self.parsing = self.linking = 0.0

    def run(self) -> None:
        """Crawl from the first page on; keep the seconds that parsing and links took."""
        waiting = deque(self.seen)
        while waiting:
            url = waiting.popleft()
            if (body := self.pages.get(url)) is None:
                continue
            started = time.process_time()
            tree = LexborHTMLParser(body)
            parsed = time.process_time()
            waiting.extend(self.fresh(tree, url))
            del tree
            self.parsing += parsed - started
            self.linking += time.process_time() - parsed

    def fresh(self, tree: LexborHTMLParser, base: str) -> list[str]:
        """Find the links that were not seen before."""
        hrefs = {href for node in tree.tags("a") if (href := node.attributes.get("href"))}
        above = {"": base[: base.rindex("/") + 1]}
        fresh = []
        for href in {href.partition("#")[0] for href in hrefs}:
            if plain := PLAIN(href):
                url = (above.get(plain[1]) or above_of(above, plain[1])) + plain[2]
            else:
                url = joined(href, base)
            if url not in self.seen and url.startswith(SITE):
                self.seen.add(url)
                fresh.append(url)
        return fresh


def above_of(above: dict[str, str], climb: str) -> str:
    """Find the directory that "../" and the like mean on one page."""
    if climb not in above:
        below = above_of(above, climb[3:])
        above[climb] = below[: max(len(SITE), below.rindex("/", 0, -1) + 1)]
    return above[climb]


def joined(href: str, base: str) -> str:
    """Join by ada-url; what is no URL leads nowhere."""
    try:
        return ada_url.join_url(base, href)
    except ValueError:
        return ""


class Ours:
    """Crawl with the handler of pages and the frontier of a crawler, without a fetch."""

    def __init__(self, pages: dict[str, bytes]) -> None:
        self.answers = {url: Response(200, HEADERS, body) for url, body in pages.items()}
        self.crawler = Crawler([next(iter(pages))], politeness=Politeness(robots=False))
        self.seen = set[str]()
        self.answering = self.settling = 0.0

    async def run(self) -> None:
        """Crawl from the first page on; keep the seconds that the handler and settling took."""
        frontier, engine = self.crawler.frontier, self.crawler._engine
        await engine.open(self.crawler.plan)
        handler = engine.pages
        async with trio.open_nursery() as nursery:
            nursery.start_soon(frontier.run)
            async for job in frontier.jobs:
                self.seen.add(job.url)
                answer = self.answers.get(job.url) or Response(404)
                attempt = Attempt(job, answer, 0.1)
                frontier.hosts.answered(attempt)
                started = time.process_time()
                settlement = await handler.settled(attempt)
                judged = time.process_time()
                await frontier.settle(settlement)
                self.answering += judged - started
                self.settling += time.process_time() - judged


def reading(pages: dict[str, bytes]) -> dict[str, float]:
    """Return the seconds that the steps of `page.read` take."""
    texts = {url: charset.decode(body, "utf-8")[0] for url, body in pages.items()}
    found = {url: parse_html(text, url) for url, text in texts.items()}
    steps: dict[str, Callable[[str], object]] = {
        "read": lambda url: read(pages[url], "text/html", url),
        "media": lambda url: media.is_text(media.declared_type("text/html")),
        "charset": lambda url: charset.decode(
            pages[url], charset.detect(pages[url], "text/html", markup=True)
        ),
        "find": lambda url: scan_html(pages[url], url, "utf-8", 100_000) or found[url],
        "resolve": lambda url: urls.resolve(found[url].hrefs, found[url].base),
    }
    seconds = {}
    for name, step in steps.items():
        started = time.process_time()
        for url in pages:
            step(url)
        seconds[name] = time.process_time() - started
    return seconds


def one_round(pages: dict[str, bytes]) -> dict[str, float]:
    """Run everything once; return us per page."""
    gc.collect()
    floor, ours = Floor(pages), Ours(pages)
    floor.run()
    trio.run(ours.run)
    if ours.seen != floor.seen:
        sys.exit(f"not the same URLs: {sorted(ours.seen ^ floor.seen)[:5]}")
    seconds = {"parse": floor.parsing, "links": floor.linking}
    seconds["floor"] = floor.parsing + floor.linking
    seconds |= reading({url: body for url, body in pages.items() if url in floor.seen})
    seconds |= {"answer": ours.answering, "settle": ours.settling}
    seconds["ours"] = ours.answering + ours.settling
    count = len(pages.keys() & floor.seen)
    return {"pages": count} | {name: 1e6 * spent / count for name, spent in seconds.items()}


def pages_below(root: Path) -> dict[str, bytes]:
    """Read the pages of a site, its index first."""
    files = [root / "index.html", *sorted(root.rglob("*.html"))]
    return {SITE + file.relative_to(root).as_posix(): file.read_bytes() for file in files}


def main() -> None:
    """Measure and print a table for each root."""
    parser = argparse.ArgumentParser(description="Measure the links of a page.")
    parser.add_argument("roots", nargs="*", type=Path, metavar="ROOT")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    for root in options.roots or [root for root in ROOTS if root.is_dir()]:
        pages = pages_below(root)
        show(root, [one_round(pages) for _ in range(options.rounds)])


def show(root: Path, rounds: list[dict[str, float]]) -> None:
    """Print the medians of one site."""
    us = {name: median(each[name] for each in rounds) for name in rounds[0]}
    ratio = median(each["ours"] / each["floor"] for each in rounds)
    print(f"{root}: {us['pages']:.0f} pages, us of CPU per page")
    print("  floor {floor:5.0f} = parse {parse:.0f} + links {links:.0f}".format_map(us))
    print("  ours  {ours:5.0f} = answer {answer:.0f} + settle {settle:.0f}".format_map(us))
    print("  answer {answer:4.0f} = read {read:.0f} + judge ".format_map(us), end="")
    print(f"{us['answer'] - us['read']:.0f}")
    steps = "media {media:.0f} + charset {charset:.0f} + find {find:.0f} + resolve {resolve:.0f}"
    print("  read  {read:5.0f} = ".format_map(us) + steps.format_map(us) + " + the record")
    print(f"  ours / floor: {ratio:.2f}\n", flush=True)


if __name__ == "__main__":
    main()
