"""Servers that send a body in content codings, as RFC 9110, 8.4 has them or not."""

from __future__ import annotations

import gzip
import sys
import zlib

import brotli  # type: ignore[import-untyped]
from cases import for_each
from sites.exchange import KIB, MIB, meet, table
from sites.raw import chunked, reply

from trio_crawler.model import Phase, Reason

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PAGE = b"a page, a page, a page"
GZIP = gzip.compress(PAGE, mtime=0)
ZLIB = zlib.compress(PAGE)
BR = brotli.compress(PAGE)
ZSTD = zstd.compress(PAGE)


def coded(coding: str, body: bytes, status: int = 200) -> bytes:
    return reply(status, {"Content-Encoding": coding}, body)


GOOD = {
    "gzip": coded("gzip", GZIP),
    "gzip in capitals": coded("GZIP", GZIP),
    "the old name of gzip": coded("x-gzip", GZIP),
    "gzip in two members": coded(
        "gzip", gzip.compress(PAGE[:7], mtime=0) + gzip.compress(PAGE[7:], mtime=0)
    ),
    "gzip with zeros behind it": coded("gzip", GZIP + bytes(100)),
    "gzip with junk behind it": coded("gzip", GZIP + b"<!-- cached -->"),
    "deflate in zlib's format": coded("deflate", ZLIB),
    "deflate bare": coded("deflate", ZLIB[2:-4]),
    "br": coded("br", BR),
    "zstd": coded("zstd", ZSTD),
    "zstd in two frames": coded("zstd", zstd.compress(PAGE[:7]) + zstd.compress(PAGE[7:])),
    "gzip in gzip": coded("gzip, gzip", gzip.compress(GZIP, mtime=0)),
    "br in gzip": coded("br, gzip", gzip.compress(BR, mtime=0)),
    "zstd in br, in two fields": (
        reply(
            200,
            [("Content-Encoding", "zstd"), ("Content-Encoding", "br")],
            brotli.compress(ZSTD),
        )
    ),
    "identity": coded("identity", PAGE),
    "identity and gzip": coded("identity, gzip, identity", GZIP),
    "nothing, and says so": coded("", PAGE),
    "commas": coded(" , ,", PAGE),
}


@for_each("answer", table(GOOD))
async def test_a_body_is_decoded_from(answer: bytes) -> None:
    met = await meet(answer)
    assert (met.status, met.body) == (200, PAGE)
    assert met.kept
    assert met.bytes_in == len(answer)


async def test_a_body_is_decoded_that_comes_in_chunks_of_one_byte() -> None:
    head = {"Content-Encoding": "gzip", "Transfer-Encoding": "chunked"}
    pieces = [GZIP[place : place + 1] for place in range(len(GZIP))]
    met = await meet(reply(200, head, chunked(*pieces)))
    assert (met.body, met.kept) == (PAGE, True)


async def test_a_body_is_decoded_that_ends_with_its_connection() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\n"
    met = await meet(head + BR, closes=True)
    assert (met.body, met.kept) == (PAGE, False)


BAD = {
    "nobody knows": coded("lzma", PAGE),
    "is compress": coded("compress", b"\x1f\x9d\x90"),
    "was not offered, inside one that was": coded("bzip2, gzip", GZIP),
    "is a transfer coding": coded("chunked", PAGE),
    "has a weight": coded("gzip;q=1", GZIP),
    "has a name in Latin-1": coded("gz\xefp", GZIP),
    "has an escape in its name": coded("\x1b[31m", GZIP),
    "is one of three": coded("gzip, gzip, gzip", gzip.compress(gzip.compress(GZIP), mtime=0)),
    "is one of five hundred": coded("gzip," * 500 + "gzip", GZIP),
    "is said to be gzip and is not": coded("gzip", PAGE),
    "is gzip with a damaged middle": coded("gzip", GZIP[:12] + b"\xff\xff" + GZIP[14:]),
    "is gzip with a wrong sum": coded("gzip", GZIP[:-8] + b"\0\0\0\0" + GZIP[-4:]),
    "is gzip with a wrong length": coded("gzip", GZIP[:-1] + b"\xff"),
    "is gzip of an unknown method": coded("gzip", GZIP[:2] + b"\x07" + GZIP[3:]),
    "is deflate with a wrong sum": coded("deflate", ZLIB[:-1] + bytes([ZLIB[-1] ^ 1])),
    "is said to be br and is not": coded("br", b"\xff" * 50),
    "is br and goes on": coded("br", BR + b"more"),
    "is said to be zstd and is not": coded("zstd", PAGE),
    "is zstd and goes on": coded("zstd", ZSTD + PAGE),
    "is gzip inside, and damaged there": coded("gzip, br", brotli.compress(b"not gzip")),
}


@for_each("answer", table(BAD))
async def test_a_body_is_a_bad_reply_whose_coding(answer: bytes) -> None:
    met = await meet(answer)
    assert met.fault == (Reason.BAD_REPLY, Phase.READ)
    assert "body" in met.detail
    assert met.bytes_in <= len(answer)
    assert met.asked == 1


CUT = {
    "the last byte of gzip": coded("gzip", GZIP[:-1]),
    "the sum of gzip": coded("gzip", GZIP[:-8]),
    "half of gzip": coded("gzip", GZIP[: len(GZIP) // 2]),
    "all but the first byte of gzip": coded("gzip", GZIP[:1]),
    "the end of the second member of gzip": coded("gzip", GZIP + GZIP[:-1]),
    "the last byte of deflate": coded("deflate", ZLIB[:-1]),
    "the last byte of br": coded("br", BR[:-1]),
    "the last byte of zstd": coded("zstd", ZSTD[:-1]),
    "the end of a coding inside another": coded("gzip, br", brotli.compress(GZIP[:-1])),
}


@for_each("answer", table(CUT))
async def test_a_body_is_incomplete_that_lacks(answer: bytes) -> None:
    met = await meet(answer)
    assert met.fault == (Reason.INCOMPLETE, Phase.READ)
    assert met.asked == 1
    # The message itself was whole.
    assert met.kept


ZEROS = bytes(11 * MIB)
BOMBS = {
    "gzip": coded("gzip", gzip.compress(ZEROS, mtime=0)),
    "deflate": coded("deflate", zlib.compress(ZEROS)),
    "br": coded("br", brotli.compress(ZEROS)),
    "zstd": coded("zstd", zstd.compress(ZEROS)),
    "gzip in gzip": coded("gzip, gzip", gzip.compress(gzip.compress(ZEROS), mtime=0)),
    "br in br": coded("br, br", brotli.compress(brotli.compress(ZEROS))),
}


@for_each("answer", table(BOMBS))
async def test_a_bomb_is_too_large_of(answer: bytes) -> None:
    met = await meet(answer, max_bytes=10 * MIB)
    assert met.flaw is Reason.TOO_LARGE
    assert met.bytes_in < 100 * KIB


async def test_a_body_is_refused_in_a_hundred_thousand_members() -> None:
    members = gzip.compress(b"", mtime=0) * 100_000
    met = await meet(coded("gzip", members), max_bytes=10 * MIB)
    assert met.fault == (Reason.BAD_REPLY, Phase.READ)
    assert "members" in met.detail


ERRORS = {
    "gzip": coded("gzip", GZIP, 404),
    "br": coded("br", BR, 500),
    "a damaged gzip": coded("gzip", b"damaged", 503),
    "a coding nobody knows": coded("lzma", PAGE, 404),
    "five hundred codings": coded("gzip," * 500, PAGE, 400),
    "a bomb": coded("zstd", zstd.compress(ZEROS), 410),
}


@for_each("answer", table(ERRORS))
async def test_the_body_of_an_error_is_left_out_in(answer: bytes) -> None:
    met = await meet(answer)
    assert (met.body, met.kept) == (b"", True)
    assert met.status >= 400


async def test_the_body_of_an_error_comes_as_it_is_without_a_coding() -> None:
    met = await meet(reply(404, body=PAGE))
    assert (met.status, met.body, met.kept) == (404, PAGE, True)
