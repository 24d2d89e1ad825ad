"""A channel with a bound, whose readers are also its writers."""

import trio
from graph import Site, trio_run


async def crawl(site: Site) -> None:
    send, receive = trio.open_memory_channel[str](2)
    send.send_nowait("/")
    unfinished = 1

    async def work() -> None:
        nonlocal unfinished
        async for url in receive:
            for link in await site.fetch(url):
                unfinished += 1
                await send.send(link)  # all of them may wait here
            unfinished -= 1
            if not unfinished:
                send.close()

    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(work)


trio_run(crawl)
