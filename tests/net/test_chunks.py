from __future__ import annotations

from itertools import pairwise

import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from sites.exchange import table
from sites.raw import chunked

from trio_crawler.model import Phase, Reason
from trio_crawler.net.errors import FetchError
from trio_crawler.net.http1.message import MAX_HEAD_BYTES, MAX_HEAD_LINES, ChunkDecoder

BODY = chunked(b"one ", b"two", trailers=b"X-Sum: 7\r\n")


def fed(*pieces: bytes) -> tuple[ChunkDecoder, bytes]:
    """Feed all the pieces; return what they held."""
    chunks = ChunkDecoder()
    return chunks, b"".join([chunks.feed(piece) for piece in pieces])


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Cut data at these places, wherever they lie."""
    marks = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[begin:end] for begin, end in pairwise(marks)]


@given(st.lists(st.binary(min_size=1, max_size=50)), st.lists(st.integers(0, 10_000)))
def test_what_was_put_in_chunks_comes_out_wherever_they_are_cut(
    parts: list[bytes], places: list[int]
) -> None:
    chunks, body = fed(*cut(chunked(*parts), places))
    assert body == b"".join(parts)
    assert (chunks.ended, chunks.clean) == (True, True)


@given(st.lists(st.integers(0, 10_000)), st.binary(min_size=1, max_size=30))
def test_whatever_comes_behind_the_end_is_not_clean(places: list[int], behind: bytes) -> None:
    # Cut before the end only: what is not fed with the end is the stream's to tell.
    *others, last = cut(BODY, places)
    chunks, body = fed(*others, last + behind)
    assert body == b"one two"
    assert (chunks.ended, chunks.clean) == (True, False)


BEHIND = {
    "an answer": b"HTTP/1.1 200 OK\r\n\r\n",
    "an answer with a body": b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad",
    "an answer with many fields": b"HTTP/1.1 200 OK\r\n"
    + b"X: y\r\n" * 2 * MAX_HEAD_LINES
    + b"\r\n",
    "no answer, and an empty line": b"HTTP/x\r\n\r\n",
    "what is no HTTP, and an empty line": b"x\r\n\r\n",
}


@for_each("behind", table(BEHIND))
def test_nothing_of_what_comes_behind_the_end_is_taken_for_the_body(behind: bytes) -> None:
    chunks, body = fed(BODY + behind)
    assert body == b"one two"
    assert (chunks.ended, chunks.clean) == (True, False)


@for_each("behind", [b"x", b"HTTP/1.1 '", b"HTTP/1.1 200 OK\r\n\r\n", b"x\r\n\r\n"])
def test_behind_a_trailer_that_closes_the_connection_nothing_is_clean(behind: bytes) -> None:
    # llhttp refuses what follows, without another message that begins.
    chunks, _ = fed(chunked(b"page", trailers=b"Connection: close\r\n") + behind)
    assert (chunks.ended, chunks.clean) == (True, False)


@given(st.text("\r\n", min_size=1, max_size=12).map(str.encode), st.integers(1, len(BODY) - 1))
def test_line_ends_behind_the_end_are_not_clean(behind: bytes, place: int) -> None:
    chunks, _ = fed(BODY[:place], BODY[place:] + behind)
    assert (chunks.ended, chunks.clean) == (True, False)


@given(st.binary(max_size=100), st.lists(st.integers(0, 10_000)))
def test_any_bytes_are_a_body_or_a_bad_reply(data: bytes, places: list[int]) -> None:
    try:
        chunks, body = fed(*cut(data, places))
    except FetchError as error:
        fault = error.fault
    else:
        assert len(body) <= len(data)
        assert not chunks.ended or b"0" in data
        return
    assert (fault.reason, fault.phase) == (Reason.BAD_REPLY, Phase.READ)
    assert fault.detail.isprintable()


@for_each("place", range(len(BODY)))
def test_a_body_has_not_ended_before_its_last_byte(place: int) -> None:
    chunks, body = fed(BODY[:place])
    assert not chunks.ended
    assert b"one two".startswith(body)


BROKEN = {
    "no size": b"\r\n",
    "a negative size": b"-1\r\n",
    "a size that is not hexadecimal": b"g\r\n",
    "a size above 2 to the 64": b"1" + b"0" * 16 + b"\r\n",
    "too little for its size": b"5\r\nfour\r\n0\r\n\r\n",
    "too much for its size": b"3\r\nfour\r\n0\r\n\r\n",
    "a trailer without a colon": b"0\r\ntrailer\r\n\r\n",
}


@for_each("data", table(BROKEN))
def test_chunks_are_damaged_with(data: bytes) -> None:
    with pytest.raises(FetchError, match="damaged"):
        fed(data)
    with pytest.raises(FetchError, match="damaged"):
        fed(*[data[place : place + 1] for place in range(len(data))])


def test_trailers_are_bounded() -> None:
    most = b"0\r\n" + b"X: y\r\n" * MAX_HEAD_LINES
    assert fed(most + b"\r\n")[0].clean
    with pytest.raises(FetchError, match="or trailers"):
        fed(most + b"X: y\r\n\r\n")


@for_each("size", [1, 100, 64 * 1024])
@for_each("begin", [b"5;", b"5 ", b"0\r\nX: ", b"0\r\n"])
def test_bytes_around_a_body_are_bounded(begin: bytes, size: int) -> None:
    piece = (b" " if begin == b"5 " else b"a") * size
    assert not fed(begin, *[piece] * ((MAX_HEAD_BYTES - 10) // size))[0].ended
    with pytest.raises(FetchError, match="too many bytes of extensions"):
        fed(begin, *[piece] * (MAX_HEAD_BYTES // size + 1))


@for_each("begin, end", [(b"", b"5;"), (b"1\r\nx", b"\r\n5;")])
def test_as_many_bytes_as_a_head_has_may_stand_around_a_body(begin: bytes, end: bytes) -> None:
    chunks, _ = fed(begin, end + b"a" * (MAX_HEAD_BYTES - len(end)))
    with pytest.raises(FetchError, match="too many bytes of extensions"):
        chunks.feed(b"a")


def test_a_large_body_in_small_chunks_is_not_taken_for_framing() -> None:
    piece = b"1;a=b\r\nx\r\n"
    chunks = ChunkDecoder()
    assert sum(len(chunks.feed(piece)) for _ in range(20_000)) == 20_000
    assert not chunks.ended
