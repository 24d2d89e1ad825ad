"""Crawl with `trio_crawler` itself, and say how each URL ended."""

from __future__ import annotations

import sys

import trio
from trio_crawler import Crawler, Failure, Page, Redirect, Skipped


async def main(root: str) -> None:
    crawler = Crawler([root])
    ends = {}
    async with crawler.outcomes() as outcomes:
        async for outcome in outcomes:
            match outcome:
                case Page(url=url, status=status):
                    ends[url] = f"{status}"
                case Redirect(url=url, target=target):
                    ends[url] = f"leads to {target}"
                case (
                    Failure(url=url, reason=reason)
                    | Skipped(url=url, reason=reason)
                ):
                    ends[url] = reason
    for url in sorted(ends, key=lambda url: (len(url), url)):
        print(url, ends[url])


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
