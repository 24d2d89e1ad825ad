"""Measure what the wire alone costs: N workers fetch a list of URLs, with no crawl around them.

    python tests/bench/wire.py [--root DIR] [--workers 10] [--urls 2000] [--rounds 15]

Needs `pip install -e '.[bench]'`; nginx if there is one. `ours` is `HttpFetch`, called with a job
for each URL; `raw` is a socket and httptools without a limit, a deadline or a check, as in
`raw_crawler.py`. Both run in this process in turns, over connections that are kept. Without
`--root` the site is 200 pages of 1 to 100 KiB. Figures are microseconds of CPU a URL, the median
and the least of all rounds.
"""

from __future__ import annotations

import argparse
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TypeAlias
from urllib.parse import quote

import httptools
import trio
from measure import CLIENT, load, serving
from raw_crawler import PIECE, Exchange, connected

from trio_crawler import HttpFetch, Job, Response

Peer: TypeAlias = Callable[[list[str]], Awaitable[None]]
"""Fetches URLs until the list, which others share, is empty."""


@asynccontextmanager
async def ours(site: str, workers: int) -> AsyncIterator[Peer]:
    """Return a peer that calls the fetch of this package."""
    async with HttpFetch(seeds=[site]) as fetch:

        async def work(urls: list[str]) -> None:
            while urls:
                answer = await fetch(Job(urls.pop()))
                if not isinstance(answer, Response) or answer.status != 200:
                    raise SystemExit(f"ours got {answer}")

        yield work


@asynccontextmanager
async def raw(site: str, workers: int) -> AsyncIterator[Peer]:
    """Return a peer that does the least that fetches a URL."""
    authority = site[len("http://") : -1]
    idle = [await connected(authority) for _ in range(workers)]
    after = f" HTTP/1.1\r\nHost: {authority}\r\nAccept: */*\r\n\r\n".encode()

    async def work(urls: list[str]) -> None:
        peer = idle.pop()
        exchange = Exchange()
        parser = httptools.HttpResponseParser(exchange)
        while urls:
            url = urls.pop()
            await _exchanged(peer, parser, exchange, url[len(site) - 1 :].encode() + after)
            if parser.get_status_code() != 200:
                raise SystemExit(f"raw got {parser.get_status_code()}")
            b"".join(exchange.body)
        idle.append(peer)

    try:
        yield work
    finally:
        for peer in idle:
            peer.close()


async def _exchanged(
    peer: socket.socket, parser: httptools.HttpResponseParser, exchange: Exchange, request: bytes
) -> None:
    exchange.reset()
    peer.send(b"GET " + request)
    while not exchange.complete:
        await trio.lowlevel.wait_readable(peer)
        size = peer.recv_into(PIECE)
        if not size:
            raise SystemExit("the server ended the connection")
        parser.feed_data(PIECE[:size])


PEERS = {"ours": ours, "raw": raw}


async def measured(site: str, paths: Sequence[str], options: argparse.Namespace) -> None:
    """Let the peers take turns, and print what each has cost."""
    urls = [site + path for path in paths]
    urls = (urls * (options.urls // len(urls) + 1))[: options.urls]
    costs: dict[str, list[float]] = {name: [] for name in options.peers}
    async with AsyncExitStack() as stack:
        peers = {
            name: await stack.enter_async_context(PEERS[name](site, options.workers))
            for name in options.peers
        }
        # The first round opens the connections, and is not counted.
        for number in range(options.rounds + 1):
            for name, work in peers.items():
                cost = await _cost(work, urls, options.workers)
                costs[name] += [cost] if number else []
    for name, figures in costs.items():
        print(f"{name:5}{median(figures):8.1f} us a URL, least {min(figures):.1f}")
    if {"ours", "raw"} <= costs.keys():
        pairs = zip(costs["ours"], costs["raw"], strict=True)
        middle, least = ((f(costs["ours"]) / f(costs["raw"])) for f in (median, min))
        print(f"ours/raw {middle:.2f}, of the least {least:.2f}", end="; ")
        print(f"ours - raw {median(one - other for one, other in pairs):.1f} us")


async def _cost(work: Peer, urls: Sequence[str], workers: int) -> float:
    left = list(urls)
    began = time.process_time()
    async with trio.open_nursery() as nursery:
        for _ in range(workers):
            nursery.start_soon(work, left)
    return (time.process_time() - began) / len(urls) * 1e6


def make_site(root: Path) -> None:
    """Write 200 pages, most of them small and some large, as in a manual."""
    # nginx may run as another user.
    root.chmod(0o755)
    for number in range(200):
        size = 1024 * (1 + 99 * (number % 10) ** 3 // 9**3)
        Path(root, f"{number}.html").write_text(f"<p>{'word ' * (size // 5)}")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description="Measure the wire alone.")
    parser.add_argument("--root", type=Path)
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--workers", type=int, default=10)
    parser.add_argument("--urls", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    with ExitStack() as stack:
        root = options.root
        if root is None:
            root = Path(stack.enter_context(TemporaryDirectory()))
            make_site(root)
        files = sorted(path for path in root.rglob("*.html") if path.is_file())
        paths = [quote(str(path.relative_to(root))) for path in files]
        _, site = stack.enter_context(serving(root))
        if hasattr(os, "sched_setaffinity") and len(os.sched_getaffinity(0)) > 1:
            os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[CLIENT]})
        print(f"{options.urls} URLs, {options.workers} workers, {load()}")
        trio.run(measured, site, paths, options)


if __name__ == "__main__":
    main()
