"""Crawl with sockets that never block: ask each again and again."""

from __future__ import annotations

import socket
import sys
from collections import Counter

from web import address, body, links, request, show

TRIES = 20_000  # a guard of ours: the chapter's loop has none
in_vain: Counter[str] = Counter()


def start(url: str) -> socket.socket:
    sock = socket.socket()
    sock.setblocking(False)
    sock.connect_ex(address(url))  # (1)
    return sock


def send(sock: socket.socket, data: bytes) -> None:
    for _ in range(TRIES):
        try:
            sock.send(data)  # (2)
            return
        except OSError as error:  # not connected yet, or never
            in_vain[type(error).__name__] += 1
    raise SystemExit(f"gave up: {dict(in_vain)}")


def fetch_all(urls: set[str]) -> dict[str, bytes]:
    socks = {url: start(url) for url in sorted(urls)}
    responses = dict.fromkeys(socks, b"")
    for url, sock in socks.items():
        send(sock, request(url))
    while socks:
        for url, sock in list(socks.items()):
            try:
                chunk = sock.recv(4096)  # (3)
            except BlockingIOError as error:
                in_vain[type(error).__name__] += 1
                continue
            responses[url] += chunk
            if not chunk:
                socks.pop(url).close()
    return responses


def crawl(root: str) -> set[str]:
    seen, todo = set[str](), {root}
    while todo:
        seen |= todo
        pages = fetch_all(todo)  # (4)
        found = [links(url, body(pages[url])) for url in pages]
        todo = set().union(*found) - seen
    return seen


def closed() -> str:
    """Return a URL of loopback where no server listens."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return f"http://127.0.0.1:{sock.getsockname()[1]}/"


def main(root: str) -> None:
    pages = crawl(root)
    often = "yes" if in_vain["BlockingIOError"] > 100 * len(pages) else "no"
    print("asked in vain over 100 times a page:", often)
    show(pages)


if __name__ == "__main__":
    main(closed() if sys.argv[2:] == ["refused"] else sys.argv[1])
