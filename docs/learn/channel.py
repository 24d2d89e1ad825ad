"""One task sends, another receives, and the channel ends."""

import trio


async def find(send: trio.MemorySendChannel[str]) -> None:
    async with send:
        for url in ("/a", "/b", "/c"):
            await send.send(url)


async def main() -> None:
    send, receive = trio.open_memory_channel[str](0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(find, send)
        async for url in receive:
            print("main:", url)
    print("main: the channel has ended")


trio.run(main)
