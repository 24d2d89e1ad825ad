"""Crawl with sockets that block: one page after the other."""

from __future__ import annotations

import socket
import sys

from web import address, body, links, request, show


def fetch(url: str) -> bytes:
    sock = socket.create_connection(address(url), timeout=1)  # (1) (5)
    with sock:
        sock.sendall(request(url))  # (2)
        response = b""
        while chunk := sock.recv(4096):  # (3)
            response += chunk
    return body(response)


def crawl(root: str) -> set[str]:
    seen, todo = {root}, [root]
    while todo:
        url = todo.pop()
        new = links(url, fetch(url)) - seen  # (4)
        seen |= new
        todo += sorted(new)
    return seen


if __name__ == "__main__":
    show(crawl(sys.argv[1]))
