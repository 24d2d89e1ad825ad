"""The floor: Trio, httptools, selectolax and nothing else, `raw_crawler.py URL N`.

    python tests/bench/raw_crawler.py http://127.0.0.1:8000/ 10

One socket for each worker, kept open; no time-out, no limit, no check, no retry. It fetches http
and nothing else, and a response that is not as it should be ends it. What is left is what any
crawler on these libraries pays: "1.3 times raw" is measured against this.
"""

from __future__ import annotations

import socket
import sys

import httptools
import trio
from shape import Frontier, run

# One for all: nothing else runs between the reading of a piece and the parsing of it.
PIECE = memoryview(bytearray(256 * 1024))


class Exchange:
    """Collect one response; the parser calls the methods that begin with `on_`."""

    __slots__ = ("body", "complete", "content_type", "location")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Make ready for the next response."""
        self.body: list[bytes] = []
        self.content_type = self.location = ""
        self.complete = False

    def on_header(self, name: bytes, value: bytes) -> None:
        # The lengths rule out nearly every other header without a lower-cased copy.
        if len(name) == 12 and name.lower() == b"content-type":
            self.content_type = value.decode("latin-1")
        elif len(name) == 8 and name.lower() == b"location":
            self.location = value.decode("latin-1")

    def on_body(self, part: bytes) -> None:
        self.body.append(part)

    def on_message_complete(self) -> None:
        self.complete = True


async def crawl(frontier: Frontier, workers: int) -> None:
    """Run to the end of the frontier."""
    async with trio.open_nursery() as nursery:
        for _ in range(workers):
            nursery.start_soon(work, frontier)


async def work(frontier: Frontier) -> None:
    """Fetch what the frontier gives, over one connection."""
    authority = frontier.host[len("http://") : -1]
    after = f" HTTP/1.1\r\nHost: {authority}\r\nAccept: */*\r\n\r\n".encode()
    target = len(frontier.host) - 1
    exchange = Exchange()
    parser = httptools.HttpResponseParser(exchange)
    with await connected(authority) as peer:
        async for url in frontier.jobs:
            exchange.reset()
            peer.send(b"GET " + url[target:].encode() + after)
            while not exchange.complete:
                await trio.lowlevel.wait_readable(peer)
                size = peer.recv_into(PIECE)
                if not size:
                    raise SystemExit(f"the server ended the connection at {url}")
                parser.feed_data(PIECE[:size])
            body = b"".join(exchange.body)
            status = parser.get_status_code()
            frontier.settle(url, status, exchange.content_type, exchange.location, body)


async def connected(authority: str) -> socket.socket:
    """Connect to an address of IPv4."""
    host, _, port = authority.partition(":")
    peer = socket.socket()
    peer.setblocking(False)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if peer.connect_ex((host, int(port or 80))):
        await trio.lowlevel.wait_writable(peer)
    return peer


if __name__ == "__main__":
    run(crawl, *sys.argv[1:])
