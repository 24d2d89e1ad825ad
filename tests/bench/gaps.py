"""Measure the gaps between the starts of requests to each of many hosts, in a busy process.

    python tests/bench/gaps.py [--hosts 20] [--requests 500] [--delay 0.05] [--burn 0.03]

Needs `pip install -e .` (or PYTHONPATH=.).

The hosts are ports of a server in a process of its own. It notes when the first byte of each
request was read. It closes every seventh connection under the request that it reused, and every
fifth after its answer, so that some requests are sent again, and many need a new connection. The
crawler burns CPU between the outcomes. Its own clock is read just before the first byte is
written. By our clock no gap may be too short; at the server none by more than 5 ms.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import ClassVar

import trio

from trio_crawler import Crawler, HttpFetch, Limits, Politeness, Traps
from trio_crawler.net.dial.addresses import AddressPolicy
from trio_crawler.net.dial.connector import Dialer, connect

Starts = dict[int, list[float]]


class NotingSocket(socket.socket):
    """A socket that notes when a request is written."""

    starts: ClassVar[Starts] = defaultdict(list)

    def send(self, data: bytes, flags: int = 0) -> int:  # type: ignore[override]
        """Note the time, then send."""
        if data.startswith(b"GET "):
            self.starts[self.getpeername()[1]].append(time.monotonic())
        return super().send(data, flags)


async def noting_connect(address: str, port: int) -> socket.socket:
    """Connect as the wire does, by a socket that notes."""
    made = await connect(address, port)
    return NotingSocket(fileno=made.detach())


def address(number: int) -> str:
    """Return the address of a host."""
    return f"127.0.1.{number + 1}"


def serve(hosts: int, requests: int) -> None:
    """Answer at so many ports until standard input ends; then write the times of the requests."""
    chooser = selectors.DefaultSelector()
    starts: Starts = {}
    ports = []
    for number in range(hosts):
        # Ports of one address would share one delay.
        listener = socket.create_server((address(number), 0), backlog=128)
        # The times are noted by port, and two addresses may be given the same one.
        while (port := listener.getsockname()[1]) in ports:
            listener.close()
            listener = socket.create_server((address(number), 0), backlog=128)
        listener.setblocking(False)
        ports.append(port)
        starts[port] = []
        chooser.register(listener, selectors.EVENT_READ, port)
    print(json.dumps(ports), flush=True)
    chooser.register(sys.stdin, selectors.EVENT_READ, None)
    links = "".join(f'<a href="/{number}">x</a>' for number in range(requests))
    asked: dict[socket.socket, int] = {}
    count = 0
    while True:
        for key, _ in chooser.select():
            if key.data is None:
                print(json.dumps(starts), flush=True)
                return
            here = key.fileobj
            assert isinstance(here, socket.socket)
            if here not in asked:
                with_client, _ = here.accept()
                with_client.setblocking(False)
                asked[with_client] = 0
                chooser.register(with_client, selectors.EVENT_READ, key.data)
                continue
            data, now = here.recv(65536), time.monotonic()
            asked[here] += 1
            if data:
                starts[key.data].append(now)
                count += 1
            again = asked[here] > 1 and count % 7 == 0
            if data and not again:
                home = data.startswith(b"GET / ")
                body = links.encode() if home else b"a page"
                end = b"Connection: close\r\n" if count % 5 == 0 else b""
                head = (
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n%bContent-Length: %d\r\n\r\n"
                )
                here.sendall(head % (end, len(body)) + body)
            if not data or again:
                chooser.unregister(here)
                del asked[here]
                here.close()


@contextmanager
def served(hosts: int, requests: int) -> Iterator[tuple[list[int], subprocess.Popen[str]]]:
    """Run the server; yield its ports and its process."""
    command = [sys.executable, __file__, "--serve", "--hosts", str(hosts)]
    command += ["--requests", str(requests)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline()), process
        finally:
            process.kill()


async def crawl(ports: list[int], delay: float, burn: float, every: int) -> tuple[int, int]:
    """Crawl all ports in a busy process; return the numbers of pages and of repeated requests."""
    seeds = [f"http://{address(number)}:{port}/" for number, port in enumerate(ports)]
    async with HttpFetch(seeds=seeds) as fetch:
        wire = fetch._network.wire  # type: ignore[attr-defined]
        wire.connector.dial = Dialer(AddressPolicy(seeds, ()), connect=noting_connect)
        crawler = Crawler(
            seeds,
            fetch=fetch,
            workers=4 * len(ports),
            limits=Limits(),
            traps=Traps.off(),
            politeness=Politeness(delay=delay, robots=False),
        )
        count = 0
        async with crawler.outcomes() as outcomes:
            async for _ in outcomes:
                count += 1
                ends = time.perf_counter() + burn
                while not count % every and time.perf_counter() < ends:
                    pass
        return crawler.statistics().pages, wire.statistics().retried


def gaps(starts: Starts) -> list[float]:
    """Return the seconds between two starts at one host, of all hosts."""
    return sorted(b - a for times in starts.values() for a, b in pairwise(sorted(times)))


def measured(
    hosts: int, requests: int, delay: float, burn: float, every: int
) -> tuple[list[float], list[float], int, int]:
    """Return the gaps by our clock and at the server, the pages, and the repeated requests."""
    NotingSocket.starts.clear()
    with served(hosts, requests) as (ports, process):
        pages, again = trio.run(crawl, ports, delay, burn, every)
        out, _ = process.communicate("\n")
    seen = {int(port): times for port, times in json.loads(out).items()}
    return gaps(NotingSocket.starts), gaps(seen), pages, again


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure the gaps between starts at a host.")
    parser.add_argument("--hosts", type=int, default=20)
    parser.add_argument("--requests", type=int, default=500)
    parser.add_argument("--delay", type=float, default=0.05)
    parser.add_argument("--burn", type=float, default=0.03)
    parser.add_argument("--every", type=int, default=20, help="outcomes between two burns")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.hosts, given.requests)
        return
    began = time.perf_counter()
    ours, theirs, pages, again = measured(
        given.hosts, given.requests, given.delay, given.burn, given.every
    )
    load = os.getloadavg()[0]
    seconds = time.perf_counter() - began
    print(f"{pages} pages, {again} requests sent again, {seconds:.1f} s, load {load:.1f}")
    for name, found in (("by our clock", ours), ("at the server", theirs)):
        short = [gap for gap in found if gap < given.delay]
        far = [gap for gap in found if gap < given.delay - 0.005]
        median = found[len(found) // 2]
        print(
            f"{name}: {len(found)} gaps, {len(short)} short, {len(far)} by more than 5 ms;"
            f" least {found[0] * 1000:.3f} ms, median {median * 1000:.1f} ms"
        )


if __name__ == "__main__":
    main()
