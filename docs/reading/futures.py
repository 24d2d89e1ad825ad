"""Crawl with futures: objects for what will come, with callbacks."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from typing import Any

from web import address, body, links, request, show

selector = DefaultSelector()


class Future:
    def __init__(self) -> None:
        self.done = False
        self.result: Any = None
        self._callbacks: list[Callable[[Future], None]] = []

    def add_done_callback(self, fn: Callable[[Future], None]) -> None:
        if self.done:  # too late to be called by set_result
            fn(self)
        else:
            self._callbacks.append(fn)

    def set_result(self, result: Any) -> None:
        self.done, self.result = True, result
        while self._callbacks:
            self._callbacks.pop(0)(self)


def ready(sock: socket.socket, event: int) -> Future:
    f = Future()
    selector.register(sock, event, f.set_result)
    return f


def fetch(url: str) -> Future:  # (1)
    page, response = Future(), b""  # (2)

    def connected(f: Future) -> None:
        f.result.sendall(request(url))
        ready(f.result, EVENT_READ).add_done_callback(read_response)

    def read_response(f: Future) -> None:
        nonlocal response
        if chunk := f.result.recv(4096):  # (3)
            response += chunk
            return ready(f.result, EVENT_READ).add_done_callback(read_response)
        f.result.close()
        if not response:
            raise ConnectionError(f"{url} hung up")  # (4)
        page.set_result(body(response))  # (5)

    sock = socket.socket()
    sock.setblocking(False)
    sock.connect_ex(address(url))
    ready(sock, EVENT_WRITE).add_done_callback(connected)
    return page


def crawl(root: str) -> set[str]:
    seen_urls, urls_todo = {root}, {root}

    def visit(url: str) -> None:
        def parse(f: Future) -> None:
            for link in sorted(links(url, f.result) - seen_urls):
                visit(link)
            urls_todo.discard(url)

        seen_urls.add(url)
        urls_todo.add(url)
        try:
            fetch(url).add_done_callback(parse)  # (6)
        except ConnectionError as error:  # (7)
            print(error)

    visit(root)
    while urls_todo:
        for key, _ in selector.select():
            selector.unregister(key.fileobj)
            key.data(key.fileobj)  # a future's set_result
    return seen_urls


if __name__ == "__main__":
    show(crawl(sys.argv[1]))
