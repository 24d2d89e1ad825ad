"""Servers that say how long a body is, wrongly or not at all, and statuses without a body."""

from __future__ import annotations

import pytest
import trio
from cases import for_each
from sites.exchange import KIB, meet, table
from sites.raw import Request, reset

from trio_crawler.model import Phase, Reason

OK = b"HTTP/1.1 200 OK\r\n"
DIGITS_19 = b"9" * 19


def said(*lengths: bytes) -> bytes:
    """Write a page of five bytes with these lengths."""
    return OK + b"".join(b"Content-Length: %s\r\n" % one for one in lengths) + b"\r\nhello"


RIGHT = {
    "said once": said(b"5"),
    "said twice": said(b"5", b"5"),
    "said seven times": said(*[b"5"] * 7),
    "said twice in one field": said(b"5, 5"),
    "said twice in one field without a space": said(b"5,5"),
    "said in a field and in a list": said(b"5", b"5,5"),
    "with leading zeros": said(b"0000005"),
    "with and without leading zeros": said(b"05", b"5"),
    "with spaces and tabs around it": said(b" \t 5 \t "),
    "without a space": OK + b"Content-Length:5\r\n\r\nhello",
    "in lower case": OK + b"content-length: 5\r\n\r\nhello",
    "in capitals": OK + b"CONTENT-LENGTH: 5\r\n\r\nhello",
    "in absurd case": OK + b"cOnTeNt-LeNgTh: 5\r\n\r\nhello",
    "beside a field of a similar name": OK + b"X-Content-Length: 9\r\n" + said(b"5")[len(OK) :],
    "beside a field with an underscore": OK + b"Content_Length: 9\r\n" + said(b"5")[len(OK) :],
    "beside an empty transfer coding": OK + b"Transfer-Encoding:\r\n" + said(b"5")[len(OK) :],
}


@for_each("answer", table(RIGHT))
async def test_a_length_counts(answer: bytes) -> None:
    met = await meet(answer)
    assert (met.status, met.body) == (200, b"hello")
    assert met.kept
    assert met.bytes_in == len(answer)


WRONG = {
    "negative": said(b"-1"),
    "minus nothing": said(b"-0"),
    "with a plus": said(b"+5"),
    "hexadecimal": said(b"0x5"),
    "octal": said(b"0o5"),
    "with an exponent": said(b"5e0"),
    "with a fraction": said(b"5.0"),
    "with an underscore": said(b"0_5"),
    "with a comma for thousands": said(b"1,000"),
    "nothing": said(b""),
    "a list with nothing at its end": said(b"5,"),
    "a list with nothing at its beginning": said(b",5"),
    "two figures with a space between them": said(b"5 5"),
    "a figure and a parameter": said(b"5;q=1"),
    "a word": said(b"five"),
    "not a number": said(b"NaN"),
    "infinite": said(b"inf"),
    "in Arabic digits": said(b"\xd9\xa5"),
    "in full-width digits": said(b"\xef\xbc\x95"),
    "a superscript in Latin-1": said(b"\xb2"),
    "of twenty digits": said(b"1" * 20),
    "of five thousand digits": said(b"9" * 5000),
    "said differently in two fields": said(b"5", b"6"),
    "said differently in one field": said(b"5, 6"),
    "said differently in the third field": said(b"5", b"5", b"0"),
    "folded in two": OK + b"Content-Length: 5\r\n 5\r\n\r\nhello",
    "wrong beside chunks": (
        OK + b"Content-Length: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    ),
}


@for_each("answer", table(WRONG))
async def test_a_length_is_refused_that_is(answer: bytes) -> None:
    met = await meet(answer)
    assert met.fault == (Reason.BAD_REPLY, Phase.WAIT)
    assert "length" in met.detail.lower()
    assert (met.kept, met.asked, met.made) == (False, 1, 2)
    assert met.bytes_in == len(answer)


@pytest.mark.parametrize("length", [b"102401", b"4294967301", b"18446744073709551"])
async def test_a_length_above_the_limit_of_an_image_ends_the_fetch_before_the_body(
    length: bytes,
) -> None:
    met = await meet(OK + b"Content-Type: image/png\r\nContent-Length: %s\r\n\r\n" % length)
    assert met.flaw is Reason.TOO_LARGE
    assert met.body == b""
    assert not met.kept
    assert met.bytes_in < KIB


async def test_a_length_of_nineteen_digits_is_only_too_large() -> None:
    met = await meet(said(DIGITS_19).replace(b"\r\n", b"\r\nContent-Type: image/png\r\n", 1))
    assert met.flaw is Reason.TOO_LARGE


SHORT = {
    "the last byte": (said(b"6"), "5 of 6"),
    "all but one byte": (OK + b"Content-Length: 6\r\n\r\nh", "1 of 6"),
    "the whole body": (OK + b"Content-Length: 6\r\n\r\n", "0 of 6"),
    "most of a large body": (OK + b"Content-Length: 100000\r\n\r\n" + bytes(99_999), "99999 of"),
    "the body of an error": (b"HTTP/1.1 404 N\r\nContent-Length: 9\r\n\r\ngone", "4 of 9"),
    "the last byte of HTTP 1.0": (b"HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\nold", "3 of 9"),
    "the last byte of what says close": (
        OK + b"Connection: close\r\nContent-Length: 9\r\n\r\nclose",
        "5 of 9",
    ),
}


@for_each("answer, came", table(SHORT))
async def test_a_body_is_incomplete_that_lacks(answer: bytes, came: str) -> None:
    met = await meet(answer, closes=True)
    assert met.fault == (Reason.INCOMPLETE, Phase.READ)
    assert came in met.detail
    assert (met.kept, met.asked) == (False, 1)
    assert met.bytes_in == len(answer)


UNTIL_CLOSE = {
    "no field at all": (b"HTTP/1.1 200 OK\r\n\r\nto the end", b"to the end"),
    "close said": (OK + b"Connection: close\r\n\r\nto the end", b"to the end"),
    "keep alive said": (OK + b"Connection: keep-alive\r\n\r\nto the end", b"to the end"),
    "HTTP 1.0": (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nto the end", b"to the end"),
    "no body": (b"HTTP/1.1 200 OK\r\n\r\n", b""),
    "a body that looks like chunks": (b"HTTP/1.1 200 OK\r\n\r\n0\r\n\r\n", b"0\r\n\r\n"),
    "a body that looks like an answer": (
        b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\n",
    ),
    "the identity coding": (OK + b"Transfer-Encoding: identity\r\n\r\nto the end", b"to the end"),
    "a misspelt length": (OK + b"Content-Lenght: 2\r\n\r\nto the end", b"to the end"),
    "an error": (b"HTTP/1.1 500 Oh\r\n\r\nno", b"no"),
}


@for_each("answer, body", table(UNTIL_CLOSE))
async def test_a_body_of_no_stated_length_ends_with_its_connection_with(
    answer: bytes, body: bytes
) -> None:
    met = await meet(answer, closes=True)
    assert met.body == body
    assert (met.kept, met.asked, met.made) == (False, 1, 2)


async def test_a_body_of_no_stated_length_that_is_reset_is_not_taken_for_whole() -> None:
    async def broken(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(b"HTTP/1.1 200 OK\r\n\r\nto the e")
        await trio.testing.wait_all_tasks_blocked()
        await reset(request, stream)

    met = await meet(broken)
    assert met.fault == (Reason.RESET, Phase.READ)
    assert "after 8 bytes" in met.detail
    assert (met.kept, met.asked) == (False, 1)


BODILESS = {
    "a 204": (b"HTTP/1.1 204 No Content\r\n\r\n", 204),
    "a 204 with a length of nothing": (b"HTTP/1.1 204 N\r\nContent-Length: 0\r\n\r\n", 204),
    "a 304": (b"HTTP/1.1 304 Not Modified\r\n\r\n", 304),
    "a 304 with the page's length": (b"HTTP/1.1 304 N\r\nContent-Length: 12345\r\n\r\n", 304),
    "a 304 with a length above the limit": (
        b"HTTP/1.1 304 N\r\nContent-Length: 99999999999\r\n\r\n",
        304,
    ),
    "a 304 with the page's coding": (b"HTTP/1.1 304 N\r\nContent-Encoding: gzip\r\n\r\n", 304),
    "a 304 with the page's chunks": (b"HTTP/1.1 304 N\r\nTransfer-Encoding: chunked\r\n\r\n", 304),
    "a 205": (b"HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n", 205),
    "an empty page in gzip": (
        OK + b"Content-Encoding: gzip\r\nContent-Length: 0\r\n\r\n",
        200,
    ),
}


@for_each("answer, status", table(BODILESS))
async def test_no_body_is_waited_for_after(answer: bytes, status: int) -> None:
    met = await meet(answer)
    assert (met.status, met.body) == (status, b"")
    assert met.kept
    assert met.bytes_in == len(answer)
