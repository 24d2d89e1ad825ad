"""Workers that wait for the end of a queue that they themselves fill."""

import asyncio

from graph import Site, asyncio_run


async def crawl(site: Site) -> None:
    queue = asyncio.Queue[str]()
    queue.put_nowait("/")

    async def work() -> None:
        while True:  # a queue has no end of its own
            url = await queue.get()
            for link in await site.fetch(url):
                queue.put_nowait(link)

    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(work())


asyncio_run(crawl)
