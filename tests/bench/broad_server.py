"""Serve a broad web over sockets: `broad_server.py WEB TLS`, both JSON; Linux only.

Started by `broad.py`. WEB has the arguments of `BroadWeb`, TLS the file of a certificate with its
key. One process answers for all hosts by their Host header, at 127.0.0.1, and at 127.0.0.3 for
hosts that speak no TLS on the port of https. The ports are printed first. At each line of its
standard input it prints what it has seen, and it ends when that ends.
"""

from __future__ import annotations

import asyncio
import json
import math
import ssl
import sys
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from sites.broad import ROBOTS, BroadWeb, Reply
from sites.broad_watch import Watch

HERE, GARBAGE = "127.0.0.1", "127.0.0.3"
SLACK = 0.2
"""Seconds that a request may be early: it, or the answer before it, was under way."""
EACH = 3.0
"""Seconds for each figure of the pages per second."""


class Server:
    """What all connections have in common: the web, and what was seen."""

    def __init__(self, web: BroadWeb) -> None:
        self.web = web
        self.watch = Watch(web, slack=SLACK)
        self.loop = asyncio.get_running_loop()
        self.began = math.inf
        self.made = self.open = self.most_open = 0
        self.served: set[str] = set()
        self.again = 0
        self.times: list[float] = []

    def now(self) -> float:
        """Return the seconds since the first request."""
        self.began = min(self.began, perf_counter())
        return perf_counter() - self.began

    def record(self, url: str, reply: Reply, now: float) -> None:
        """Record an answer that is about to be sent."""
        self.watch.answer(url, reply, now)
        if reply.status != 200 or url.endswith(ROBOTS) or not self.web.is_wanted(url):
            return
        if url in self.served:
            self.again += 1
        else:
            self.served.add(url)
            self.times.append(now)

    def report(self) -> dict[str, Any]:
        """Return what was seen so far."""
        first = sorted(self.watch.first.values())
        rates = Counter(int(moment / EACH) for moment in self.times)
        violations = self.watch.violations
        return {
            "requests": self.watch.requests,
            "peak": self.watch.peak,
            "made": self.made,
            "most_open": self.most_open,
            "pages": len(self.served),
            "again": self.again,
            "marks": {str(part): _part(self.times, part) for part in (0.5, 0.9, 0.99, 1)},
            "first": {str(part): _part(first, part) for part in (0.5, 0.99, 1)},
            "rates": [rates[number] / EACH for number in range(max(rates, default=-1) + 1)],
            "violations": self.watch.count(),
            "examples": violations[:10],
            "robots": sum(self.watch.robots.values()),
            "names": len(first),
        }


class Plain(asyncio.Protocol):
    """One connection: requests in, answers out, each after its seconds."""

    def __init__(self, server: Server, scheme: str) -> None:
        self._server = server
        self._scheme = scheme
        self._received = b""
        self._asked: str | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count the connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        server = self._server
        server.made += 1
        server.open += 1
        server.most_open = max(server.most_open, server.open)

    def connection_lost(self, error: Exception | None) -> None:
        """End the request that waits for its answer."""
        self._server.open -= 1
        self._end()

    def data_received(self, data: bytes) -> None:
        """Take a request, when it is whole."""
        self._received += data
        if self._received.endswith(b"\r\n\r\n"):
            head, self._received = self._received, b""
            self._ask(head.decode("latin-1"))

    def _ask(self, head: str) -> None:
        server, now = self._server, self._server.now()
        target = head.split(" ", 2)[1]
        _, _, rest = head.partition("\r\nHost: ")
        url = f"{self._scheme}://{rest.partition(chr(13))[0]}{target}"
        asked = server.watch.start(url, now)
        self._asked = url
        reply = server.web.reply(url, asked)
        if reply.seconds < math.inf:
            server.loop.call_later(reply.seconds, self._send, url, reply)

    def _send(self, url: str, reply: Reply) -> None:
        if self._asked is None or self._transport.is_closing():
            return
        self._server.record(url, reply, self._server.now())
        fields = "".join(f"{name}: {value}\r\n" for name, value in reply.fields)
        head = f"HTTP/1.1 {reply.status} X\r\n{fields}Content-Length: {len(reply.body)}\r\n\r\n"
        self._end()
        self._transport.write(head.encode() + reply.body)

    def _end(self) -> None:
        if self._asked is not None:
            self._server.watch.end(self._asked)
            self._asked = None


class Garbage(asyncio.Protocol):
    """One connection to a port where no TLS is spoken."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer with no TLS, and close."""
        self._transport.write(b"220 mail.broad.test ESMTP\r\n")
        self._transport.close()


async def serve(made: dict[str, Any], certificate: str) -> None:
    """Listen, print the ports and serve until standard input ends."""
    loop = asyncio.get_running_loop()
    servers: list[Server] = []

    def plain() -> Plain:
        return Plain(servers[0], "http")

    def secure() -> Plain:
        return Plain(servers[0], "https")

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    http = await loop.create_server(plain, HERE, 0, backlog=4096)
    https = await loop.create_server(secure, HERE, 0, backlog=4096, ssl=context)
    ports = {"http": _port(http), "https": _port(https)}
    servers.append(Server(BroadWeb(**made, ports=ports)))
    await loop.create_server(plain, GARBAGE, ports["http"], backlog=4096)
    await loop.create_server(Garbage, GARBAGE, ports["https"], backlog=4096)
    print(json.dumps(ports), flush=True)
    over = asyncio.Event()

    def told() -> None:
        if sys.stdin.readline():
            print(json.dumps(servers[0].report()), flush=True)
        else:
            over.set()

    loop.add_reader(0, told)
    await over.wait()


def _port(server: asyncio.Server) -> int:
    found: int = server.sockets[0].getsockname()[1]
    return found


def _part(sorted_moments: list[float], part: float) -> float:
    """Return the moment by which a part of all have come; nan if none has."""
    if not sorted_moments:
        return math.nan
    return sorted_moments[max(0, math.ceil(part * len(sorted_moments)) - 1)]


if __name__ == "__main__":
    asyncio.run(serve(json.loads(sys.argv[1]), sys.argv[2]))
