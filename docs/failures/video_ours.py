"""The same with `trio_crawler`, whose pages have a bound from the start."""

from __future__ import annotations

import sys
import tracemalloc

import trio
from trio_crawler import Crawler, Page

from sites.video import SIZE


async def main(root: str) -> None:
    crawler = Crawler([root])
    async with crawler.outcomes() as outcomes:
        async for outcome in outcomes:
            if isinstance(outcome, Page):
                print("page:", outcome.url, *outcome.flaws)


if __name__ == "__main__":
    tracemalloc.start()
    trio.run(main, sys.argv[1])
    _, peak = tracemalloc.get_traced_memory()
    print("memory grew by the video or more:", peak >= SIZE)
