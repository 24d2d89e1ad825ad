"""The same crawl: its state in locals, its order in its lines."""

from __future__ import annotations

import sys

import trio
from web import address, body, links, request, show

seen_urls: set[str] = set()


async def read_response(url: str) -> bytes:
    stream = await trio.open_tcp_stream(*address(url))  # (1) (3)
    async with stream:
        await stream.send_all(request(url))
        response = b""  # (2)
        async for chunk in stream:  # (4)
            response += chunk  # (2)
    return response


async def fetch(url: str, nursery: trio.Nursery) -> None:
    try:
        response = await read_response(url)
        add(links(url, body(response)), nursery)  # (5)
    except (OSError, ValueError) as error:  # whichever line it was
        error.add_note(f"while fetching {url}")
        raise


def add(urls: set[str], nursery: trio.Nursery) -> None:
    for link in sorted(urls - seen_urls):
        seen_urls.add(link)
        nursery.start_soon(fetch, link, nursery)


async def crawl(root: str) -> set[str]:
    async with trio.open_nursery() as nursery:  # (6)
        add({root}, nursery)
    return seen_urls


async def main(root: str) -> None:
    show(await crawl(root))


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
