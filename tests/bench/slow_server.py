"""Serve a made site, each answer after a delay: `slow_server.py PAGES MS BEGIN END ADDRESS...`.

Started by `slow.py` and `many.py`; Linux only. One process, epoll and nothing else: some 20,000
answers a second. Each ADDRESS is a host with PAGES pages of its own, all on one port, which is
printed first. `/0` links to a tenth of them, 1,000 at most, every other page to ten: each page is
within reach, and there is work for all soon. With several hosts each link of a page leads to
another host, so that a client that takes them in turn goes from host to host. After BEGIN and
after END answers a line of JSON says how things stand. It ends when its standard input does.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import time
from collections import deque
from collections.abc import Sequence

LINKS = 10
STRIDE = 37
"""How many hosts further the next link of a page leads: any few pages reach all hosts alike."""
TEXT = "<p>" + "The quick brown fox jumps over the lazy dog, and then over the next. " * 20
FOUND = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%b"
MISSING = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n"


class Server:
    """Answer every request after `delay` seconds, in the order they came."""

    def __init__(self, pages: int, delay: float, marks: Sequence[int]) -> None:
        self.pages = pages
        self.delay = delay
        self.marks = list(marks)
        self.epoll = select.epoll()
        self.listeners: dict[int, tuple[socket.socket, int]] = {}
        self.hosts: list[str] = []
        self.connections: dict[int, tuple[socket.socket, int]] = {}
        self.waiting: deque[tuple[float, socket.socket, int, bytes]] = deque()
        self.answers = self.made = 0

    def listen(self, addresses: Sequence[str]) -> int:
        """Listen on all addresses; return the port."""
        port = 0
        for address in addresses:
            listener = socket.create_server((address, port), backlog=4096)
            listener.setblocking(False)
            port = listener.getsockname()[1]
            self.listeners[listener.fileno()] = listener, len(self.hosts)
            self.hosts.append(f"http://{address}:{port}")
            self.epoll.register(listener, select.EPOLLIN)
        return port

    def run(self) -> None:
        """Serve until standard input ends."""
        self.epoll.register(sys.stdin, select.EPOLLIN)
        while True:
            for number, _ in self.epoll.poll(self.timeout(), 1024):
                if number in self.connections:
                    self.read(*self.connections[number])
                elif number in self.listeners:
                    self.accept(*self.listeners[number])
                else:
                    return
            self.answer()

    def timeout(self) -> float | None:
        """Return the seconds until the next answer is due."""
        return max(0.0, self.waiting[0][0] - time.perf_counter()) if self.waiting else None

    def accept(self, listener: socket.socket, host: int) -> None:
        """Take one connection."""
        connection, _ = listener.accept()
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connections[connection.fileno()] = connection, host
        self.epoll.register(connection, select.EPOLLIN)
        self.made += 1

    def read(self, connection: socket.socket, host: int) -> None:
        """Take one request; it comes in one piece, for it is small and nothing is pipelined."""
        try:
            request = connection.recv(16_384)
        except ConnectionError:
            request = b""
        if request:
            self.waiting.append((time.perf_counter() + self.delay, connection, host, request))
        else:
            del self.connections[connection.fileno()]
            connection.close()

    def answer(self) -> None:
        """Answer what is due."""
        now = time.perf_counter()
        while self.waiting and self.waiting[0][0] <= now:
            _, connection, host, request = self.waiting.popleft()
            if connection.fileno() < 0:
                continue
            try:
                connection.send(self.page(request.split(b" ", 2)[1], host))
            except ConnectionError:
                continue

    def page(self, target: bytes, host: int) -> bytes:
        """Make the answer for a target, and count it if it is a page."""
        if not target[1:].isdigit() or int(target[1:]) >= self.pages:
            return MISSING
        number, wide = int(target[1:]), min(max(self.pages // 10, LINKS), 1000)
        first = wide + LINKS * (number - 1) + 1 if number else 1
        links = [page % self.pages for page in range(first, first + (LINKS if number else wide))]
        anchors = [
            f'<li><a href="{self.host_of(host + STRIDE * place)}/{page}">page {page}</a>'
            for place, page in enumerate(links, 1)
        ]
        text = f"<!doctype html><title>Page {number}</title>{TEXT}<ul>{''.join(anchors)}</ul>"
        self.count()
        return FOUND % (len(text), text.encode())

    def host_of(self, place: int) -> str:
        """Return what a link to a host begins with; to the only one it is relative."""
        return self.hosts[place % len(self.hosts)] if len(self.hosts) > 1 else ""

    def count(self) -> None:
        """Count an answer, and say how things stand if this is the moment."""
        self.answers += 1
        if self.answers in self.marks:
            mark = {
                "answers": self.answers,
                "seconds": time.perf_counter(),
                "server_cpu": time.process_time(),
                "open": len(self.connections),
                "made": self.made,
            }
            print(json.dumps(mark), flush=True)


def main(pages: str, delay: str, begin: str, end: str, *addresses: str) -> None:
    """Listen, print the port and serve."""
    server = Server(int(pages), int(delay) / 1000, (int(begin), int(end)))
    print(server.listen(addresses), flush=True)
    server.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
