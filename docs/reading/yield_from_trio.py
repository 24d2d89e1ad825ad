"""The same parts, with `await`; a caller can give a part a limit."""

from __future__ import annotations

import sys

import trio
from web import address, body, links, request, show


async def read(stream: trio.SocketStream) -> bytes:
    return await stream.receive_some(4096)  # (2)


async def read_all(stream: trio.SocketStream) -> bytes:
    response = []
    while chunk := await read(stream):  # (3)
        response.append(chunk)
    return b"".join(response)


async def fetch(url: str) -> bytes:
    async with await trio.open_tcp_stream(*address(url)) as stream:  # (1)
        await stream.send_all(request(url))
        response = b""
        with trio.move_on_after(1) as limit:
            response = await read_all(stream)  # (4)
        if limit.cancelled_caught:
            print("given up:", url)
        return body(response)


async def crawl(root: str) -> set[str]:
    seen_urls = {root}

    async def visit(url: str) -> None:
        page = await fetch(url)
        new = links(url, page) - seen_urls
        seen_urls.update(new)
        for link in sorted(new):
            nursery.start_soon(visit, link)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(visit, root)
    return seen_urls


async def main(root: str) -> None:
    show(await crawl(root))


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
