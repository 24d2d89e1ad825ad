"""The queue counts, and `join` waits for the count."""

import asyncio

from graph import Site, asyncio_run


async def crawl(site: Site) -> None:
    queue = asyncio.Queue[str]()
    queue.put_nowait("/")

    async def work() -> None:
        while True:
            url = await queue.get()
            for link in await site.fetch(url):
                queue.put_nowait(link)  # counts it in
            queue.task_done()  # counts its page out

    async with asyncio.TaskGroup() as group:
        workers = [group.create_task(work()) for _ in range(3)]
        await queue.join()
        for worker in workers:
            worker.cancel()


asyncio_run(crawl)
