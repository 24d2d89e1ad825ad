"""Crawl with `trio_crawler`: each URL has an outcome, bad ones a reason."""

from __future__ import annotations

import sys

import trio
from trio_crawler import Crawler, Failure, Limits, Outcome, Politeness


async def main(root: str) -> None:
    polite = Politeness(robots=False)  # this site has no robots.txt to ask for
    crawler = Crawler([root], politeness=polite, limits=Limits(max_tries=2))
    async with crawler.outcomes() as outcomes:
        found = [outcome async for outcome in outcomes]
    for each in sorted(found, key=lambda each: (len(each.url), each.url)):
        print(f"{type(each).__name__:9}{each.url}{why(each)}")


def why(outcome: Outcome) -> str:
    if isinstance(outcome, Failure):
        return f"  {outcome.reason}, tries: {outcome.tries}"
    return ""


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
