"""Servers that never come to an end, in bytes or in time."""

from __future__ import annotations

import gzip
from itertools import repeat

import pytest
import trio
from cases import for_each
from sites.exchange import KIB, MIB, meet, table
from sites.raw import Handler, Request, chunked, redirect, reply, silence
from trio.testing import MockClock

from trio_crawler.model import Phase, Reason

LIMIT = 10 * MIB
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def endless(begin: bytes, piece: bytes) -> Handler:
    """Send `begin` and then, for ever, `piece`, 64 KiB at a time."""
    block = piece * (64 * KIB // len(piece) + 1)

    async def flood(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(begin)
        for data in repeat(block):
            await stream.send_all(data)

    return flood


def drip(begin: bytes, piece: bytes, seconds: float = 1.0) -> Handler:
    """Send `begin` and then, for ever, `piece`, with a pause before each."""

    async def drops(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(begin)
        for data in repeat(piece):
            await trio.sleep(seconds)
            await stream.send_all(data)

    return drops


@pytest.fixture
def in_no_time(mock_clock: MockClock) -> MockClock:
    """Let the clock jump to the next timeout when nothing has happened for a moment."""
    mock_clock.autojump_threshold = 0.02
    return mock_clock


# Heads.

HEADS = {
    "a header line of 1 MB": OK + b"X: " + b"y" * MIB + b"\r\n\r\n",
    "a header name of 1 MB": OK + b"X" * MIB + b": y\r\n\r\n",
    "a header line of 66 KiB": OK + b"X: " + b"y" * 66 * KIB + b"\r\nContent-Length: 0\r\n\r\n",
    "300 header lines": OK + b"X: y\r\n" * 300 + b"Content-Length: 0\r\n\r\n",
    "257 header lines": OK + b"X: y\r\n" * 256 + b"Content-Length: 0\r\n\r\n",
    "257 folded header lines": OK + b"X: y\r\n z\r\n" * 256 + b"Content-Length: 0\r\n\r\n",
    "10,000 cookies": OK + b"Set-Cookie: a=b\r\n" * 10_000 + b"Content-Length: 0\r\n\r\n",
    "cookies of 70 KiB": OK + b"Set-Cookie: a=%s\r\n" % (b"b" * 1400) * 50 + b"\r\n",
    "header lines without end": endless(OK, b"X: y\r\n"),
    "cookies without end": endless(OK, b"Set-Cookie: name=value; Path=/\r\n"),
    "a header line without end": endless(OK + b"X: ", b"y"),
    "a header name without end": endless(OK, b"X"),
    "a status line without end": endless(b"HTTP/1.1 200 ", b"O"),
    "a folded line without end": endless(OK + b"X: y\r\n", b" z\r\n"),
    "lines without a colon without end": endless(OK, b"no colon\r\n"),
    "carriage returns without end": endless(OK, b"\r"),
    "spaces without end": endless(OK + b"X", b" "),
    "NULs without end": endless(OK, b"\0"),
}


@for_each("behaviour", table(HEADS))
async def test_a_head_is_refused_with(behaviour: bytes | Handler) -> None:
    met = await meet(behaviour)
    assert met.fault == (Reason.BAD_REPLY, Phase.WAIT)
    assert "header" in met.detail
    assert (met.kept, met.asked, met.made) == (False, 1, 2)
    assert met.bytes_in <= 192 * KIB


LARGE = {
    "256 header lines": OK + b"X: y\r\n" * 255 + b"Content-Length: 0\r\n\r\n",
    "64 KiB": (OK + b"Content-Length: 0\r\nX: ").ljust(64 * KIB - 4, b"y") + b"\r\n\r\n",
}


@pytest.mark.parametrize("answer", table(LARGE))
async def test_a_head_is_read_with(answer: bytes) -> None:
    met = await meet(answer)
    assert (met.status, met.kept, met.bytes_in) == (200, True, len(answer))


async def test_a_head_of_one_byte_more_than_64_kib_is_refused() -> None:
    met = await meet((OK + b"Content-Length: 0\r\nX: ").ljust(64 * KIB - 3, b"y") + b"\r\n\r\n")
    assert met.fault == (Reason.BAD_REPLY, Phase.WAIT)


# Bodies.

LENGTH = OK + b"Content-Length: %d\r\n\r\n"
TOO_LARGE = {
    "with its length": LENGTH % (LIMIT + 1) + bytes(LIMIT + 1),
    "in chunks": CHUNKED + chunked(*[bytes(MIB)] * 10, b"x"),
    "in one chunk": CHUNKED + chunked(bytes(LIMIT + 1)),
    "without a length": OK + b"\r\n" + bytes(LIMIT + 1),
    "of an error": b"HTTP/1.1 500 Oh\r\n\r\n" + bytes(LIMIT + 1),
    "without end": endless(OK + b"\r\n", b"x"),
    "in chunks without end": endless(CHUNKED, b"1000\r\n%s\r\n" % bytes(4096)),
    "in small chunks without end": endless(CHUNKED, b"5\r\nhello\r\n"),
    "in chunks of one byte with extensions without end": endless(CHUNKED, b"1;a=b\r\nx\r\n"),
    "of an error without end": endless(b"HTTP/1.1 404 N\r\n\r\n", b"x"),
    "in gzip without end": endless(
        OK + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"", mtime=0), b"x"
    ),
    "of 2 to the 60 bytes": endless(LENGTH % 2**60, b"x"),
}


@for_each("behaviour", table(TOO_LARGE))
async def test_a_body_is_too_large(behaviour: bytes | Handler) -> None:
    met = await meet(behaviour, max_bytes=LIMIT, closes=True, deadline=30)
    assert met.flaw is Reason.TOO_LARGE
    assert (met.kept, met.asked, met.made) == (False, 1, 2)


WHOLE = {
    "with its length": (LENGTH % LIMIT + bytes(LIMIT), True),
    "in chunks": (CHUNKED + chunked(*[bytes(MIB)] * 10), True),
    "without a length": (OK + b"\r\n" + bytes(LIMIT), False),
}


@pytest.mark.parametrize(("answer", "kept"), table(WHOLE))
async def test_a_body_of_just_ten_mib_comes_whole(answer: bytes, kept: bool) -> None:
    met = await meet(answer, max_bytes=LIMIT, closes=not kept)
    assert met.body == bytes(LIMIT)
    assert (met.kept, met.bytes_in) == (kept, len(answer))


FRAMING_BYTES = {
    "a chunk extension without end": endless(CHUNKED + b"5;", b"a"),
    "a chunk extension's value without end": endless(CHUNKED + b"5;a=", b"b"),
    "chunk extensions without end": endless(CHUNKED + b"5", b";a=b"),
    "zeros before a size without end": endless(CHUNKED, b"0"),
    "spaces behind a size without end": endless(CHUNKED + b"5", b" "),
    "trailers without end": endless(CHUNKED + b"0\r\n", b"X: y\r\n"),
    "a trailer without end": endless(CHUNKED + b"0\r\nX: ", b"y"),
    "a trailer's name without end": endless(CHUNKED + b"0\r\n", b"X"),
    "trailers without end behind a body": endless(CHUNKED + b"5\r\nhello\r\n0\r\n", b"X: y\r\n"),
}


@for_each("behaviour", table(FRAMING_BYTES))
async def test_chunks_are_refused_with(behaviour: Handler) -> None:
    met = await meet(behaviour, max_bytes=LIMIT)
    assert met.fault == (Reason.BAD_REPLY, Phase.READ)
    assert "extensions or trailers" in met.detail
    assert met.bytes_in <= 256 * KIB
    assert (met.kept, met.asked, met.made) == (False, 1, 2)


async def test_long_extensions_around_single_bytes_are_left_at_the_limit() -> None:
    met = await meet(endless(CHUNKED, b"1;%s\r\nx\r\n" % (b"a" * 60_000)), max_bytes=MIB)
    assert met.flaw is Reason.TOO_LARGE


REDIRECTS = {
    "with its length": LENGTH.replace(b"200 OK", b"302 F\r\nLocation: /x") % LIMIT + bytes(LIMIT),
    "without end": endless(b"HTTP/1.1 302 F\r\nLocation: /x\r\n\r\n", b"x"),
    "in chunks without end": endless(
        CHUNKED.replace(b"200 OK", b"301 M\r\nLocation: /x"), b"5\r\nhello\r\n"
    ),
    "that never comes": b"HTTP/1.1 307 T\r\nLocation: /x\r\nContent-Length: 9\r\n\r\n",
    "that is said to be endless": (
        b"HTTP/1.1 308 P\r\nLocation: /x\r\nContent-Length: 9999999999999999\r\n\r\n"
    ),
    "that is a damaged bomb": endless(
        b"HTTP/1.1 303 S\r\nLocation: /x\r\nContent-Encoding: gzip, br, zstd\r\n\r\n", b"x"
    ),
    "in damaged chunks": CHUNKED.replace(b"200 OK", b"302 F\r\nLocation: /x") + b"damaged",
}


@for_each("behaviour", table(REDIRECTS))
async def test_the_body_of_a_redirect_is_not_read(behaviour: bytes | Handler) -> None:
    met = await meet(behaviour)
    assert 300 <= met.status < 400
    assert met.body == b""
    assert (met.kept, met.asked, met.made) == (False, 1, 2)
    assert met.bytes_in <= 128 * KIB


async def test_the_body_of_a_redirect_that_is_here_already_costs_no_connection() -> None:
    answer = redirect("/x").replace(b"Content-Length: 0", b"Content-Length: 5") + b"moved"
    met = await meet(answer)
    assert (met.status, met.body, met.kept) == (302, b"", True)


# Time: the clock is virtual, and the deadline the default of 30 seconds.

WAIT, READ = Phase.WAIT, Phase.READ
SLOW = {
    "says nothing": (silence, WAIT),
    "sends a byte of the status line a second": (drip(b"HTTP/1.1 200 ", b"O"), WAIT),
    "sends a header line a second": (drip(OK, b"X: y\r\n"), WAIT),
    "sends a fold a second": (drip(OK + b"X: y\r\n", b" z\r\n"), WAIT),
    "sends an interim answer in ten seconds": (
        drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 10),
        WAIT,
    ),
    "stops in the status line": (b"HTTP/1.1 2", WAIT),
    "stops behind an interim answer": (b"HTTP/1.1 103 Early Hints\r\n\r\n", WAIT),
    "stops before the empty line": (OK + b"Content-Length: 4\r\n", WAIT),
    "stops in the empty line": (OK + b"Content-Length: 4\r\n\r", WAIT),
    "stops before the body": (LENGTH % 4, READ),
    "stops in the body": (LENGTH % 4 + b"pag", READ),
    "stops without having said a length": (OK + b"\r\npage", READ),
    "stops before the first chunk": (CHUNKED, READ),
    "stops in a chunk": (CHUNKED + b"5\r\nhel", READ),
    "stops before the last chunk": (CHUNKED + b"5\r\nhello\r\n", READ),
    "stops in the last line end": (CHUNKED + b"0\r\n\r", READ),
    "stops in the trailers": (CHUNKED + b"0\r\nX: y\r\n", READ),
    "sends a byte of the body a second": (drip(LENGTH % 1000, b"x"), READ),
    "sends a byte a second without a length": (drip(OK + b"\r\n", b"x"), READ),
    "sends a chunk a second": (drip(CHUNKED, b"1\r\nx\r\n"), READ),
    "sends a chunk extension's byte a second": (drip(CHUNKED + b"1;", b"x"), READ),
    "sends a trailer a second": (drip(CHUNKED + b"0\r\n", b"X: y\r\n"), READ),
    "sends a byte of an error a second": (drip(b"HTTP/1.1 500 Oh\r\n\r\n", b"x"), READ),
    "sends a byte of a gzip a second": (
        drip(OK + b"Content-Encoding: gzip\r\n\r\n\x1f\x8b\x08\0", b"\0"),
        READ,
    ),
}


@pytest.mark.parametrize(("behaviour", "phase"), table(SLOW))
async def test_the_deadline_ends_a_fetch_from_a_server_that(
    behaviour: bytes | Handler, phase: Phase, in_no_time: MockClock
) -> None:
    met = await meet(behaviour, deadline=30)
    assert met.fault == (Reason.TIMEOUT, phase)
    assert 30 <= met.seconds < 31
    assert "30 seconds" in met.detail
    assert (met.kept, met.asked, met.made) == (False, 1, 2)


async def test_the_deadline_does_not_wait_for_the_body_of_a_redirect(
    in_no_time: MockClock,
) -> None:
    met = await meet(drip(b"HTTP/1.1 302 F\r\nLocation: /x\r\n\r\n", b"x"), deadline=30)
    assert (met.status, met.kept) == (302, False)
    assert met.seconds < 1


async def test_an_answer_just_before_the_deadline_counts(in_no_time: MockClock) -> None:
    async def late(request: Request, stream: trio.abc.Stream) -> None:
        await trio.sleep(29)
        await stream.send_all(reply(body=b"late"))

    met = await meet(late, deadline=30)
    assert (met.body, met.kept) == (b"late", True)
    assert met.seconds >= 29
