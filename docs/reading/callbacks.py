"""Crawl with callbacks: an object keeps what a stack would keep."""

from __future__ import annotations

import socket
import sys
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector, SelectorKey

from web import address, body, links, request, show

selector = DefaultSelector()
urls_todo: set[str] = set()
seen_urls: set[str] = set()


class Fetcher:
    def __init__(self, url: str) -> None:
        self.url = url
        self.sock = socket.socket()  # (1)
        self.response = b""  # (2)

    def fetch(self) -> None:
        self.sock.setblocking(False)
        self.sock.connect_ex(address(self.url))
        selector.register(self.sock, EVENT_WRITE, self.connected)  # (3)

    def connected(self, key: SelectorKey, mask: int) -> None:
        selector.unregister(self.sock)
        self.sock.send(request(self.url))
        selector.register(self.sock, EVENT_READ, self.read_response)

    def read_response(self, key: SelectorKey, mask: int) -> None:  # (4)
        chunk = self.sock.recv(4096)
        if chunk:
            self.response += chunk  # (2)
            return  # it will be called again
        selector.unregister(self.sock)
        self.sock.close()
        add(links(self.url, body(self.response)))  # (5)
        urls_todo.remove(self.url)  # (6)


def add(urls: set[str]) -> None:
    for link in sorted(urls - seen_urls):
        seen_urls.add(link)
        urls_todo.add(link)
        Fetcher(link).fetch()


def loop() -> None:
    while urls_todo:  # (6)
        for key, mask in selector.select():
            callback = key.data
            callback(key, mask)


def crawl(root: str) -> set[str]:
    add({root})
    loop()
    return seen_urls


if __name__ == "__main__":
    show(crawl(sys.argv[1]))
