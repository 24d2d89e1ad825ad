"""Workers that wait for the end of a channel that they themselves fill."""

import math

import trio
from graph import Site, trio_run


async def crawl(site: Site) -> None:
    send, receive = trio.open_memory_channel[str](math.inf)
    send.send_nowait("/")

    async def work(send: trio.MemorySendChannel[str]) -> None:
        async with send:  # each worker keeps an end open for the others
            async for url in receive:
                for link in await site.fetch(url):
                    send.send_nowait(link)

    async with trio.open_nursery() as nursery, send:
        for _ in range(3):
            nursery.start_soon(work, send.clone())


trio_run(crawl)
