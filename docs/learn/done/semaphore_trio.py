"""A task for each page, and a limiter that a page holds until its links are done."""

import trio
from graph import Site, trio_run


async def crawl(site: Site) -> None:
    three = trio.CapacityLimiter(3)

    async def page(url: str) -> None:
        async with three, trio.open_nursery() as nursery:
            for link in await site.fetch(url):
                nursery.start_soon(page, link)

    await page("/")


trio_run(crawl)
