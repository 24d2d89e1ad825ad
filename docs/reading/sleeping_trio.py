"""The same with `trio.sleep`: event and loop are Trio's own."""

from __future__ import annotations

import socket
import sys

import trio
from web import address, body, links, request, show


async def receive(sock: socket.socket) -> bytes:
    while True:
        try:
            return sock.recv(4096)
        except BlockingIOError:
            await trio.sleep(0.01)  # (1) (3)


async def fetch(url: str) -> bytes:
    with socket.create_connection(address(url)) as sock:
        sock.sendall(request(url))
        sock.setblocking(False)
        response = b""
        while chunk := await receive(sock):
            response += chunk
    return body(response)


async def crawl(root: str) -> set[str]:
    seen, todo, unfinished = {root}, [root], 1

    async def work() -> None:
        nonlocal unfinished
        while unfinished:
            if not todo:
                await trio.sleep(0.01)  # (4)
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
