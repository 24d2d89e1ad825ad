"""A task of Trio has a parent, whose block does not end before it."""

from __future__ import annotations

import sys

import trio
from web import address, body, links, request, show


class Crawler:
    def __init__(self) -> None:
        self.seen_urls: set[str] = set()
        self.urls_todo: set[str] = set()
        self.streams: list[trio.SocketStream] = []

    async def crawl(self, root: str) -> set[str]:
        try:
            async with trio.open_nursery() as self.nursery:  # (1)
                self.add({root})
        finally:
            if self.urls_todo:
                socks = [stream.socket for stream in self.streams]
                print("sockets still open:", sum(s.fileno() > 0 for s in socks))
        return self.seen_urls

    def add(self, urls: set[str]) -> None:
        new = urls - self.seen_urls
        self.seen_urls |= new
        self.urls_todo |= new
        for url in sorted(new):
            self.nursery.start_soon(self.fetch, url)  # (2)

    async def fetch(self, url: str) -> None:
        response = b""
        async with await trio.open_tcp_stream(*address(url)) as stream:  # (3) (4)
            self.streams.append(stream)
            await stream.send_all(request(url))
            async for chunk in stream:  # (5)
                response += chunk
        self.add(links(url, body(response)))  # (6)
        self.urls_todo.discard(url)


async def main(root: str) -> None:
    show(await Crawler().crawl(root))


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
