"""A task for each page, and a semaphore that a page holds until its links are done."""

import asyncio

from graph import Site, asyncio_run


async def crawl(site: Site) -> None:
    three = asyncio.Semaphore(3)

    async def page(url: str) -> None:
        async with three, asyncio.TaskGroup() as group:
            for link in await site.fetch(url):
                group.create_task(page(link))

    await page("/")


asyncio_run(crawl)
