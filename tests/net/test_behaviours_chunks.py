"""Servers that send a body in chunks, as RFC 9112, 7.1 has it or not."""

from __future__ import annotations

import trio
from cases import for_each
from sites.exchange import KIB, MIB, meet, table
from sites.raw import Request, chunked, reset

from trio_crawler.model import Phase, Reason

OK = b"HTTP/1.1 200 OK\r\n"
HEAD = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def coded(*codings: bytes) -> bytes:
    """Write a page of five bytes in chunks, with these transfer codings."""
    lines = b"".join(b"Transfer-Encoding: %s\r\n" % one for one in codings)
    return OK + lines + b"\r\n" + chunked(b"hello")


GOOD = {
    "one chunk": HEAD + chunked(b"hello"),
    "a chunk for each byte": HEAD + chunked(b"h", b"e", b"l", b"l", b"o"),
    "a size with leading zeros": HEAD + b"0000005\r\nhello\r\n0\r\n\r\n",
    "many zeros for the last chunk": HEAD + b"5\r\nhello\r\n00000000\r\n\r\n",
    "spaces behind a size": HEAD + b"5   \r\nhello\r\n0 \r\n\r\n",
    "a tab behind a size": HEAD + b"5\t\r\nhello\r\n0\r\n\r\n",
    "a space before an extension": HEAD + b"5 ;name\r\nhello\r\n0\r\n\r\n",
    "an extension": HEAD + b"5;name\r\nhello\r\n0\r\n\r\n",
    "an extension with a value": HEAD + b"5;name=value;other=1\r\nhello\r\n0;end=yes\r\n\r\n",
    "a quoted extension": HEAD + b'5;name="a b;c"\r\nhello\r\n0\r\n\r\n',
    "a trailer": HEAD + chunked(b"hello", trailers=b"X-Sum: 7\r\n"),
    "a trailer without a value": HEAD + chunked(b"hello", trailers=b"X-Sum:\r\n"),
    "a trailer in lower case": HEAD + chunked(b"hello", trailers=b"x-sum:7\r\n"),
    "a hundred trailers": HEAD + chunked(b"hello", trailers=b"X: y\r\n" * 100),
    "a trailer that says close": HEAD + chunked(b"hello", trailers=b"Connection: close\r\n"),
    "a trailer that is a status line's end": HEAD + chunked(b"hello", trailers=b"HTTP: 1.1\r\n"),
    "the coding in capitals": coded(b"CHUNKED"),
    "the coding in a list with nothing": coded(b", chunked,"),
    "the coding with spaces around it": coded(b" \t chunked \t"),
    "identity before it": coded(b"identity, chunked"),
    "identity in a field before it": coded(b"identity", b"chunked"),
}


@for_each("answer", table(GOOD))
async def test_chunks_are_joined_with(answer: bytes) -> None:
    met = await meet(answer)
    assert met.body == b"hello"
    assert met.kept
    assert met.bytes_in == len(answer)


SIZES = {
    "in lower case hex": (b"1a", 26),
    "in upper case hex": (b"1A", 26),
    "of 64 KiB": (b"10000", 64 * KIB),
    "of the whole limit": (b"19000", 100 * KIB),
    "of sixteen digits": (b"000000000000001a", 26),
}


@for_each("size, length", table(SIZES))
async def test_a_chunk_may_have_a_size(size: bytes, length: int) -> None:
    met = await meet(HEAD + size + b"\r\n" + bytes(length) + b"\r\n0\r\n\r\n")
    assert met.body == bytes(length)
    assert met.kept


async def test_a_body_in_chunks_of_one_byte_comes_whole() -> None:
    met = await meet(HEAD + b"1\r\nx\r\n" * 20_000 + b"0\r\n\r\n", max_bytes=20_000)
    assert met.body == b"x" * 20_000
    assert met.kept


DAMAGED = {
    "a size that is no number": HEAD + b"xyz\r\nhello\r\n0\r\n\r\n",
    "a negative size": HEAD + b"-5\r\nhello\r\n0\r\n\r\n",
    "a size with a plus": HEAD + b"+5\r\nhello\r\n0\r\n\r\n",
    "a size with 0x": HEAD + b"0x5\r\nhello\r\n0\r\n\r\n",
    "a size with an underscore": HEAD + b"0_5\r\nhello\r\n0\r\n\r\n",
    "no size": HEAD + b"\r\nhello\r\n0\r\n\r\n",
    "only an extension": HEAD + b";a=b\r\nhello\r\n0\r\n\r\n",
    "a space before the size": HEAD + b" 5\r\nhello\r\n0\r\n\r\n",
    "two sizes": HEAD + b"5 5\r\nhello\r\n0\r\n\r\n",
    "only a space for a size": HEAD + b" \r\nhello\r\n0\r\n\r\n",
    "a size of twenty digits": HEAD + b"F" * 20 + b"\r\nhello\r\n",
    "a size that is 5 modulo 2 to the 64": HEAD + b"10000000000000005\r\nhello\r\n0\r\n\r\n",
    "a chunk longer than its size": HEAD + b"4\r\nhello\r\n0\r\n\r\n",
    "a chunk without its line end": HEAD + b"5\r\nhello0\r\n\r\n",
    "a chunk shorter than its size": HEAD + b"7\r\nhello\r\n0\r\n\r\n",
    "a bare CR behind the size": HEAD + b"5\rhello\r\n0\r\n\r\n",
    "a NUL in an extension": HEAD + b"5;a\0b\r\nhello\r\n0\r\n\r\n",
    "a trailer without a colon": HEAD + b"5\r\nhello\r\n0\r\nwhat is this\r\n\r\n",
    "a NUL in a trailer": HEAD + b"5\r\nhello\r\n0\r\nX: a\0b\r\n\r\n",
    "257 trailers": HEAD + chunked(b"hello", trailers=b"X: y\r\n" * 258),
    "no chunk at all": HEAD + b"<html>hello</html>",
    "an answer in place of a chunk": HEAD + OK + b"\r\n",
}


@for_each("answer", table(DAMAGED))
async def test_a_chunked_body_is_damaged_by(answer: bytes) -> None:
    met = await meet(answer)
    assert met.fault == (Reason.BAD_REPLY, Phase.READ)
    assert "chunks" in met.detail
    assert (met.kept, met.asked, met.made) == (False, 1, 2)
    assert met.bytes_in == len(answer)


CUT = {
    "before the first chunk": HEAD,
    "in a size": HEAD + b"1",
    "behind a size": HEAD + b"5\r\n",
    "in a chunk": HEAD + b"5\r\nhel",
    "behind a chunk": HEAD + b"5\r\nhello",
    "before the last chunk": HEAD + b"5\r\nhello\r\n",
    "in the last chunk": HEAD + b"5\r\nhello\r\n0\r\n",
    "in the last line end": HEAD + b"5\r\nhello\r\n0\r\n\r",
    "in a trailer": HEAD + b"5\r\nhello\r\n0\r\nX-Sum: 7",
    "behind a trailer": HEAD + b"5\r\nhello\r\n0\r\nX-Sum: 7\r\n",
    "in a chunk of 2 to the 60 bytes": HEAD + b"1000000000000000\r\nhello",
}


@for_each("answer", table(CUT))
async def test_a_chunked_body_is_incomplete_that_ends(answer: bytes) -> None:
    met = await meet(answer, closes=True)
    assert met.fault == (Reason.INCOMPLETE, Phase.READ)
    assert "cut off" in met.detail
    assert (met.kept, met.asked) == (False, 1)
    assert met.bytes_in == len(answer)


async def test_a_chunked_body_that_is_reset_says_what_came() -> None:
    async def broken(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(HEAD + b"5\r\nhello\r\n")
        await trio.testing.wait_all_tasks_blocked()
        await reset(request, stream)

    met = await meet(broken)
    assert met.fault == (Reason.RESET, Phase.READ)
    assert "after 5 bytes" in met.detail


NOT_OFFERED = {
    "gzip": coded(b"gzip"),
    "gzip before chunked": coded(b"gzip, chunked"),
    "gzip in a field before chunked": coded(b"gzip", b"chunked"),
    "chunked before gzip": coded(b"chunked, gzip"),
    "chunked twice in a list": coded(b"chunked, chunked"),
    "chunked twice in two fields": coded(b"chunked", b"chunked"),
    "a word that ends like chunked": coded(b"xchunked"),
    "a word that begins like chunked": coded(b"chunkedx"),
    "chunked with a parameter": coded(b"chunked;q=1"),
    "chunked in quotes": coded(b'"chunked"'),
    "chunked behind a vertical tab": coded(b"\x0bchunked"),
    "an empty word in quotes": coded(b'""'),
    "compress": coded(b"compress"),
    "trailers": coded(b"trailers"),
    "a word in Latin-1": coded(b"\xe7hunked"),
}


@for_each("answer", table(NOT_OFFERED))
async def test_a_transfer_coding_is_refused_that_is(answer: bytes) -> None:
    met = await meet(answer)
    assert met.fault == (Reason.BAD_REPLY, Phase.WAIT)
    assert "transfer coding" in met.detail
    assert (met.kept, met.asked, met.made) == (False, 1, 2)


async def test_a_transfer_coding_counts_that_is_folded() -> None:
    met = await meet(OK + b"Transfer-Encoding:\r\n chunked\r\n\r\n" + chunked(b"hello"))
    assert (met.body, met.kept) == (b"hello", False)


async def test_a_huge_chunk_is_left_at_the_limit() -> None:
    async def flood(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(HEAD + b"7fffffffffffffff\r\n")
        while True:
            await stream.send_all(bytes(64 * KIB))

    met = await meet(flood, max_bytes=MIB)
    assert met.flaw is Reason.TOO_LARGE
    assert not met.kept
