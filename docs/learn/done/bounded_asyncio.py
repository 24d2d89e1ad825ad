"""A queue with a bound, whose readers are also its writers."""

import asyncio

from graph import Site, asyncio_run


async def crawl(site: Site) -> None:
    queue = asyncio.Queue[str](maxsize=2)
    queue.put_nowait("/")

    async def work() -> None:
        while True:
            url = await queue.get()
            for link in await site.fetch(url):
                await queue.put(link)  # all of them may wait here
            queue.task_done()

    async with asyncio.TaskGroup() as group:
        workers = [group.create_task(work()) for _ in range(2)]
        await queue.join()
        for worker in workers:
            worker.cancel()


asyncio_run(crawl)
