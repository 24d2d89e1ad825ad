"""The same with `wait_readable`: Trio's loop waits for both kinds."""

from __future__ import annotations

import socket
import sys

import trio
from web import address, body, links, request, show


async def read(sock: socket.socket) -> bytes:
    await trio.lowlevel.wait_readable(sock)  # (1) (3)
    return sock.recv(4096)


async def fetch(url: str) -> bytes:
    with socket.create_connection(address(url)) as sock:
        sock.sendall(request(url))
        response = b""
        while chunk := await read(sock):  # (4)
            response += chunk
    return body(response)


async def crawl(root: str) -> set[str]:
    seen, todo, unfinished = {root}, [root], 1

    async def work() -> None:
        nonlocal unfinished
        while unfinished:
            if not todo:
                await trio.sleep(0.01)
                continue
            url = todo.pop()
            new = links(url, await fetch(url)) - seen
            seen.update(new)
            todo.extend(sorted(new))
            unfinished += len(new) - 1

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(work)  # (5)
    return seen


if __name__ == "__main__":
    show(trio.run(crawl, sys.argv[1]))  # (2)
