from __future__ import annotations

import gzip
import random
import subprocess
import sys
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Any

import brotli
import pytest
import trio
import trio.testing
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from trio_crawler.model import Phase, Reason
from trio_crawler.net.decode import (
    MAX_MEMBERS,
    OFFERED,
    SLICE,
    SLOTS,
    STEP,
    Body,
    Coding,
    decoded,
)
from trio_crawler.net.errors import FetchError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LIMIT = 1_000_000
MIB = 1024 * 1024
CODINGS = ["gzip", "deflate", "br", "zstd"]


def deflate(data: bytes, window: int) -> bytes:
    engine = zlib.compressobj(wbits=window)
    return engine.compress(data) + engine.flush()


ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "bare deflate": lambda data: deflate(data, -15),
    "br": lambda data: brotli.compress(data, quality=4),
    "zstd": zstd.compress,
}


def skippable(size: int, kind: int = 0) -> bytes:
    """RFC 8878, 3.1.2."""
    return (0x184D2A50 + kind).to_bytes(4, "little") + size.to_bytes(4, "little") + bytes(size)


def decode(data: bytes, *codings: str, limit: int = LIMIT, size: int = 10_000) -> bytes:
    body = Body(limit, codings)
    for start in range(0, len(data), size):
        body.feed(data[start : start + size])
    return body.finish()


def reason(data: bytes, *codings: str, limit: int = LIMIT, size: int = 10_000) -> Reason:
    with pytest.raises(FetchError) as caught:
        decode(data, *codings, limit=limit, size=size)
    assert caught.value.fault.phase is Phase.READ
    return caught.value.fault.reason


def in_pieces(*parts: tuple[bytes, int]) -> bytes:
    """A brotli stream, its window the largest there is, of parts repeated so many times."""
    engine = brotli.Compressor(quality=5, lgwin=24)
    pieces = [engine.process(part) for part, times in parts for _ in range(times)]
    return b"".join(pieces) + engine.finish()


def dear_brotli(count: int) -> bytes:
    """Metablocks (RFC 7932, 9.2) of one byte, each with a context map of 16,384 entries.

    85 bytes of each take the library as long as 50 KiB of an ordinary page.
    """
    bits = [(0, 1), (0, 2), (0, 16), (0, 1)]  # not the last, 4 nibbles, one byte, compressed
    bits += [(1, 1), (7, 3), (127, 7)]  # 256 types of literals
    bits += [(1, 2), (0, 2), (0, 9), (1, 2), (0, 2), (25, 5), (0, 24)]  # their codes, first count
    bits += [(0, 1), (0, 1), (0, 2), (0, 4), (0, 512)]  # one type of the others, context modes
    bits += [(1, 1), (0, 3)]  # two literal trees
    bits += [(1, 1), (15, 4), (1, 2), (0, 2), (14, 5), (0, 14), (1, 1)]  # the map: a run of zeros
    bits += [(0, 1)]  # one distance tree
    bits += [(1, 2), (0, 2), (65, 8)] * 2 + [(1, 2), (0, 2), (8, 10), (1, 2), (0, 2), (0, 6)]
    value = size = 0
    for _ in range(8):
        for number, width in bits:
            value |= number << size
            size += width
    assert size % 8 == 0
    # A window of 16 bits and empty metadata to begin at a byte, an empty last metablock.
    return b"\x0c" + value.to_bytes(size // 8, "little") * (count // 8) + b"\x03"


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


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=8), st.integers(0, 15))
def test_all_frames_of_a_zstd_body_are_read_and_skippable_ones_say_nothing(
    parts: list[bytes], kind: int
) -> None:
    frames = b"".join(skippable(len(part), kind) + zstd.compress(part) for part in parts)
    assert decode(frames, "zstd") == b"".join(parts)
    assert decode(frames + skippable(70_000), "zstd") == b"".join(parts)


def test_a_body_whose_second_member_is_cut_is_incomplete() -> None:
    two = gzip.compress(b"one", mtime=0) + gzip.compress(b"two", mtime=0)
    assert reason(two[:-1], "gzip") is Reason.INCOMPLETE
    one = gzip.compress(b"one", mtime=0)
    assert reason(one + b"\x1f", "gzip") is Reason.INCOMPLETE


@pytest.mark.parametrize("second", [zstd.compress(b"two"), skippable(3)])
def test_a_body_whose_second_frame_is_cut_is_incomplete(second: bytes) -> None:
    for cut in range(1, len(second)):
        assert reason(zstd.compress(b"one") + second[:cut], "zstd") is Reason.INCOMPLETE


def test_padding_behind_a_whole_stream_is_ignored() -> None:
    assert decode(gzip.compress(b"page", mtime=0) + bytes(512), "gzip") == b"page"
    assert decode(gzip.compress(b"page", mtime=0) + b"\n", "gzip") == b"page"
    assert decode(zlib.compress(b"page") + b"junk" * 9, "deflate", size=7) == b"page"


@for_each("junk", [b"\0", b"\n", bytes(SLICE), b"<p>", b"junk" * SLICE])
@for_each("coding", ["br", "zstd"])
def test_what_goes_on_behind_the_end_of_br_and_zstd_is_a_bad_reply(
    coding: str, junk: bytes
) -> None:
    for page in (b"page", random.Random(1).randbytes(SLICE), bytes(3 * STEP)):
        assert reason(ENCODERS[coding](page) + junk, coding) is Reason.BAD_REPLY


@pytest.mark.parametrize("coding", CODINGS)
def test_no_bytes_at_all_are_an_empty_body(coding: str) -> None:
    assert decode(b"", coding) == b""
    assert decode(ENCODERS["gzip"](b""), coding, "gzip") == b""


def test_two_codings_are_undone_last_applied_first() -> None:
    for first in CODINGS:
        for second in CODINGS:
            data = ENCODERS[second](ENCODERS[first](b"page"))
            assert decode(data, first, second) == b"page"
            assert reason(data[:-1], first, second) is Reason.INCOMPLETE


@for_each("outer", CODINGS)
@for_each("inner", CODINGS)
def test_a_whole_stream_around_a_cut_one_is_incomplete(inner: str, outer: str) -> None:
    cut = ENCODERS[inner](b"page")[:-1]
    assert reason(ENCODERS[outer](cut), inner, outer) is Reason.INCOMPLETE


def test_three_codings_are_a_bad_reply() -> None:
    assert reason(b"", "gzip", "gzip", "gzip") is Reason.BAD_REPLY


@for_each("coding", ["x-br", "x-zstd", "compress", "dcb", "\x1b[31m", "aws-chunked"])
def test_a_coding_that_was_not_offered_is_a_bad_reply(coding: str) -> None:
    with pytest.raises(FetchError) as caught:
        Body(LIMIT, [coding])
    assert caught.value.fault.reason is Reason.BAD_REPLY
    assert caught.value.fault.detail.isprintable()


def test_every_coding_that_is_offered_is_known() -> None:
    assert OFFERED.split(", ") == CODINGS
    for coding in CODINGS:
        assert decode(ENCODERS[coding](b"page"), coding) == b"page"


@pytest.mark.parametrize("coding", CODINGS)
def test_bytes_that_are_not_encoded_as_said_are_a_bad_reply(coding: str) -> None:
    assert reason(b"<html>hello, hello, hello</html>", coding) is Reason.BAD_REPLY


def test_a_body_that_is_labelled_gzip_and_is_not_is_a_bad_reply() -> None:
    with pytest.raises(FetchError, match="labelled gzip and is not gzip"):
        decode(b"<html>", "gzip")


def test_a_bare_stream_that_begins_like_a_window_zlib_does_not_have_is_bare() -> None:
    # A stored block of 28 bytes whose padding is not zero: method 8, a multiple of 31, but 2^16.
    page = b"<html>a page of 28 bytes<br>"
    stored = b"\x88" + b"\x1c\x00\xe3\xff" + page + b"\x01\x00\x00\xff\xff"
    assert decode(stored, "deflate") == page


@pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd"])
def test_a_flipped_bit_in_the_checksum_is_a_bad_reply(coding: str) -> None:
    data = bytes(range(256)) * 8
    options = {zstd.CompressionParameter.checksum_flag: 1}
    encoded = bytearray(
        zstd.compress(data, options=options) if coding == "zstd" else ENCODERS[coding](data)
    )
    encoded[-6 if coding == "gzip" else -1] ^= 1
    assert reason(bytes(encoded), coding) is Reason.BAD_REPLY


@pytest.mark.parametrize("coding", CODINGS)
def test_a_body_of_exactly_the_limit_comes_and_one_byte_more_does_not(coding: str) -> None:
    for size in (5 * STEP, 5 * STEP + 1):
        encoded = ENCODERS[coding](bytes(size))
        assert len(decode(encoded, coding, limit=size)) == size
        assert reason(encoded, coding, limit=size - 1) is Reason.TOO_LARGE


@pytest.mark.parametrize("coding", CODINGS)
def test_a_body_that_could_not_be_compressed_is_held_to_the_same_limit(coding: str) -> None:
    page = random.Random(1).randbytes(LIMIT - 1_000)
    assert decode(ENCODERS[coding](page), coding) == page
    assert decode(ENCODERS[coding](ENCODERS["gzip"](page)), "gzip", coding) == page


def test_the_limit_holds_for_the_bytes_as_sent_too() -> None:
    assert decode(bytes(100), limit=100) == bytes(100)
    assert reason(bytes(101), limit=100) is Reason.TOO_LARGE
    # 100 empty members say nothing in 2,000 bytes.
    assert reason(gzip.compress(b"", mtime=0) * 100, "gzip", limit=1_999) is Reason.TOO_LARGE


def test_the_limit_holds_between_two_codings() -> None:
    nothing = gzip.compress(b"", mtime=0) * 4_000
    assert len(nothing) > 50_000
    for coding in CODINGS:
        encoded = ENCODERS[coding](nothing)
        assert reason(encoded, "gzip", coding, limit=50_000) is Reason.TOO_LARGE


def bombs() -> Iterator[tuple[str, bytes, tuple[str, ...]]]:
    zeros = bytes(16 * MIB)
    yield "gzip", gzip.compress(zeros, mtime=0), ("gzip",)
    yield "deflate", zlib.compress(zeros), ("deflate",)
    yield "zstd", zstd.compress(zeros), ("zstd",)
    br = in_pieces((bytes(4 * MIB), 16))
    assert len(br) < 300
    yield "br", br, ("br",)
    yield "gzip in br", ENCODERS["br"](gzip.compress(zeros, mtime=0)), ("gzip", "br")
    yield "br in br", ENCODERS["br"](br), ("br", "br")
    # Half a page, another half of it in a few bytes, and then all that may be sent.
    noise = random.Random(1).randbytes(LIMIT // 2)
    first = gzip.compress(bytes(LIMIT * 9 // 10), mtime=0) + gzip.compress(
        noise[: LIMIT // 3], mtime=0
    )
    yield "gzip, then noise", first + gzip.compress(noise, mtime=0), ("gzip",)


@for_each("data, names", [pytest.param(*bomb[1:], id=bomb[0]) for bomb in bombs()])
def test_a_bomb_stops_at_the_limit_without_being_unpacked(
    data: bytes, names: tuple[str, ...]
) -> None:
    decode(ENCODERS["zstd"](ENCODERS["br"](b"")), "br", "zstd")  # what is imported is not counted
    body = Body(LIMIT, names)
    tracemalloc.start()
    try:
        for start in range(0, len(data), STEP):
            body.feed(data[start : start + STEP])
        with pytest.raises(FetchError) as caught:
            body.finish()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert caught.value.fault.reason is Reason.TOO_LARGE
    # zlib's window is traced as well; a step is in two hands for a moment, the chunk in ours.
    assert peak <= LIMIT * 9 // 8 + 6 * STEP


@pytest.mark.parametrize("size", [20, 1_000, STEP])
@pytest.mark.parametrize("names", [[], *([coding] for coding in CODINGS)], ids=str)
def test_a_page_as_large_as_the_limit_is_not_held_twice(names: list[str], size: int) -> None:
    page = random.Random(1).randbytes(LIMIT // 4 - 1_000) + bytes(LIMIT // 4 * 3)
    data = ENCODERS[names[0]](page) if names else page
    decode(ENCODERS["zstd"](ENCODERS["br"](b"")), "br", "zstd")
    tracemalloc.start()
    try:
        body = Body(LIMIT, names)
        for start in range(0, len(data), size):
            body.feed(data[start : start + size])
        result = body.finish()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result == page
    assert peak <= LIMIT * 9 // 8 + 4 * STEP


def test_what_a_stalled_server_sent_is_held_as_it_was_sent() -> None:
    body = Body(10 * MIB, ["gzip"])
    tracemalloc.start()
    try:
        body.feed(gzip.compress(bytes(9 * MIB), mtime=0))
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < STEP


def test_a_zstd_window_above_8_mib_is_a_bad_reply_and_8_mib_is_none() -> None:
    for log, good in ((23, True), (24, False), (27, False)):
        options = {
            zstd.CompressionParameter.window_log: log,
            zstd.CompressionParameter.content_size_flag: 0,
        }
        engine = zstd.ZstdCompressor(options=options)
        encoded = engine.compress(b"page") + engine.flush()
        if good:
            assert decode(encoded, "zstd") == b"page"
        else:
            assert reason(encoded, "zstd") is Reason.BAD_REPLY


def test_a_zstd_frame_that_declares_2_gib_takes_no_memory_for_it() -> None:
    size = (2 * 1024 * MIB).to_bytes(8, "little")
    magic = b"\x28\xb5\x2f\xfd"
    for head in (b"\xc0\x88" + size, b"\xe0" + size):  # a window of 128 MiB, a single segment
        assert reason(magic + head + b"\x03\x00\x00A", "zstd") is Reason.BAD_REPLY
    # RLE blocks (RFC 8878, 3.1.1.2) of 128 KiB in a window of 8 MiB: a bomb like any other.
    block = (128 * 1024 << 3 | 2).to_bytes(3, "little") + b"A"
    bomb = magic + b"\xc0\x68" + size + block * 2_000
    assert reason(bomb, "zstd") is Reason.TOO_LARGE


@pytest.mark.parametrize(
    ("member", "coding"),
    [(gzip.compress(b"", mtime=0), "gzip"), (zstd.compress(b""), "zstd"), (skippable(0), "zstd")],
    ids=["gzip", "zstd", "skippable"],
)
def test_more_members_than_any_page_has_are_a_bad_reply(member: bytes, coding: str) -> None:
    members = member * MAX_MEMBERS
    assert decode(members, coding, size=len(members)) == b""
    assert reason(members + member, coding) is Reason.BAD_REPLY
    assert reason(member * 100_000, coding, limit=10 * MIB) is Reason.BAD_REPLY


def seconds(data: bytes, coding: str) -> float:
    best = 1e9
    for _ in range(3):
        body = Body(20 * MIB, [coding])
        body.feed(data)
        started = time.process_time()
        with suppress(FetchError):
            body.finish()
        best = min(best, time.process_time() - started)
    return best


@pytest.mark.parametrize(
    ("shape", "coding", "count"),
    [
        (lambda count: gzip.compress(b"", mtime=0) * count, "gzip", 2_500),
        (lambda count: zstd.compress(b"") * count, "zstd", 2_500),
        (lambda count: b"\x00\x00\x00\xff\xff" * count, "deflate", 500_000),
        (lambda count: b"\x0c" + b"\x06" * count + b"\x03", "br", 500_000),
        (dear_brotli, "br", 400),
    ],
    ids=["members", "frames", "empty blocks", "empty metablocks", "dear metablocks"],
)
def test_four_times_as_many_parts_take_four_times_as_long(
    shape: Callable[[int], bytes], coding: str, count: int
) -> None:
    # Quadratic work would take 16 times as long.
    assert seconds(shape(4 * count), coding) < 9 * seconds(shape(count), coding)


@pytest.mark.parametrize("slice_seconds", [1.0, -1.0], ids=["one slice", "many slices"])
def test_a_body_that_is_dear_to_decode_is_given_up(slice_seconds: float) -> None:
    data = dear_brotli(2_000)
    assert decode(data, "br") == b"A" * 2_000
    body = fed(data, "br")
    with pytest.raises(FetchError, match=r"takes more than 0\.02 CPU seconds"):
        for _ in body.decode(max_seconds=0.02, slice_seconds=slice_seconds):
            pass


def test_waiting_between_two_slices_does_not_count_as_decoding() -> None:
    ticks = iter(range(1_000_000))
    body = fed(gzip.compress(bytes(LIMIT), mtime=0))
    for _ in body.decode(clock=lambda: next(ticks) / 1_000):
        for _ in range(10_000):
            next(ticks)
    assert body.finish() == bytes(LIMIT)


@pytest.mark.parametrize("coding", CODINGS)
def test_between_two_steps_little_is_read_and_little_is_written(coding: str) -> None:
    taken = 0

    def feeding() -> Iterator[bytes]:
        nonlocal taken
        for start in range(0, len(data), 100):
            yield data[start : start + 100]
            taken += 100

    noise = random.Random(1).randbytes(50_000)
    data = ENCODERS[coding](bytes(900_000) + noise)
    sizes, reads = [], [0]
    for piece in Coding(coding, LIMIT).undo(feeding()):
        sizes.append(len(piece))
        reads.append(taken)
    assert sum(sizes) == 950_000
    assert max(sizes) <= STEP
    assert max(after - before for before, after in pairwise(reads)) <= 100
    # A chunk of any size is taken in slices.
    assert len(list(Coding(coding, LIMIT).undo([data]))) >= len(data) // SLICE


def test_decoding_stops_for_others_in_between() -> None:
    for coding in CODINGS:
        body = fed(ENCODERS[coding](bytes(LIMIT)), coding)
        assert sum(1 for _ in body.decode(slice_seconds=-1)) >= LIMIT // STEP
        assert body.finish() == bytes(LIMIT)


DEAR = dear_brotli(3_000)


@pytest.fixture
def slots() -> trio.Semaphore:
    return trio.Semaphore(SLOTS)


def fed(data: bytes, coding: str = "gzip", kind: type[Body] = Body) -> Body:
    body = kind(LIMIT, [coding])
    body.feed(data)
    return body


async def test_slots_return_what_finish_does(slots: trio.Semaphore) -> None:
    for coding in CODINGS:
        body = fed(ENCODERS[coding](b"page" * 9_000), coding)
        assert await decoded(body, slots) == b"page" * 9_000
    plain = Body(LIMIT)
    plain.feed(b"page")
    assert await decoded(plain, slots) == b"page"
    assert slots.value == SLOTS


async def test_two_bodies_at_a_time_are_decoded_while_others_run(slots: trio.Semaphore) -> None:
    most, begun, others = 0, list[str](), 0

    class Watched(Body):
        def decode(self, **_: Any) -> Iterator[None]:
            nonlocal most
            begun.append("body")
            for _ in super().decode(slice_seconds=-1):
                most = max(most, SLOTS - slots.value)
                yield

    async def read() -> None:
        body = fed(gzip.compress(bytes(LIMIT), mtime=0), kind=Watched)
        assert len(await decoded(body, slots)) == LIMIT

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(read)
        while len(begun) < 6:  # `finish` asks once more
            others += 1
            await trio.lowlevel.checkpoint()
    assert most == SLOTS
    assert others >= LIMIT // STEP


@pytest.mark.parametrize("data", [b"junk", gzip.compress(b"page", mtime=0)[:-1]])
async def test_a_faulty_body_leaves_its_slot_free(data: bytes, slots: trio.Semaphore) -> None:
    with pytest.raises(FetchError):
        await decoded(fed(data), slots)
    assert slots.value == SLOTS


async def test_a_cancelled_decoding_leaves_its_slot_free(slots: trio.Semaphore) -> None:
    body = fed(DEAR, "br")
    with trio.CancelScope() as scope:
        scope.cancel()
        await decoded(body, slots)
    assert scope.cancelled_caught
    assert slots.value == SLOTS


async def test_a_small_body_is_decoded_without_a_checkpoint(slots: trio.Semaphore) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        assert await decoded(fed(gzip.compress(b"page", mtime=0)), slots) == b"page"
    assert not scope.cancelled_caught


def test_output_that_fills_a_step_to_the_brim_is_not_lost() -> None:
    for size in (32_752, 32_753, STEP - 1, STEP, STEP + 1, 98_272, 2 * STEP):
        for coding in CODINGS:
            assert len(decode(ENCODERS[coding](bytes(size)), coding)) == size
    # Of a bare stream no checksum is left to be read: all input may be taken by then.
    for size in range(STEP, STEP + 300):
        assert len(decode(deflate(bytes(size), -15), "deflate")) == size


@for_each("size", [1, 7, 1_000, 30_000, 70_000, 499_999, 600_000])
def test_a_plain_body_of_many_chunks_is_their_sum(size: int) -> None:
    page = random.Random(1).randbytes(LIMIT)
    for length in (size, 2 * size, 17 * size, LIMIT):
        part = page[: min(length, 40_000 * size)]
        assert decode(part, size=size) == part


@pytest.mark.parametrize("library", ["brotli", "compression.zstd", "backports.zstd"])
def test_a_library_is_imported_for_the_first_body_that_needs_it(library: str) -> None:
    # httpx imports brotli for itself, where it is to be had: so it must not be.
    script = """
import gzip, sys
sys.modules[sys.argv[1]] = None
from trio_crawler.net.decode import Body
for coding, data in ("gzip", gzip.compress(b"page", mtime=0)), ("br", b""), ("zstd", b""):
    body = Body(99, [coding])
    body.feed(data)
    body.finish()
"""
    subprocess.run([sys.executable, "-c", script, library], check=True)
