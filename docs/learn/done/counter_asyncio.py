"""A counter that is counted down too early."""

import asyncio

from graph import Site, asyncio_run


async def crawl(site: Site) -> None:
    queue, unfinished, done = asyncio.Queue[str](), 1, asyncio.Event()
    queue.put_nowait("/")

    async def work() -> None:
        nonlocal unfinished
        while True:
            url = await queue.get()
            unfinished -= 1  # its links are not counted yet
            if not unfinished:
                done.set()
            for link in await site.fetch(url):
                unfinished += 1
                queue.put_nowait(link)

    async with asyncio.TaskGroup() as group:
        workers = [group.create_task(work()) for _ in range(3)]
        await done.wait()
        for worker in workers:
            worker.cancel()


asyncio_run(crawl)
