"""Whatever a server sends to ten workers, the process stays below 256 MiB."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import brotli
import pytest
import trio
from sites.raw import Handler, Request, html, reply, threaded_raw_server

pytestmark = pytest.mark.slow

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ROOT = Path(__file__).parents[2]
MIB = 1024 * 1024
MOST = 256 * MIB
WORKERS = 10
TWICE = 2 * WORKERS

CRAWL = """
import json, sys, trio
from trio_crawler import Crawler, Failure, HttpFetch, Limits, Politeness

async def main(url, workers):
    limits = Limits(max_tries=1, max_pages=60)
    politeness = Politeness(per_host=int(workers))
    fetch = HttpFetch(seeds=[url], timeout=20)
    options = {"limits": limits, "politeness": politeness, "fetch": fetch}
    crawler = Crawler([url], workers=int(workers), **options)
    reasons = {}
    async with fetch, crawler.outcomes() as outcomes:
        async for outcome in outcomes:
            name = outcome.reason if isinstance(outcome, Failure) else type(outcome).__name__
            name = "cut" if "too_large" in getattr(outcome, "flaws", ()) else name
            reasons[name] = reasons.get(name, 0) + 1
    status = open("/proc/self/status").read()
    peak = int(status.split("VmHWM:")[1].split()[0]) * 1024
    print(json.dumps({"peak": peak, "outcomes": reasons}))

trio.run(main, *sys.argv[1:])
"""


def crawled(site: Mapping[str, bytes | Handler]) -> dict[str, Any]:
    """Crawl a site in a process of its own; return its peak of memory and what it found."""
    with threaded_raw_server(site) as server:
        command = [sys.executable, "-c", CRAWL, server.url, str(WORKERS)]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def pages(page: bytes | Handler, count: int = TWICE) -> dict[str, bytes | Handler]:
    """Make a site of so many pages that are all the same, and the page that leads to them."""
    return {"/": html(*(f"/{n}" for n in range(count))), **{f"/{n}": page for n in range(count)}}


def coded(coding: str, body: bytes) -> bytes:
    said = {"Content-Type": "text/html", "Content-Encoding": coding}
    return reply(200, said, body)


def flood(begin: bytes, piece: bytes) -> Handler:
    """Send the same for ever."""

    async def handler(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(begin)
        while True:
            await stream.send_all(piece)

    return handler


def stalling(answer: bytes) -> Handler:
    """Send this much, and then nothing more for a while, so that all workers hold it at once."""

    async def handler(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(answer)
        with trio.move_on_after(5):
            await stream.receive_some()
        await stream.aclose()

    return handler


@cache
def zeros_by_gzip() -> bytes:
    machine = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join([*(machine.compress(bytes(MIB)) for _ in range(500)), machine.flush()])


@cache
def zeros_by_brotli() -> bytes:
    machine = brotli.Compressor(quality=1, lgwin=24)
    return b"".join([*(machine.process(bytes(MIB)) for _ in range(500)), machine.finish()])


@cache
def zeros_by_zstd() -> bytes:
    machine = zstd.ZstdCompressor()
    return b"".join([*(machine.compress(bytes(MIB)) for _ in range(500)), machine.flush()])


@cache
def noise_by_brotli() -> bytes:
    """Give nearly 10 MiB of brotli, which are as much when they are decoded."""
    noise = random.Random(1).randbytes(10 * MIB - 10_000)
    return brotli.compress(noise, quality=1)[:-100]


def page_of(body: bytes) -> bytes:
    return reply(200, {"Content-Type": "text/html"}, body)


def links(prefix: str) -> bytes:
    """Write nearly 10 MiB of links that all differ."""
    return b"".join(b'<a href="%s%d">l</a>\n' % (prefix.encode(), n) for n in range(220_000))


CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"
CLOSED = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"

SITES: dict[str, tuple[Callable[[], Mapping[str, bytes | Handler]], dict[str, int]]] = {
    "gzip": (lambda: pages(coded("gzip", zeros_by_gzip())), {"cut": TWICE}),
    "br": (lambda: pages(coded("br", zeros_by_brotli())), {"cut": TWICE}),
    "zstd": (lambda: pages(coded("zstd", zeros_by_zstd())), {"cut": TWICE}),
    "gzip in gzip": (
        lambda: pages(coded("gzip, gzip", gzip.compress(zeros_by_gzip(), mtime=0))),
        {"cut": TWICE},
    ),
    "br in br": (
        lambda: pages(coded("br, br", brotli.compress(zeros_by_brotli()))),
        {"cut": TWICE},
    ),
    "just below the limit": (
        lambda: pages(coded("br", brotli.compress(b" " * (10 * MIB)))),
        {"Page": TWICE + 1},
    ),
    "bodies without end": (
        lambda: pages(flood(CLOSED, b"x" * 65536)),
        {"cut": TWICE},
    ),
    "one chunk without end": (
        lambda: pages(flood(CHUNKED + b"fffffffffffffff\r\n", b"x" * 65536)),
        {"cut": TWICE},
    ),
    "chunks of one byte": (
        lambda: pages(flood(CHUNKED, b"1\r\nx\r\n" * 10_000), WORKERS),
        {"cut": WORKERS},
    ),
    "chunk extensions without end": (
        lambda: pages(flood(CHUNKED + b"1;", b"x" * 65536)),
        {"bad_reply": TWICE},
    ),
    "trailers without end": (
        lambda: pages(flood(CHUNKED + b"0\r\n", b"X-A: b\r\n" * 1000)),
        {"bad_reply": TWICE},
    ),
    "interim answers without end": (
        lambda: pages(flood(b"", b"HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n" * 100)),
        {"bad_reply": TWICE},
    ),
    "headers without end": (
        lambda: pages(flood(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n" * 1000)),
        {"bad_reply": TWICE},
    ),
    "one header without end": (
        lambda: pages(flood(b"HTTP/1.1 200 OK\r\nX-A: ", b"x" * 65536)),
        {"bad_reply": TWICE},
    ),
    "large pages held by all workers at once": (
        lambda: pages(
            stalling(
                CLOSED.replace(b"\r\n\r\n", b"\r\nContent-Length: 10485760\r\n\r\n")
                + b" " * (10 * MIB - 1)
            ),
            WORKERS,
        ),
        {"incomplete": WORKERS},
    ),
    "large coded pages held by all workers at once": (
        lambda: pages(
            stalling(
                CLOSED.replace(
                    b"\r\n\r\n", b"\r\nContent-Encoding: br\r\nContent-Length: 10485760\r\n\r\n"
                )
                + noise_by_brotli()
            ),
            WORKERS,
        ),
        {"incomplete": WORKERS},
    ),
    "large pages of text": (
        lambda: pages(page_of(b"<p>text " * (MIB + MIB // 4 - 100))),
        {"Page": TWICE + 1},
    ),
    "large pages of links to another site": (
        lambda: pages(page_of(links("http://other.test/")), WORKERS),
        {"Page": WORKERS + 1},
    ),
    "large pages of links of their own": (
        lambda: pages(page_of(links("/x")), WORKERS),
        {"Page": 60},
    ),
    "large pages of emoji and links": (
        lambda: pages(page_of("<p>\U0001f600".encode() + links("http://other.test/")), WORKERS),
        {"Page": WORKERS + 1},
    ),
    "large pages of one tag": (
        lambda: pages(page_of(b"<a " + b"b=c " * (2 * MIB)), WORKERS),
        {"Page": WORKERS + 1},
    ),
}


@pytest.mark.parametrize("name", SITES)
def test_ten_workers_stay_within_their_memory(name: str) -> None:
    make, outcomes = SITES[name]
    found = crawled(make())
    assert found["peak"] < MOST, f"{found['peak'] / MIB:.0f} MiB"
    assert {name: found["outcomes"].get(name) for name in outcomes} == outcomes
