"""The program counts, and the count closes the channel."""

import math

import trio
from graph import Site, trio_run


async def crawl(site: Site) -> None:
    send, receive = trio.open_memory_channel[str](math.inf)
    send.send_nowait("/")
    unfinished = 1

    async def work() -> None:
        nonlocal unfinished
        async for url in receive:
            for link in await site.fetch(url):
                unfinished += 1  # counts it in
                send.send_nowait(link)
            unfinished -= 1  # counts its page out
            if not unfinished:
                send.close()

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(work)


trio_run(crawl)
