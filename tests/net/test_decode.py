from __future__ import annotations

import gzip
import time
import zlib

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_crawler.model import Reason
from trio_crawler.net.decode import MOST_MEMBERS, STEP, BadBody, Body, codings

LIMIT = 1_000_000


def deflate(data: bytes, window: int) -> bytes:
    engine = zlib.compressobj(wbits=window)
    return engine.compress(data) + engine.flush()


ENCODERS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "bare deflate": lambda data: deflate(data, -15),
}


def decode(data: bytes, *codings: str, limit: int = LIMIT, size: int = 10_000) -> bytes:
    body = Body(limit, codings)
    for start in range(0, len(data), size):
        body.feed(data[start : start + size])
    return body.finish()


def reason(data: bytes, *codings: str, limit: int = LIMIT, size: int = 10_000) -> Reason:
    with pytest.raises(BadBody) as caught:
        decode(data, *codings, limit=limit, size=size)
    return caught.value.fault.reason


@given(st.binary(max_size=2_000), st.sampled_from(sorted(ENCODERS)), st.integers(1, 3_000))
def test_whatever_was_encoded_comes_back_however_it_was_cut_up(
    data: bytes, encoder: str, size: int
) -> None:
    coding = encoder.removeprefix("bare ")
    assert decode(ENCODERS[encoder](data), coding, size=size) == data


@given(st.binary(min_size=1, max_size=300), st.sampled_from(sorted(ENCODERS)), st.data())
def test_a_body_cut_anywhere_is_incomplete_and_never_whole(
    data: bytes, encoder: str, draw: st.DataObject
) -> None:
    encoded = ENCODERS[encoder](data)
    cut = draw.draw(st.integers(1, len(encoded) - 1))
    assert reason(encoded[:cut], encoder.removeprefix("bare ")) is Reason.INCOMPLETE


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=8), st.integers(1, 100))
def test_all_members_of_a_gzip_body_are_read(parts: list[bytes], size: int) -> None:
    assert decode(b"".join(map(gzip.compress, parts)), "gzip", size=size) == b"".join(parts)


def test_a_body_whose_second_member_is_cut_is_incomplete() -> None:
    two = gzip.compress(b"one") + gzip.compress(b"two")
    assert reason(two[:-1], "gzip") is Reason.INCOMPLETE
    one = gzip.compress(b"one")
    assert reason(one + b"\x1f", "gzip") is Reason.INCOMPLETE


def test_padding_behind_a_whole_stream_is_ignored() -> None:
    assert decode(gzip.compress(b"page") + bytes(512), "gzip") == b"page"
    assert decode(gzip.compress(b"page") + b"\n", "gzip") == b"page"
    assert decode(zlib.compress(b"page") + b"junk" * 9, "deflate", size=7) == b"page"


def test_no_bytes_at_all_are_an_empty_body() -> None:
    assert decode(b"", "gzip") == b""
    assert decode(b"", "deflate") == b""


def test_two_codings_are_undone_last_applied_first() -> None:
    assert decode(gzip.compress(zlib.compress(b"page")), "deflate", "gzip") == b"page"


def test_three_codings_are_a_bad_reply() -> None:
    assert reason(b"", "gzip", "gzip", "gzip") is Reason.BAD_REPLY


@pytest.mark.parametrize("coding", ["br", "zstd", "compress", "\x1b[31m", "aws-chunked"])
def test_a_coding_that_was_not_offered_is_a_bad_reply(coding: str) -> None:
    with pytest.raises(BadBody) as caught:
        Body(LIMIT, [coding])
    assert caught.value.fault.reason is Reason.BAD_REPLY
    assert caught.value.fault.detail.isprintable()


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_bytes_that_are_not_encoded_as_said_are_a_bad_reply(coding: str) -> None:
    assert reason(b"<html>hello, hello, hello</html>", coding) is Reason.BAD_REPLY


def test_a_flipped_bit_is_a_bad_reply() -> None:
    encoded = bytearray(gzip.compress(bytes(range(256)) * 8))
    encoded[-6] ^= 1
    assert reason(bytes(encoded), "gzip") is Reason.BAD_REPLY


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_body_of_exactly_the_limit_comes_and_one_byte_more_does_not(coding: str) -> None:
    for size in (5 * STEP, 5 * STEP + 1):
        encoded = ENCODERS[coding](bytes(size))
        assert len(decode(encoded, coding, limit=size)) == size
        assert reason(encoded, coding, limit=size - 1) is Reason.TOO_LARGE


def test_the_limit_holds_for_the_bytes_as_sent_too() -> None:
    assert decode(bytes(100), limit=100) == bytes(100)
    assert reason(bytes(101), limit=100) is Reason.TOO_LARGE
    # 100 empty members say nothing in 2,000 bytes.
    assert reason(gzip.compress(b"") * 100, "gzip", limit=1_999) is Reason.TOO_LARGE


def test_a_bomb_stops_at_the_limit_without_being_unpacked() -> None:
    bomb = gzip.compress(bytes(50_000_000))
    body = Body(LIMIT, ["gzip"])
    with pytest.raises(BadBody) as caught:
        body.feed(bomb)
    assert caught.value.fault.reason is Reason.TOO_LARGE
    assert body._decoded.tell() <= LIMIT


def test_the_limit_holds_between_two_codings() -> None:
    nothing = gzip.compress(b"") * 4_000
    assert len(nothing) > 50_000
    assert reason(gzip.compress(nothing), "gzip", "gzip", limit=50_000) is Reason.TOO_LARGE


def test_more_members_than_any_page_has_are_a_bad_reply_in_linear_time() -> None:
    members = gzip.compress(b"") * MOST_MEMBERS
    started = time.process_time()
    assert decode(members, "gzip", size=len(members)) == b""
    assert time.process_time() - started < 2
    assert reason(members + gzip.compress(b""), "gzip") is Reason.BAD_REPLY


def test_output_that_fills_a_step_to_the_brim_is_not_lost() -> None:
    for size in (STEP - 1, STEP, STEP + 1, 2 * STEP):
        assert len(decode(zlib.compress(bytes(size)), "deflate")) == size


def test_the_codings_are_read_from_every_header_line_in_order() -> None:
    headers = httpx.Headers(
        [("Content-Encoding", "Deflate, identity"), ("content-encoding", " ,GZIP")]
    )
    assert codings(headers) == ["deflate", "gzip"]
    assert codings(httpx.Headers()) == []
