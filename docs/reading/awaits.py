"""Crawl with `await`, which a future understands too. See tasks.py."""

from __future__ import annotations

import resource
import socket
import sys
from collections.abc import Generator
from selectors import EVENT_READ, EVENT_WRITE
from typing import Any

import futures
from futures import selector
from tasks import Task, loop
from web import address, body, links, request, show


class Future(futures.Future):
    def __await__(self) -> Generator[Future, None, Any]:
        if not self.done:
            yield self  # up to the task, until there is a result
        return self.result

    __iter__ = __await__  # for `yield from`


async def ready(sock: socket.socket, event: int) -> None:
    f = Future()
    selector.register(sock, event, lambda: f.set_result(None))
    try:
        await f
    finally:
        selector.unregister(sock)


async def connect(url: str) -> socket.socket:
    sock = socket.socket()
    sock.setblocking(False)
    sock.connect_ex(address(url))
    await ready(sock, EVENT_WRITE)  # (1)
    return sock


async def read(sock: socket.socket) -> bytes:
    await ready(sock, EVENT_READ)  # (2)
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


def crawl(root: str) -> set[str]:
    seen_urls, urls_todo = {root}, {root}

    async def visit(url: str) -> None:
        page = await fetch(url)  # (4)
        new = links(url, page) - seen_urls
        seen_urls.update(new)
        urls_todo.update(new)
        for link in sorted(new):
            Task(visit(link))  # (5)
        urls_todo.discard(url)

    Task(visit(root))
    loop(urls_todo)
    return seen_urls


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))  # (6)
    show(crawl(sys.argv[1]))
