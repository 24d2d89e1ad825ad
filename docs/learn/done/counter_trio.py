"""A counter that is counted down too early."""

import math

import trio
from graph import Site, trio_run


async def crawl(site: Site) -> None:
    send, receive = trio.open_memory_channel[str](math.inf)
    send.send_nowait("/")
    unfinished, done = 1, trio.Event()

    async def work() -> None:
        nonlocal unfinished
        async for url in receive:
            unfinished -= 1  # its links are not counted yet
            if not unfinished:
                done.set()
            for link in await site.fetch(url):
                unfinished += 1
                send.send_nowait(link)

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(work)
        await done.wait()
        nursery.cancel_scope.cancel()


trio_run(crawl)
