"""An event that is a time: a coroutine yields it, the loop sleeps."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Coroutine, Generator
from heapq import heapify, heappop, heappush
from itertools import count

from web import address, body, links, request, show


class AsyncSleep:
    def __init__(self, until: float) -> None:
        self.until = until

    def __await__(self) -> Generator[AsyncSleep, None, None]:
        yield self  # (1)


async def asleep(duration: float) -> None:
    await AsyncSleep(time.monotonic() + duration)


def run(*coroutines: Coroutine[AsyncSleep, None, None]) -> None:
    turn = count()  # of two with the same time, which came first
    waiting = [(0.0, next(turn), coroutine) for coroutine in coroutines]
    heapify(waiting)
    while waiting:  # (2)
        until, _, coroutine = heappop(waiting)
        time.sleep(max(0.0, until - time.monotonic()))
        try:
            event = coroutine.send(None)
        except StopIteration:
            continue
        heappush(waiting, (event.until, next(turn), coroutine))


async def receive(sock: socket.socket) -> bytes:
    while True:
        try:
            return sock.recv(4096)
        except BlockingIOError:
            await asleep(0.01)  # (3)


async def fetch(url: str) -> bytes:
    with socket.create_connection(address(url)) as sock:
        sock.sendall(request(url))
        sock.setblocking(False)
        response = b""
        while chunk := await receive(sock):
            response += chunk
    return body(response)


def crawl(root: str) -> set[str]:
    seen, todo, unfinished = {root}, [root], 1

    async def work() -> None:
        nonlocal unfinished
        while unfinished:
            if not todo:
                await asleep(0.01)  # (4)
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
