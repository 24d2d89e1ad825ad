"""Crawl with `yield from`: a generator as part of another. See tasks.py."""

from __future__ import annotations

import socket
import sys
from collections.abc import Generator
from selectors import EVENT_READ, EVENT_WRITE
from typing import Any

from futures import Future, selector
from tasks import Task, loop
from web import address, body, links, request, show

Coroutine = Generator[Future, Any, Any]  # yields futures, and returns anything


def connect(url: str) -> Coroutine:
    sock = socket.socket()
    sock.setblocking(False)
    sock.connect_ex(address(url))
    f = Future()
    selector.register(sock, EVENT_WRITE, lambda: f.set_result(None))
    yield f  # (1)
    selector.unregister(sock)
    return sock


def read(sock: socket.socket) -> Coroutine:
    f = Future()
    selector.register(sock, EVENT_READ, lambda: f.set_result(sock.recv(4096)))
    chunk = yield f  # (2)
    selector.unregister(sock)
    return chunk


def read_all(sock: socket.socket) -> Coroutine:
    response = []
    while chunk := (yield from read(sock)):  # (3)
        response.append(chunk)
    return b"".join(response)


def fetch(url: str) -> Coroutine:
    with (yield from connect(url)) as sock:
        sock.sendall(request(url))
        response = yield from read_all(sock)  # (4)
        return body(response)


def crawl(root: str) -> set[str]:
    seen_urls, urls_todo = {root}, {root}

    def visit(url: str) -> Coroutine:
        page = yield from fetch(url)
        new = links(url, page) - seen_urls
        seen_urls.update(new)
        urls_todo.update(new)
        for link in sorted(new):
            Task(visit(link))
        urls_todo.discard(url)

    Task(visit(root))
    loop(urls_todo)
    return seen_urls


if __name__ == "__main__":
    show(crawl(sys.argv[1]))
