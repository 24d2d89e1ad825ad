"""The same crawl, the same lines; each wait can be left."""

from __future__ import annotations

import sys

import trio
from web import address, body, links, request, show


async def fetch(url: str) -> bytes:
    stream = await trio.open_tcp_stream(*address(url))  # (1)
    async with stream:
        await stream.send_all(request(url))  # (2)
        response = b""
        async for chunk in stream:  # (3)
            response += chunk
    return body(response)


async def crawl(root: str) -> set[str]:
    seen, todo = {root}, [root]
    while todo:
        url = todo.pop()
        with trio.move_on_after(1):  # (5)
            new = links(url, await fetch(url)) - seen  # (4)
            seen |= new
            todo += sorted(new)
    return seen


async def main(root: str) -> None:
    show(await crawl(root))


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
