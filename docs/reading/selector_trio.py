"""The same readiness, awaited: what follows is the next line."""

from __future__ import annotations

import socket
import sys

import trio
from web import address, body, links, request, show


async def fetch(url: str, pages: dict[str, bytes]) -> None:
    with socket.socket() as sock, trio.move_on_after(1):
        sock.setblocking(False)
        sock.connect_ex(address(url))
        await trio.lowlevel.wait_writable(sock)  # (1)
        sock.send(request(url))  # (2)
        response, chunk = b"", b"?"
        while chunk:
            await trio.lowlevel.wait_readable(sock)  # (3)
            chunk = sock.recv(4096)
            response += chunk  # (4)
        pages[url] = body(response)


async def fetch_all(urls: set[str]) -> dict[str, bytes]:
    pages: dict[str, bytes] = {}
    async with trio.open_nursery() as nursery:  # (5)
        for url in sorted(urls):
            nursery.start_soon(fetch, url, pages)
    return pages


async def crawl(root: str) -> set[str]:
    seen, todo = set[str](), {root}
    while todo:
        seen |= todo
        pages = await fetch_all(todo)
        found = [links(url, pages[url]) for url in pages]
        todo = set().union(*found) - seen
    return seen


async def main(root: str) -> None:
    show(await crawl(root))


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
