"""Try first, and wait only if there is nothing: a non-blocking socket."""

from __future__ import annotations

import socket
import sys
from collections.abc import Generator

from selecting import run
from sleeping import asleep
from web import address, links, request, show

TURNS = 100_000


class AsyncRecv:
    def __init__(self, sock: socket.socket, amount: int) -> None:
        self.sock = sock
        self.amount = amount

    def __await__(self) -> Generator[AsyncRecv, None, bytes]:
        data, turns = b"", 0
        while len(data) < self.amount:  # (1)
            try:
                data += self.sock.recv(self.amount - len(data))  # (2)
            except BlockingIOError:
                yield self  # (3)
            turns += 1
            if turns == TURNS:  # a guard of ours: see the page
                sys.exit(f"{len(data)} bytes in {TURNS:,} turns: no more")  # (4)
        return data


async def fetch(url: str) -> bytes:
    with socket.create_connection(address(url)) as sock:
        sock.sendall(request(url))
        sock.setblocking(False)
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += await AsyncRecv(sock, 1)
        return await AsyncRecv(sock, length(head))  # (5)


def length(head: bytes) -> int:
    return int(head.lower().partition(b"content-length:")[2].split()[0])


def crawl(root: str) -> set[str]:
    seen, todo, unfinished = {root}, [root], 1

    async def work() -> None:
        nonlocal unfinished
        while unfinished:
            if not todo:
                await asleep(0.01)
                continue
            url = todo.pop()
            new = links(url, await fetch(url)) - seen
            seen.update(new)
            todo.extend(sorted(new))
            unfinished += len(new) - 1

    run(*(work() for _ in range(4)))  # (6)
    return seen


if __name__ == "__main__":
    show(crawl(sys.argv[1]))
