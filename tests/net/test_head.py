from __future__ import annotations

import re
import string
import tracemalloc
from contextlib import suppress

import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from sites.exchange import table
from sites.pieces import Heard, hear
from sites.raw import chunked

from trio_crawler.model import Fault, Phase, Reason
from trio_crawler.net.errors import FetchError
from trio_crawler.net.http1.message import (
    check_start,
    content_codings,
    end_of_head,
    parse,
    parsed,
)

OK = b"HTTP/1.1 200 OK\r\n"
NAMES = st.text(string.ascii_letters + string.digits + "!#$%&'*+-.^_`|~", min_size=1).map(
    str.encode
)
VALUES = st.binary(max_size=40).map(lambda value: re.sub(rb"[\r\n\0]", b"", value).strip(b" \t"))
FRAMING = {b"content-length", b"transfer-encoding", b"connection", b"content-encoding"}


@given(st.lists(st.tuples(NAMES.filter(lambda name: name.lower() not in FRAMING), VALUES)))
def test_fields_come_as_they_were_written(fields: list[tuple[bytes, bytes]]) -> None:
    for blank in (b"\t", b" ", b""):
        written = b"".join(b"%s: %s%s\r\n" % (*field, blank) for field in fields)
        head = parse(OK + written + b"\r\n")
        assert head.fields == fields
    assert (head.status, head.phrase, head.minor) == (200, b"OK", 1)
    assert (head.length, head.chunked, head.keep_alive, head.encoding) == (None, False, False, b"")


@given(st.lists(st.tuples(NAMES, VALUES)), st.integers(0, 9), st.integers(100, 999))
def test_any_fields_give_a_head_or_a_fault_and_loose_ones_never_keep(
    fields: list[tuple[bytes, bytes]], minor: int, status: int
) -> None:
    start = b"HTTP/1.%d %d\r\n" % (minor, status)
    lines = b"".join(b"%s:%s\r\n" % field for field in fields)
    try:
        head = parse(start + b"X: y\r\n" + lines + b"Content-Length: 0\r\n\r\n")
        loose = parse(start + b"X : y\r\n" + lines + b"Content-Length: 0\r\n\r\n")
    except FetchError as error:
        reason = error.fault.reason
    else:
        assert (head.minor, head.status) == (minor, status)
        assert loose == replace(head, keep_alive=False)
        return
    assert reason is Reason.BAD_REPLY


@given(st.binary(max_size=200))
def test_any_bytes_behind_a_status_line_give_a_head_or_a_fault(junk: bytes) -> None:
    try:
        head = parse(OK + junk + b"\r\n\r\n")
    except FetchError as error:
        fault = error.fault
    else:
        assert all(re.fullmatch(rb"[!-~]+", name) for name, _ in head.fields)
        assert not any(re.search(rb"[\r\n\0]", value) for _, value in head.fields)
        return
    assert (fault.reason, fault.phase) == (Reason.BAD_REPLY, Phase.WAIT)
    assert fault.detail.isprintable()


FRAMED = {
    "a length": (OK + b"Content-Length: 7\r\n\r\n", (7, False, True)),
    "chunks": (OK + b"Transfer-Encoding: chunked\r\n\r\n", (None, True, True)),
    "neither": (OK + b"\r\n", (None, False, False)),
    "both": (
        OK + b"Content-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n",
        (None, True, False),
    ),
    "a length and identity": (
        OK + b"Content-Length: 7\r\nTransfer-Encoding: identity\r\n\r\n",
        (7, False, False),
    ),
    "a 204": (b"HTTP/1.1 204 N\r\n\r\n", (0, False, True)),
    "a 204 with a length": (b"HTTP/1.1 204 N\r\nContent-Length: 7\r\n\r\n", (0, False, False)),
    "a 304 with a length": (b"HTTP/1.1 304 N\r\nContent-Length: 7\r\n\r\n", (0, False, True)),
    "a 100 with a length": (b"HTTP/1.1 100 C\r\nContent-Length: 7\r\n\r\n", (0, False, True)),
    "HTTP 1.0": (b"HTTP/1.0 200 OK\r\nContent-Length: 7\r\n\r\n", (7, False, False)),
    "chunks of HTTP 1.0": (
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n",
        (None, True, False),
    ),
    "an option in a second field": (
        OK + b"Connection: x\r\nConnection: close\r\nContent-Length: 7\r\n\r\n",
        (7, False, False),
    ),
    "a status line that ends with a bare LF": (
        b"HTTP/1.1 200 OK\nContent-Length: 7\r\n\r\n",
        (7, False, False),
    ),
    "an empty line that is a bare LF": (OK + b"Content-Length: 7\r\n\n", (7, False, False)),
}


@for_each("raw, framing", table(FRAMED))
def test_the_end_of_a_body_follows_from(
    raw: bytes, framing: tuple[int | None, bool, bool]
) -> None:
    head = parse(raw)
    assert (head.length, head.chunked, head.keep_alive) == framing


def test_an_answer_to_head_has_no_body_whatever_it_says() -> None:
    head = parse(OK + b"Content-Length: 7\r\n\r\n", bodiless=True)
    assert (head.length, head.keep_alive) == (0, True)
    head = parse(OK + b"Transfer-Encoding: chunked\r\n\r\n", bodiless=True)
    assert (head.length, head.chunked, head.keep_alive) == (0, False, True)
    assert parse(OK + b"\r\n", bodiless=True).keep_alive


def test_a_head_has_256_fields_at_most() -> None:
    assert len(parse(OK + b"X: y\r\n" * 256 + b"\r\n").fields) == 256
    for head in (OK + b"X: y\r\n" * 257 + b"\r\n", OK + b"X : y\r\n" * 257 + b"\r\n"):
        with pytest.raises(FetchError, match="more than 256 header lines"):
            parse(head)


@pytest.mark.slow
def test_what_a_server_says_is_not_kept_for_long() -> None:
    tracemalloc.start()
    try:
        for number in range(1100):
            for size in (4000, 60_000):
                name = b"%d" % number + b"x" * size
                read(OK + name + b": y\r\n\r\n")
            read(OK + b"Connection: " + name + b"\r\n\r\n")
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 16 * 1024 * 1024, kept


def read(head: bytes) -> None:
    with suppress(FetchError):
        parse(head)


def test_a_head_ends_at_the_first_empty_line() -> None:
    for raw in (b"a\r\n\r\nb\r\n\r\n", b"a\n\nb\n\n", b"a\r\n\nb\n\r\n", b"a\n\r\nb\r\n\n"):
        end = end_of_head(raw)
        assert end is not None
        assert raw[end.end() :][:1] == b"b"
    assert end_of_head(b"a\r\n b\r\n\r") is None
    assert end_of_head(b"\r\r\r\r") is None


@for_each("begun", [b"", b"H", b"HTTP/", b"HTTP/1.", b"HTTP/1.1 200 OK"])
def test_what_may_become_an_answer_is_waited_for(begun: bytes) -> None:
    check_start(begun)


@for_each("begun", [b"h", b"\r", b"HTTP/2", b"HTTPS/1.1", b"<html>", b"HTTP 1.1"])
def test_what_cannot_become_an_answer_is_not_waited_for(begun: bytes) -> None:
    with pytest.raises(FetchError, match=r"not HTTP/1\.1"):
        check_start(begun)


def test_a_length_and_codings_are_read_from_fields() -> None:
    fields = [(b"content-ENCODING", b"br"), (b"Content-Length", b"5"), (b"Content-Encoding", b"x")]
    assert parsed(200, 1, fields).length == 5
    assert parsed(200, 1, fields[:1]).length is None
    assert parsed(200, 1, fields).encoding == b"br, x"
    assert content_codings(b" GZip,, identity , br,") == ["gzip", "br"]
    with pytest.raises(FetchError, match="two different lengths"):
        parsed(200, 1, [*fields, (b"CONTENT-LENGTH", b"6")])


# Wherever an answer is cut on its way, it is the same answer.

LENGTH = OK + b"Content-Length: 4\r\n\r\npage"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
EARLY = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
ANSWERS = {
    "a length": LENGTH,
    "a length of nothing": OK + b"Content-Length: 0\r\n\r\n",
    "no field": b"HTTP/1.1 200 OK\r\n\r\npage",
    "no phrase": b"HTTP/1.1 200\r\nContent-Length: 4\r\n\r\npage",
    "a 204": b"HTTP/1.1 204 No Content\r\n\r\n",
    "a 304 with a length": b"HTTP/1.1 304 N\r\nContent-Length: 9\r\n\r\n",
    "chunks": CHUNKED + chunked(b"pa", b"ge"),
    "chunks of one byte": CHUNKED + chunked(b"p", b"a", b"g", b"e"),
    "chunks with extensions": CHUNKED + b'4 ;a=b;c="d e"\r\npage\r\n0;f\r\n\r\n',
    "chunks with trailers": CHUNKED + chunked(b"page", trailers=b"X: y\r\nZ:\r\n"),
    "chunks with line ends in them": CHUNKED + chunked(b"\r\n\r\n", b"0\r\n\r\n"),
    "chunks without any": CHUNKED + chunked(),
    "two interim answers": EARLY + EARLY + LENGTH,
    "nine interim answers": EARLY * 9 + LENGTH,
    "folded fields": OK + b"X: a\r\n b\r\n\tc\r\nContent-Length: 4\r\n\r\npage",
    "a fold of nothing": OK + b"X: a\r\n \r\nContent-Length: 4\r\n\r\npage",
    "bare LFs": LENGTH.replace(b"\r\n", b"\n"),
    "a bare LF at the end of the head": OK + b"Content-Length: 4\r\n\npage",
    "a body of line ends": OK + b"Content-Length: 4\r\n\r\n\r\n\r\n",
    "a space before the colon": OK + b"Content-Length : 4\r\n\r\npage",
    "both lengths": OK + b"Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": OK + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\npage",
    "HTTP 1.0": b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\npage",
    "close": OK + b"Connection: close\r\nContent-Length: 4\r\n\r\npage",
    "a 101": b"HTTP/1.1 101 S\r\nUpgrade: x\r\n\r\n",
    "a NUL": OK + b"X: a\0b\r\n\r\n",
    "HTTP 2": b"HTTP/2.0 200 OK\r\n\r\n",
    "no HTTP": b"SSH-2.0-server\r\n",
    "an answer behind a length": LENGTH + LENGTH,
    "an answer behind chunks": CHUNKED + chunked(b"page") + LENGTH,
    "an answer behind a 204": b"HTTP/1.1 204 N\r\n\r\n" + LENGTH,
    "line ends behind chunks": CHUNKED + chunked(b"page") + b"\r\n\r\n",
    "a bare LF behind chunks": CHUNKED + chunked(b"page") + b"\n",
    "damaged chunks": CHUNKED + b"4\r\npages\r\n0\r\n\r\n",
    "a missing last chunk": CHUNKED + b"4\r\npage\r\n",
    "a missing byte": LENGTH[:-1],
    "a missing body": LENGTH[:-4],
    "half a head": OK + b"Content-Le",
}


def judged(heard: Heard) -> tuple[object, bool]:
    """Leave the sentence of a fault aside: it may say how much had come."""
    told = heard.told
    return (told.reason, told.phase) if isinstance(told, Fault) else told, heard.kept


@for_each("answer", table(ANSWERS))
def test_it_is_the_same_cut_in_two_anywhere(answer: bytes) -> None:
    whole = judged(hear([answer]))
    for place in range(1, len(answer)):
        assert judged(hear([answer[:place], answer[place:]])) == whole, answer[:place]


@for_each("answer", table(ANSWERS))
def test_it_is_the_same_byte_by_byte(answer: bytes) -> None:
    whole = judged(hear([answer]))
    assert judged(hear([answer[place : place + 1] for place in range(len(answer))])) == whole
