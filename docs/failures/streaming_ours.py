"""`trio_crawler` streams in the same way: leaving the block ends the crawl."""

from __future__ import annotations

import trio
from trio_crawler import Crawler, HttpxFetch

from sites.endless import answer
from virtual import run_trio, visitor


async def main() -> None:
    client, site = visitor(answer)
    crawler = Crawler([site.url], fetch=HttpxFetch(client))
    async with crawler.outcomes() as outcomes:
        async for outcome in outcomes:
            print("has", outcome.url, "and leaves")
            break
    await trio.sleep(0.05)
    before = site.hits.total()
    await trio.sleep(10)
    print("requests in the next 10 s:", site.hits.total() - before)


if __name__ == "__main__":
    run_trio(main)
