"""What is read of a robots.txt and of a sitemap: by the wire, a caller's client and a proxy."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
import zlib
from collections.abc import Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import brotli
import pytest
import trio
from cases import for_each
from sites.raw import (
    Handler,
    Request,
    Server,
    chunked,
    reply,
    threaded_raw_server,
)
from trio.testing import wait_all_tasks_blocked

from trio_crawler.model import Fault, Job, Purpose, Reason, Response
from trio_crawler.net.fetch import HttpFetch
from trio_crawler.net.fetcher import SITEMAP_BYTES
from trio_crawler.policy.robots import MAX_BYTES as ROBOTS_BYTES

KIB = 1024
MIB = 1024 * KIB
MOST_READ = ROBOTS_BYTES + 256 * KIB
STEP = 16 * KIB
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
CODED = OK + b"Content-Encoding: %s\r\nContent-Length: 100000000\r\n\r\n"
LINE = b"Disallow: /%d\n"
RULES = b"User-agent: *\n" + b"".join(LINE % n for n in range(60_000))
NOISE = random.Random(1).randbytes(ROBOTS_BYTES * 2)


def bit_by_bit(begin: bytes, pieces: Sequence[bytes] = (), tail: bytes = b"") -> Handler:
    """Send the next piece when what was sent before has been read, and then the tail for ever."""

    async def handler(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(begin)
        for piece in chain(pieces, repeat(tail) if tail else ()):
            await wait_all_tasks_blocked()
            await stream.send_all(piece)
        await wait_all_tasks_blocked()
        await stream.aclose()

    return handler


async def is_left(server: Server) -> bool:
    """Tell whether the client has closed its connections, when nothing more happens."""
    await wait_all_tasks_blocked(0.01)
    return server.open == 0


def steps(body: bytes, size: int = STEP) -> list[bytes]:
    return [body[start : start + size] for start in range(0, len(body), size)]


def chunk(body: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(body), body)


def brotli_of(size: int) -> bytes:
    machine = brotli.Compressor(quality=1)
    return b"".join(machine.process(bytes(MIB)) for _ in range(size // MIB)) + machine.finish()


def brotli_begun() -> bytes:
    """Write 760 KB of brotli that are 4 GB of zeros, and no end."""
    machine = brotli.Compressor(quality=1)
    first, second = (machine.process(bytes(MIB)) + machine.flush() for _ in range(2))
    return bytes(first + second * 4000)


def robots(url: str, **more: Any) -> Job:
    return Job(url + "robots.txt", purpose=Purpose.ROBOTS, **more)


def sitemap(url: str, **more: Any) -> Job:
    return Job(url + "sitemap.xml", purpose=Purpose.SITEMAP, **more)


def body_of(answer: Response | Fault) -> bytes:
    assert isinstance(answer, Response), answer
    return answer.body


def flaw_of(answer: Response | Fault) -> Reason | None:
    assert isinstance(answer, Response), answer
    return answer.flaw


def reason_of(answer: Response | Fault) -> Reason:
    assert isinstance(answer, Fault), answer
    assert answer.detail.isprintable()
    return answer.reason


# robots.txt: the beginning is given.

LONG: dict[str, tuple[bytes, Sequence[bytes], bytes]] = {
    "of 100 MB as it says": (OK + b"Content-Length: 100000000\r\n\r\n", steps(RULES), RULES),
    "that never ends": (OK + b"\r\n", steps(RULES), RULES),
    "of chunks that never end": (CHUNKED, [chunk(step) for step in steps(RULES)], RULES),
    "of gzip": (CODED % b"gzip", steps(gzip.compress(NOISE, 1, mtime=0)), NOISE),
    "of br": (CODED % b"br", steps(brotli.compress(NOISE, quality=0)), NOISE),
    "of deflate in gzip": (
        CODED % b"deflate, gzip",
        steps(gzip.compress(zlib.compress(NOISE, 1), 1, mtime=0)),
        NOISE,
    ),
    "that is a bomb without end": (CODED % b"br", steps(brotli_begun()), bytes(MIB)),
}


@for_each("name", LONG)
async def test_a_robots_file_is_cut_at_500_kib(asked: Any, name: str) -> None:
    begin, pieces, whole = LONG[name]
    async with asked(bit_by_bit(begin, pieces, chunk(bytes(STEP)))) as (server, url, fetch):
        body = body_of(await fetch(robots(url)))
        assert await is_left(server)
    assert body == whole[:ROBOTS_BYTES]
    assert ROBOTS_BYTES < server.sent <= MOST_READ


def gzip_of_nothing(text: bytes) -> bytes:
    """Write a gzip file that goes on for 2 MB behind the text and adds nothing to it."""
    machine = zlib.compressobj(9, zlib.DEFLATED, 31)
    begun = machine.compress(text) + machine.flush(zlib.Z_SYNC_FLUSH)
    return begun + b"\x00\x00\x00\xff\xff" * 400_000 + machine.flush()


BOMBS = {
    "gzip": ("gzip", gzip.compress(RULES + bytes(20 * MIB), 1, mtime=0), RULES),
    "br": ("br", brotli_of(20 * MIB), bytes(ROBOTS_BYTES)),
    "gzip in gzip": (
        "gzip, gzip",
        gzip.compress(gzip.compress(bytes(20 * MIB), 1, mtime=0)),
        bytes(MIB),
    ),
    "br in br": ("br, br", brotli.compress(brotli_of(20 * MIB), quality=1), bytes(MIB)),
    "much of gzip that says little, in gzip": (
        "gzip, gzip",
        gzip.compress(gzip_of_nothing(b"User-agent: *\n"), mtime=0),
        b"User-agent: *\n",
    ),
}


@for_each("name", BOMBS)
async def test_a_bomb_as_a_robots_file_is_cut(asked: Any, name: str) -> None:
    coding, bomb, whole = BOMBS[name]
    answer = reply(200, {"Content-Encoding": coding}, bomb)
    async with asked({"/robots.txt": answer, "http://h.test/robots.txt": answer}) as (
        server,
        url,
        fetch,
    ):
        body = body_of(await fetch(robots(url)))
    assert body == whole[:ROBOTS_BYTES]
    assert server.sent <= MOST_READ


@pytest.mark.parametrize("asked", ["wire", "proxy"], indirect=True)
async def test_a_robots_file_that_is_little_in_much_is_cut(asked: Any) -> None:
    # How much a caller's client takes for a chunk is its own affair.
    flood = bit_by_bit(CHUNKED + b"3\r\nUse\r\n", tail=b"1;a=bcdef\r\nx\r\n" * 1000)
    async with asked(flood) as (server, url, fetch):
        body = body_of(await fetch(robots(url)))
        assert await is_left(server)
    assert body[:4] == b"Usex"
    assert 10_000 < len(body) < ROBOTS_BYTES
    assert server.sent <= MOST_READ


async def test_a_coded_robots_file_that_is_little_in_much_is_cut() -> None:
    little = b"".join(
        b"1;%s\r\n%c\r\n" % (b"a" * 50, byte) for byte in gzip.compress(NOISE, 1, mtime=0)
    )
    begin = CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n")
    with threaded_raw_server({"/robots.txt": begin + little[: 2 * MIB]}) as server:
        async with HttpFetch(seeds=[server.url]) as fetch:
            body = body_of(await fetch(robots(server.url)))
            assert fetch.statistics().wire.bytes_in <= MOST_READ
    assert len(body) > 5_000
    assert NOISE.startswith(body)


async def test_what_is_damaged_behind_500_kib_does_not_matter(asked: Any) -> None:
    encoded = gzip.compress(RULES[: ROBOTS_BYTES + 50 * KIB], mtime=0)[:-8] + b"damaged!"
    async with asked(bit_by_bit(coded("gzip", encoded))) as (_, url, fetch):
        assert body_of(await fetch(robots(url))) == RULES[:ROBOTS_BYTES]


async def test_nothing_is_waited_for_behind_500_kib(asked: Any) -> None:
    async def stopping(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(OK + b"Content-Length: 100000000\r\n\r\n" + RULES[:ROBOTS_BYTES])
        await trio.sleep_forever()

    async with asked(stopping, timeout=60) as (_, url, fetch):
        with trio.fail_after(20):
            body = body_of(await fetch(robots(url)))
    assert body == RULES[:ROBOTS_BYTES]


@for_each("size", [ROBOTS_BYTES - 1, ROBOTS_BYTES])
@for_each("coding", ["", "gzip", "br"])
async def test_a_robots_file_of_500_kib_comes_whole(asked: Any, size: int, coding: str) -> None:
    body = NOISE[:size]
    encoded = {
        "": body,
        "gzip": gzip.compress(body, 1, mtime=0),
        "br": brotli.compress(body, quality=0),
    }
    answer = reply(200, {"Content-Encoding": coding}, encoded[coding])

    async def site(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(answer)

    async with asked(site) as (server, url, fetch):
        assert body_of(await fetch(robots(url))) == body
        assert body_of(await fetch(robots(url))) == body
    assert asked.way != "wire" or server.connections == 1


@for_each("max_bytes", [1, 20 * MIB])
async def test_the_limit_for_pages_is_not_that_of_robots_files(asked: Any, max_bytes: int) -> None:
    async def site(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(reply(body=RULES))

    async with asked(site, max_bytes=max_bytes) as (_, url, fetch):
        assert body_of(await fetch(robots(url))) == RULES[:ROBOTS_BYTES]


async def test_a_connection_whose_robots_file_was_cut_is_not_used_again() -> None:
    site = {"/robots.txt": reply(body=RULES), "/": reply(body=b"page")}
    with threaded_raw_server(site) as server:
        async with HttpFetch(seeds=[server.url]) as fetch:
            assert body_of(await fetch(robots(server.url))) == RULES[:ROBOTS_BYTES]
            assert fetch.statistics().wire.open == 0
            assert body_of(await fetch(Job(server.url))) == b"page"
    assert server.connections == 2


@for_each(
    "body",
    [
        "User-agent: *\nDisallow: /\n".encode("utf-16"),
        "User-agent: *\nDisallow: /\n".encode("utf-32-be"),
        bytes(1000),
        b"\xef\xbb\xbfUser-agent: *\x00\rDisallow: /\xff\n",
        b"",
    ],
)
async def test_a_robots_file_comes_byte_for_byte_whatever_it_says_it_is(
    asked: Any, body: bytes
) -> None:
    async def site(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(reply(200, {"Content-Type": "text/plain; charset=rot13"}, body))

    async with asked(site) as (_, url, fetch):
        assert body_of(await fetch(robots(url))) == body


SHORT = {
    "its length": reply(200, {"Content-Length": "1000"}, b"User-agent: *\n"),
    "a length above 500 KiB": reply(200, {"Content-Length": "100000000"}, b"User-agent: *\n"),
    "its last chunk": CHUNKED + b"5\r\nUser-\r\n",
    "the end of its gzip": reply(
        200, {"Content-Encoding": "gzip"}, gzip.compress(b"a" * 99, mtime=0)[:-1]
    ),
    "the end of its br": reply(200, {"Content-Encoding": "br"}, brotli.compress(NOISE[:99])[:-1]),
}


@for_each("name", SHORT)
async def test_a_robots_file_that_ends_before_is_incomplete(asked: Any, name: str) -> None:
    async with asked(bit_by_bit(SHORT[name])) as (_, url, fetch):
        assert reason_of(await fetch(robots(url))) is Reason.INCOMPLETE


@for_each("coding", ["gzip", "br", "zstd", "rot13", "gzip, gzip, gzip"])
async def test_a_robots_file_that_cannot_be_decoded_is_a_bad_reply(
    asked: Any, coding: str
) -> None:
    answer = reply(200, {"Content-Encoding": coding}, b"\x1f\x8b" + b"\xff" * 700 * KIB)
    async with asked(bit_by_bit(answer)) as (_, url, fetch):
        assert reason_of(await fetch(robots(url))) is Reason.BAD_REPLY


# What is no robots file or sitemap.


@for_each("make", [robots, sitemap])
@for_each(
    "begin",
    [
        b"HTTP/1.1 404 N\r\n\r\n",
        b"HTTP/1.1 500 Oh\r\nContent-Length: 100000000\r\n\r\n",
        b"HTTP/1.1 403 N\r\nTransfer-Encoding: chunked\r\n\r\ndamaged",
        b"HTTP/1.1 429 N\r\nContent-Encoding: rot13\r\nContent-Length: 9\r\n\r\n",
    ],
)
async def test_the_body_of_an_error_is_not_waited_for(asked: Any, make: Any, begin: bytes) -> None:
    status = int(begin.split()[1])
    async with asked(bit_by_bit(begin, tail=bytes(STEP))) as (server, url, fetch):
        answer = await fetch(make(url))
        assert await is_left(server)
    assert isinstance(answer, Response), answer
    assert (answer.status, answer.body) == (status, b"")
    assert server.sent <= 256 * KIB


@pytest.mark.parametrize("make", [robots, sitemap])
async def test_an_error_whose_body_is_here_already_costs_no_connection(make: Any) -> None:
    site = {"/robots.txt": reply(404, body=b"no"), "/sitemap.xml": reply(410, body=b"no")}
    with threaded_raw_server(site) as server:
        async with HttpFetch(seeds=[server.url]) as fetch:
            for _ in range(3):
                assert body_of(await fetch(make(server.url))) == b""
    assert server.connections == 1


async def test_the_body_of_an_error_that_is_a_page_is_read(asked: Any) -> None:
    async def site(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(reply(404, body=b"not here"))

    async with asked(site) as (_, url, fetch):
        assert body_of(await fetch(Job(url + "robots.txt"))) == b"not here"


# Sitemaps.


@for_each(
    "options, most",
    [
        ({}, SITEMAP_BYTES),
        ({"max_bytes": 20 * MIB}, SITEMAP_BYTES),
        ({"max_bytes": 60 * MIB}, 60 * MIB),
        ({"max_bytes": 10 * MIB - 1}, 10 * MIB - 1),
        ({"max_bytes": 1000}, 1000),
    ],
)
async def test_a_sitemap_has_its_own_limit_unless_the_callers_is_lower_or_higher(
    asked: Any, options: dict[str, int], most: int
) -> None:
    async def site(request: Request, stream: trio.abc.Stream) -> None:
        length = most if request.target.endswith("most.xml") else most + 1
        await stream.send_all(reply(200, {"Content-Length": str(length)}))
        await stream.aclose()

    async with asked(site, **options) as (_, url, fetch):
        within = await fetch(Job(url + "most.xml", purpose=Purpose.SITEMAP))
        above = await fetch(Job(url + "more.xml", purpose=Purpose.SITEMAP))
    assert [reason_of(within), reason_of(above)] == [Reason.INCOMPLETE, Reason.TOO_LARGE]


async def test_a_sitemap_may_be_longer_than_a_page(asked: Any) -> None:
    size = 11 * MIB
    answer = reply(200, {"Content-Encoding": "gzip"}, gzip.compress(bytes(size), 1, mtime=0))

    async def site(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(
            answer if request.target.endswith("xml") else reply(body=bytes(size))
        )

    async with asked(site) as (_, url, fetch):
        assert len(body_of(await fetch(sitemap(url)))) == size
        assert flaw_of(await fetch(Job(url + "page.xml"))) is Reason.TOO_LARGE
        assert len(body_of(await fetch(Job(url + "plain", purpose=Purpose.SITEMAP)))) == size
        assert flaw_of(await fetch(Job(url + "plain"))) is Reason.TOO_LARGE


async def test_a_sitemap_is_not_cut(asked: Any) -> None:
    flood = bit_by_bit(OK + b"\r\n", tail=bytes(STEP))
    async with asked(flood, max_bytes=MIB) as (_, url, fetch):
        assert reason_of(await fetch(sitemap(url))) is Reason.TOO_LARGE


MEMORY = """
import json, sys, trio
from trio_crawler.model import Fault, Job, Purpose
from trio_crawler.net.fetch import HttpFetch

async def main(url, *names):
    told = {}
    async with HttpFetch(seeds=[url]) as fetch:
        for name in names:
            answer = await fetch(Job(url + name, purpose=Purpose.SITEMAP))
            told[name] = answer.detail if isinstance(answer, Fault) else len(answer.body)
            del answer
    status = open("/proc/self/status").read()
    peak = int(status.split("VmHWM:")[1].split()[0]) * 1024
    print(json.dumps({"peak": peak, "told": told}))

trio.run(main, *sys.argv[1:])
"""


def sitemap_of(size: int) -> bytes:
    """Write a sitemap of this many bytes."""
    head, end = b"<urlset>\n", b"</urlset>"
    body = head + b"".join(b"<url><loc>http://h.test/%d</loc></url>\n" % n for n in range(50_000))
    return body.ljust(size - len(end)) + end


@pytest.mark.slow
def test_the_largest_sitemaps_and_bombs_stay_within_256_mib() -> None:
    largest = sitemap_of(SITEMAP_BYTES)
    noise = random.Random(1).randbytes(SITEMAP_BYTES - 10 * KIB)
    site = {
        "plain": reply(body=largest),
        "chunks": reply(200, {"Transfer-Encoding": "chunked"}, chunked(*steps(largest))),
        "gzip": coded("gzip", gzip.compress(largest, 1, mtime=0)),
        "br": coded("br", brotli.compress(largest, quality=1)),
        "br of noise": coded("br", brotli.compress(noise, quality=0)),
        "gzip of more": coded("gzip", gzip.compress(largest + b"\n", 1, mtime=0)),
        "bomb of gzip": coded("gzip", gzip.compress(bytes(80 * MIB), 1, mtime=0)),
        "bomb of br": coded("br", brotli_of(80 * MIB)),
        "more": reply(body=largest + b"\n"),
    }
    expected = {
        **dict.fromkeys(("plain", "chunks", "gzip", "br"), SITEMAP_BYTES),
        "br of noise": len(noise),
        **dict.fromkeys(
            ("gzip of more", "bomb of gzip", "bomb of br"),
            f"the decoded body has more than {SITEMAP_BYTES} bytes",
        ),
        "more": f"the body has {SITEMAP_BYTES + 1} bytes; {SITEMAP_BYTES} are the limit",
    }
    by_target = {"/" + name.replace(" ", "-"): answer for name, answer in site.items()}
    with threaded_raw_server(by_target) as server:
        names = [target[1:] for target in by_target]
        command = [sys.executable, "-c", MEMORY, server.url, *names]
        root = Path(__file__).parents[2]
        run = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert found["told"] == {name.replace(" ", "-"): told for name, told in expected.items()}
    assert found["peak"] < 256 * MIB, f"{found['peak'] / MIB:.0f} MiB"


def coded(coding: str, body: bytes) -> bytes:
    return reply(200, {"Content-Encoding": coding}, body)


# HTTP/2.
