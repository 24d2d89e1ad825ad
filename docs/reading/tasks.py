"""Crawl with tasks: each resumes a generator of futures. See futures.py."""

from __future__ import annotations

import socket
import sys
from collections.abc import Generator
from selectors import EVENT_READ, EVENT_WRITE
from typing import Any

from futures import Future, selector
from web import address, body, links, request, show


class Task:
    def __init__(self, coro: Generator[Future, Any, None]) -> None:
        self.coro = coro
        self.step(None)

    def step(self, future: Future | None) -> None:
        result = future.result if future else None  # None: to start
        try:
            next_future = self.coro.send(result)
        except StopIteration:  # the generator has returned
            return
        next_future.add_done_callback(self.step)


def loop(urls_todo: set[str]) -> None:
    while urls_todo:
        for key, _ in selector.select():
            key.data()


class Crawler:
    def __init__(self) -> None:
        self.seen_urls: set[str] = set()
        self.urls_todo: set[str] = set()
        self.socks: list[socket.socket] = []

    def crawl(self, root: str) -> set[str]:
        self.add({root})
        try:
            loop(self.urls_todo)  # (1)
        finally:
            if self.urls_todo:
                print(
                    "sockets still open:", sum(s.fileno() > 0 for s in self.socks)
                )
        return self.seen_urls

    def add(self, urls: set[str]) -> None:
        new = urls - self.seen_urls
        self.seen_urls |= new
        self.urls_todo |= new
        for url in sorted(new):
            Task(self.fetch(url))  # (2)

    def fetch(self, url: str) -> Generator[Future, Any, None]:
        response = b""
        with socket.socket() as sock:  # (3)
            self.socks.append(sock)
            sock.setblocking(False)
            sock.connect_ex(address(url))
            f = Future()
            selector.register(sock, EVENT_WRITE, lambda: f.set_result(None))
            yield f  # (4)
            selector.unregister(sock)
            sock.sendall(request(url))
            while True:
                f = Future()
                selector.register(
                    sock, EVENT_READ, lambda: f.set_result(sock.recv(4096))
                )
                chunk = yield f  # (5)
                selector.unregister(sock)
                if not chunk:
                    break
                response += chunk
        self.add(links(url, body(response)))  # (6)
        self.urls_todo.discard(url)


if __name__ == "__main__":
    show(Crawler().crawl(sys.argv[1]))
