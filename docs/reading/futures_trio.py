"""No futures: a function returns its result, or raises its failure."""

from __future__ import annotations

import sys

import trio
from web import address, body, links, request, show


async def fetch(url: str) -> bytes:  # (1)
    response = b""  # (2)
    async with await trio.open_tcp_stream(*address(url)) as stream:
        await stream.send_all(request(url))
        async for chunk in stream:  # (3)
            response += chunk
    if not response:
        raise ConnectionError(f"{url} hung up")  # (4)
    return body(response)  # (5)


async def crawl(root: str) -> set[str]:
    seen_urls = {root}

    async def visit(url: str) -> None:
        try:
            page = await fetch(url)  # (6)
        except ConnectionError as error:  # (7)
            print(error)
            return
        for link in sorted(links(url, page) - seen_urls):
            seen_urls.add(link)
            nursery.start_soon(visit, link)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(visit, root)
    return seen_urls


async def main(root: str) -> None:
    show(await crawl(root))


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
