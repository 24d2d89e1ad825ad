"""A second event, a socket to read: the loop waits for both kinds."""

from __future__ import annotations

import select
import socket
import sys
from collections.abc import Coroutine, Generator
from heapq import heappop, heappush
from itertools import count
from time import monotonic
from typing import Any

from sleeping import AsyncSleep, asleep
from web import address, body, links, request, show


class AsyncRead:
    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock

    def __await__(self) -> Generator[AsyncRead, None, bytes]:
        yield self  # (1)
        return self.sock.recv(4096)


def run(*coroutines: Coroutine[Any, None, None]) -> None:
    turn = count()
    waiting = [(0.0, next(turn), coroutine) for coroutine in coroutines]
    reading: dict[socket.socket, Coroutine[Any, None, None]] = {}
    while waiting or reading:  # (2)
        timeout = max(0.0, waiting[0][0] - monotonic()) if waiting else None
        readable, _, _ = select.select(list(reading), [], [], timeout)
        ready = [reading.pop(sock) for sock in readable]
        while waiting and waiting[0][0] <= monotonic():
            ready.append(heappop(waiting)[2])
        for coroutine in ready:
            try:
                event = coroutine.send(None)
            except StopIteration:
                continue
            if isinstance(event, AsyncSleep):
                heappush(waiting, (event.until, next(turn), coroutine))
            else:
                reading[event.sock] = coroutine  # (3)


async def fetch(url: str) -> bytes:
    with socket.create_connection(address(url)) as sock:
        sock.sendall(request(url))
        response = b""
        while chunk := await AsyncRead(sock):  # (4)
            response += chunk
    return body(response)


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

    run(*(work() for _ in range(4)))  # (5)
    return seen


if __name__ == "__main__":
    show(crawl(sys.argv[1]))
