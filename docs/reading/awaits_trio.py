"""The same coroutines on Trio; a limiter says how many fetch at once."""

from __future__ import annotations

import resource
import socket
import sys

import trio
from trio.lowlevel import wait_readable, wait_writable
from web import address, body, links, request, show


async def connect(url: str) -> socket.socket:
    sock = socket.socket()
    sock.setblocking(False)
    sock.connect_ex(address(url))
    await wait_writable(sock)  # (1)
    return sock


async def read(sock: socket.socket) -> bytes:
    await wait_readable(sock)  # (2)
    return sock.recv(4096)


async def read_all(sock: socket.socket) -> bytes:
    response = []
    while chunk := await read(sock):  # (3)
        response.append(chunk)
    return b"".join(response)


async def fetch(url: str) -> bytes:
    with await connect(url) as sock:
        sock.sendall(request(url))
        return body(await read_all(sock))


async def crawl(root: str) -> set[str]:
    seen_urls = {root}
    room = trio.CapacityLimiter(4)

    async def visit(url: str) -> None:
        async with room:
            page = await fetch(url)  # (4)
        new = links(url, page) - seen_urls
        seen_urls.update(new)
        for link in sorted(new):
            nursery.start_soon(visit, link)  # (5)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(visit, root)
    return seen_urls


async def main(root: str) -> None:
    show(await crawl(root))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))  # (6)
    trio.run(main, sys.argv[1])
