"""Crawl inside a Trio program: the outcomes come while the crawl goes on."""

from __future__ import annotations

import sys

import trio
from trio_crawler import Crawler, Failure, Page, Redirect, Skipped


async def main(url: str) -> None:
    crawler = Crawler([url])
    said: list[str] = []
    async with crawler.outcomes() as outcomes:
        async for outcome in outcomes:
            match outcome:
                case Page(url=url, ok=True):
                    said.append(
                        f"{url} {outcome.title!r}, {len(outcome.links)} links"
                    )
                case Page(url=url, status=status):
                    said.append(
                        f"{url} is {status}, linked from {outcome.referrer}"
                    )
                case Redirect(url=url, target=target):
                    said.append(f"{url} leads to {target}")
                case (
                    Failure(url=url, reason=reason)
                    | Skipped(url=url, reason=reason)
                ):
                    said.append(f"{url} gave nothing: {reason}")
    print(*sorted(said), sep="\n")
    totals = crawler.statistics()
    print(f"{totals.admitted} URLs, {totals.pages} of them pages")


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
