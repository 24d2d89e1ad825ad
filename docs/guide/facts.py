"""Crawl with the facts of pages, and name what an editor should look at."""

from __future__ import annotations

import sys
from urllib.parse import urlsplit

import trio
from trio_crawler import Crawler, Page, PageFacts


def notes(facts: PageFacts) -> list[str]:
    """Say what is wrong with a page."""
    if facts.scripted:
        return ["a script makes this page: it has no text to judge"]
    found = [f"JSON-LD: {error}" for error in facts.json_ld_errors]
    if facts.description is None:
        found.append("no description")
    if facts.h1_count != 1:
        found.append(f"{facts.h1_count} headings of the first level")
    if facts.images_without_alt:
        found.append(
            f"{facts.images_without_alt} of {facts.images} images lack alt"
        )
    return found


async def main(url: str) -> None:
    said: list[str] = []
    async with Crawler([url], facts=True).outcomes() as outcomes:
        async for outcome in outcomes:
            match outcome:
                case Page(url=url, ok=True, facts=PageFacts() as facts):
                    path = urlsplit(url).path
                    said += [f"{path}: {note}" for note in notes(facts)]
    print(*sorted(said), sep="\n")


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
