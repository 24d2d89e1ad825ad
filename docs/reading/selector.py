"""Crawl with a selector: a callback runs once its socket is ready."""

from __future__ import annotations

import socket
import sys
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector

from web import address, body, links, request, show

selector = DefaultSelector()


def fetch(url: str, pages: dict[str, bytes]) -> None:
    sock = socket.socket()
    sock.setblocking(False)
    sock.connect_ex(address(url))  # (1)

    def connected() -> None:
        selector.unregister(sock)
        sock.send(request(url))  # (2)
        selector.register(sock, EVENT_READ, readable)  # (3)

    def readable() -> None:
        selector.unregister(sock)
        sock.setblocking(True)
        with sock, sock.makefile("rb") as response:
            pages[url] = body(response.read())  # (4)

    selector.register(sock, EVENT_WRITE, connected)  # (1)


def fetch_all(urls: set[str]) -> dict[str, bytes]:
    pages: dict[str, bytes] = {}
    for url in sorted(urls):
        fetch(url, pages)
    while selector.get_map():  # (5)
        for key, _ in selector.select():
            key.data()
    return pages


def crawl(root: str) -> set[str]:
    seen, todo = set[str](), {root}
    while todo:
        seen |= todo
        pages = fetch_all(todo)
        found = [links(url, pages[url]) for url in pages]
        todo = set().union(*found) - seen
    return seen


if __name__ == "__main__":
    show(crawl(sys.argv[1]))
