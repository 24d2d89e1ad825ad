"""The same with `trio.socket`: its `recv` can also be cancelled."""

from __future__ import annotations

import sys

import trio
from web import address, links, request, show


async def receive(sock: trio.socket.SocketType, amount: int) -> bytes:
    data = b""
    with trio.move_on_after(0.3):  # (4)
        while len(data) < amount:  # (1)
            data += await sock.recv(amount - len(data))  # (2) (3)
    return data


async def fetch(url: str) -> bytes:
    with trio.socket.socket() as sock:
        await sock.connect(address(url))
        await trio.SocketStream(sock).send_all(request(url))
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += await sock.recv(1)
        return await receive(sock, length(head))  # (5)


def length(head: bytes) -> int:
    return int(head.lower().partition(b"content-length:")[2].split()[0])


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
            nursery.start_soon(work)  # (6)
    return seen


if __name__ == "__main__":
    show(trio.run(crawl, sys.argv[1]))
