"""Count how often a crawl asks a socket for bytes that are not there."""

from __future__ import annotations

import socket
import sys
from importlib import import_module
from inspect import iscoroutinefunction

import trio

in_vain = 0
recv = socket.socket.recv


def counting(sock: socket.socket, *args: int) -> bytes:
    global in_vain
    try:
        return recv(sock, *args)
    except BlockingIOError:
        in_vain += sock.family == socket.AF_INET  # not Trio's own pair of sockets
        raise


def main(root: str, name: str) -> None:
    socket.socket.recv = counting  # type: ignore[method-assign, assignment]
    crawl = import_module(name).crawl
    pages = trio.run(crawl, root) if iscoroutinefunction(crawl) else crawl(root)
    often = "more than 20 times" if in_vain > 20 else f"{in_vain} times"
    print(f"{name}: {len(pages)} pages, asked in vain: {often}")


if __name__ == "__main__":
    main(*sys.argv[1:])
