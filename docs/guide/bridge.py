"""Crawl in a program under asyncio: the outcomes come as in a program under Trio."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from trio_crawler import Crawler, HttpFetch, Page, bridged


async def main(url: str) -> None:
    @asynccontextmanager
    async def open_crawler() -> AsyncIterator[Crawler]:  # called inside Trio
        async with HttpFetch(seeds=[url], user_agent="handbook-check") as fetch:
            yield Crawler([url], fetch=fetch)

    broken: list[str] = []
    async with asyncio.timeout(60), bridged(open_crawler) as outcomes:
        async for outcome in outcomes:
            if isinstance(outcome, Page) and not outcome.ok:
                broken.append(f"{outcome.url} is {outcome.status}")
    print(*sorted(broken), sep="\n")
    totals = outcomes.statistics()
    print(f"{totals.admitted} URLs, {totals.pages} of them pages")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
