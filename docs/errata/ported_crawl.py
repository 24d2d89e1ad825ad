"""The chapter's queue and sockets on its loop, and a crawler: the same switches."""

from __future__ import annotations

import os
import socket
from collections import deque
from errno import EINPROGRESS
from selectors import EVENT_READ, EVENT_WRITE
from typing import Any

from web import address, body, links, request

from errata.ported_loop import Coroutine, Future, Loop, Task


class StillSpinning(Exception):
    """A loop has been tried often enough to say that it has no end."""


class Queue:
    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.items: deque[Any] = deque()
        self.getters: list[Future] = []
        self.unfinished = 0
        self.joined = Future(loop)

    def put_nowait(self, item: Any) -> None:
        self.unfinished += 1
        self.items.append(item)
        getters, self.getters = self.getters, []
        for getter in getters:
            getter.set_result(None)

    def get(self) -> Coroutine:
        while not self.items:
            self.getters.append(Future(self.loop))
            yield from self.getters[-1]
        return self.items.popleft()

    def task_done(self) -> None:
        self.unfinished -= 1
        if self.unfinished == 0:
            joined = self.joined
            if not self.loop.printed.one_join:
                self.joined = Future(self.loop)
            joined.set_result(None)

    def join(self) -> Coroutine:
        if self.unfinished > 0:
            yield from self.joined


def connect(loop: Loop, sock: socket.socket, host: tuple[str, int]) -> Coroutine:
    sock.setblocking(False)
    error = sock.connect_ex(host)
    if loop.printed.refusal_swallowed:
        return
    if error == EINPROGRESS:
        yield from loop.readiness(sock, EVENT_WRITE)
        error = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if error:
        raise OSError(error, os.strerror(error))


def spin(sock: socket.socket, data: bytes, tries: int = 10_000) -> int:
    for _ in range(tries):  # a guard of ours: the printed loop has no end
        try:
            return sock.send(data)
        except OSError:
            pass
    raise StillSpinning(f"{tries} tries")


def send(loop: Loop, sock: socket.socket, data: bytes) -> Coroutine:
    if loop.printed.refusal_swallowed:
        spin(sock, data)
        return
    while data:
        yield from loop.readiness(sock, EVENT_WRITE)
        sent = sock.send(data)
        data = b"" if loop.printed.half_sent else data[sent:]


def read_all(loop: Loop, sock: socket.socket) -> Coroutine:
    response = []
    while True:
        yield from loop.readiness(sock, EVENT_READ)
        chunk = sock.recv(65_536)
        if not chunk:
            return b"".join(response)
        response.append(chunk)


def fetch(loop: Loop, url: str) -> Coroutine:
    sock = socket.socket()
    try:
        yield from connect(loop, sock, address(url))
        yield from send(loop, sock, request(url))
        return body((yield from read_all(loop, sock)))
    finally:
        if not loop.printed.left_open:
            sock.close()


def crawl(loop: Loop, root: str, max_tasks: int = 4) -> Coroutine:
    q, seen = Queue(loop), {root}
    q.put_nowait(root)

    def work() -> Coroutine:
        while True:
            url = yield from q.get()
            try:
                new = links(url, (yield from fetch(loop, url))) - seen
                seen.update(new)
                for link in sorted(new):
                    q.put_nowait(link)
            finally:
                q.task_done()

    workers = [Task(loop, work()) for _ in range(max_tasks)]
    yield from q.join()
    for w in workers:
        w.cancel()
        w.get()
    return seen
