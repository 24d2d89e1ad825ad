"""Answers that went through chance: whatever comes out, it is a response or a fault."""

from __future__ import annotations

import gzip
import random
import re
import zlib
from collections import Counter
from collections.abc import Callable

import brotli  # type: ignore[import-untyped]
import pytest
from sites.pieces import Heard, hear
from sites.raw import chunked, redirect, reply
from sites.ruler import size_of_one

from trio_crawler.model import Fault, Phase, Reason
from trio_crawler.net.dial.stream import STEP
from trio_crawler.net.http1.wire import FRAMING_BYTES

pytestmark = pytest.mark.slow

LIMIT = 4096
NEXT = reply(body=b"the next")
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
PAGE = b"<title>page</title>" * 5

SEEDS = (
    reply(body=PAGE),
    reply(404, {"Content-Type": "text/html", "Connection": "keep-alive"}, PAGE),
    OK + b"Content-Length: 4, 4\r\nContent-Length: 4\r\n\r\npage",
    b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 4\r\n\r\npage",
    b"HTTP/1.1 200 OK\r\n\r\nto the end",
    CHUNKED + chunked(PAGE, b"x", b"\r\n\r\n"),
    CHUNKED + chunked(b"page", trailers=b"X-Sum: 7\r\nY: z\r\n"),
    CHUNKED + b'4 ;a=b;c="d"\r\npage\r\n00;e\r\n\r\n',
    CHUNKED + chunked(*[b"x"] * 10),
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 304 Not Modified\r\nContent-Length: 12\r\nETag: x\r\n\r\n",
    redirect("/x"),
    b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 2 + reply(body=b"page"),
    b"HTTP/1.1 100 Continue\r\n\r\n" + CHUNKED + chunked(b"page"),
    OK + b"X: a\r\n b\r\n\tc\r\nContent-Length: 4\r\n\r\npage",
    (OK + b"Content-Length: 4\r\n\r\n").replace(b"\r\n", b"\n") + b"page",
    OK + b"Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(b"page"),
    OK + b"Connection: close\r\nTransfer-Encoding: identity\r\n\r\npage",
    reply(body=PAGE) + reply(body=b"evil"),
    CHUNKED + chunked(b"page") + reply(body=b"evil"),
    reply(200, {"Content-Encoding": "gzip"}, gzip.compress(PAGE, mtime=0)),
    reply(200, {"Content-Encoding": "deflate"}, zlib.compress(PAGE)),
    reply(200, {"Content-Encoding": "br"}, brotli.compress(PAGE)),
    reply(200, {"Content-Encoding": "gzip, br"}, brotli.compress(gzip.compress(PAGE, mtime=0))),
    reply(200, {"Content-Encoding": "gzip"}, gzip.compress(bytes(50 * LIMIT), mtime=0)),
    reply(200, {"Content-Encoding": "br"}, brotli.compress(bytes(50 * LIMIT))),
)

# Mutations.

SPICE = (
    *(b"\r\n", b"\n", b"\r", b"\0", b":", b" ", b"\t", b",", b";", b"=", b"-", b"+", b'"'),
    *(b"0", b"1", b"9", b"f", b"\xff", b"\r\n\r\n", b"\n\n", b"0\r\n\r\n", b"HTTP/1.1 "),
    *(b"Content-Length: 4\r\n", b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n"),
    *(b"Content-Length: 0\r\n", b"Content-Encoding: gzip\r\n", b"X: y\r\n", b" z\r\n"),
)


def flip(chance: random.Random, data: bytes) -> bytes:
    place = chance.randrange(len(data))
    changed = bytes([data[place] ^ 1 << chance.randrange(8)])
    return data[:place] + changed + data[place + 1 :]


def cut(chance: random.Random, data: bytes) -> bytes:
    begin = chance.randrange(len(data))
    return data[:begin] + data[begin + chance.randrange(1, 9) :]


def end(chance: random.Random, data: bytes) -> bytes:
    return data[: chance.randrange(len(data)) + 1]


def insert(chance: random.Random, data: bytes) -> bytes:
    place = chance.randrange(len(data) + 1)
    return data[:place] + chance.choice(SPICE) + data[place:]


def append(chance: random.Random, data: bytes) -> bytes:
    return data + chance.choice(SPICE)


def splice(chance: random.Random, data: bytes) -> bytes:
    other = chance.choice(SEEDS)
    return data[: chance.randrange(len(data))] + other[chance.randrange(len(other)) :]


def double(chance: random.Random, data: bytes) -> bytes:
    lines = data.split(b"\r\n")
    place = chance.randrange(len(lines))
    return b"\r\n".join([*lines[:place], lines[place], *lines[place:]])


def swap(chance: random.Random, data: bytes) -> bytes:
    lines = data.split(b"\r\n")
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\r\n".join(lines)


def number(chance: random.Random, data: bytes) -> bytes:
    figures = list(re.finditer(rb"[0-9]+", data))
    if not figures:
        return data
    found = chance.choice(figures)
    figure = b"%d" % chance.choice((0, 1, 3, 4, 5, 12, 100, 255, 2**31, 2**64, 10**30))
    return data[: found.start()] + figure + data[found.end() :]


MUTATIONS: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    *(flip, cut, end, insert, insert, append, splice, double, swap, number),
)


def mutated(chance: random.Random) -> bytes:
    data = chance.choice(SEEDS)
    for _ in range(chance.randrange(1, 4)):
        data = chance.choice(MUTATIONS)(chance, data) or b"H"
    return data


def pieces_of(chance: random.Random, data: bytes) -> list[bytes]:
    marks = sorted(chance.randrange(len(data) + 1) for _ in range(chance.randrange(1, 5)))
    return [data[begin:stop] for begin, stop in zip([0, *marks], [*marks, None], strict=True)]


def test_the_measure_is_right_for_answers_that_are() -> None:
    behind = [seed for seed in SEEDS if seed.endswith(b"evil")]
    assert [size_of_one(seed) for seed in behind] == [len(seed) - 42 for seed in behind]
    whole = [seed for seed in SEEDS if size_of_one(seed) == len(seed)]
    assert len(whole) == 19
    for seed in whole:
        assert hear([seed], LIMIT).kept


# 100,000 of them with `--all`, each 10,000 from a seed of its own; a tenth before a merge.

REASONS = {
    Reason.BAD_REPLY: {Phase.WAIT, Phase.READ},
    Reason.INCOMPLETE: {Phase.READ},
    Reason.RESET: {Phase.WAIT},
    Reason.TOO_LARGE: {Phase.READ},
}


def check(heard: Heard, data: bytes) -> None:
    """Check what holds for any bytes at all."""
    told = heard.told
    if isinstance(told, Fault):
        assert told.phase in REASONS[told.reason], told
        assert told.detail
        assert told.detail.isprintable()
    else:
        status, fields, body = told
        assert 200 <= status <= 999
        assert len(fields) <= 256
        assert len(body) <= LIMIT
    assert heard.received <= min(len(data), LIMIT + FRAMING_BYTES + STEP)


def alike(heard: Heard) -> object:
    told = heard.told
    # Of two faults in one answer, the one that is seen first depends on how it comes.
    return "fault" if isinstance(told, Fault) else told


@pytest.fixture
def answers(request: pytest.FixtureRequest) -> int:
    return 10_000 if request.config.getoption("--all") else 1_000


@pytest.mark.parametrize("seed", range(10))
def test_a_mutated_answer_is_a_response_or_a_fault_and_its_end_is_known(
    seed: int, answers: int
) -> None:
    chance = random.Random(seed)
    counts: Counter[str] = Counter()
    for _ in range(answers):
        data = mutated(chance)
        pieces = pieces_of(chance, data)
        # The next answer comes behind it, as a whole, before it is asked for or when it is.
        before, after = hear([*pieces, NEXT], LIMIT), hear(pieces, LIMIT)
        check(before, data + NEXT)
        check(after, data)
        assert not before.kept or before.received == len(data + NEXT), data
        if after.kept:
            assert size_of_one(data) == after.received == len(data), data
        if before.kept:
            # Then it was taken for a part of this answer.
            assert size_of_one(data + NEXT) == len(data + NEXT), data
        if not isinstance(after.told, Fault):
            assert alike(hear([data], LIMIT)) == alike(after), data
        counts[str(after.told.reason) if isinstance(after.told, Fault) else "response"] += 1
        counts["kept"] += after.kept
    assert min(counts["response"], counts["kept"], counts["bad_reply"]) > answers // 40, counts
    assert min(counts["incomplete"], counts["reset"], counts["too_large"]) > answers // 400, counts


def test_random_bytes_are_a_response_or_a_fault(answers: int) -> None:
    chance = random.Random(0)
    for _ in range(answers):
        data = CHUNKED[: chance.randrange(len(CHUNKED) + 1)] + chance.randbytes(
            chance.randrange(60)
        )
        check(hear(pieces_of(chance, data), LIMIT), data)


def test_an_answer_made_of_its_parts_at_random_is_a_response_or_a_fault(answers: int) -> None:
    starts = (OK, b"HTTP/1.0 200 OK\r\n", b"HTTP/1.1 204 N\r\n", b"HTTP/1.1 304 N\r\n")
    lines = tuple(spice for spice in SPICE if spice.endswith(b"\r\n"))
    bodies = (b"page", b"4\r\npage\r\n", b"0\r\n\r\n", b"0\r\n\r\n", b"", *SPICE)
    chance = random.Random(1)
    kept = 0
    for _ in range(2 * answers):
        head = b"".join([chance.choice(starts), *chance.choices(lines, k=chance.randrange(4))])
        data = b"".join([head, b"\r\n", *chance.choices(bodies, k=chance.randrange(4))])
        heard = hear(pieces_of(chance, data), LIMIT)
        check(heard, data)
        if heard.kept:
            kept += 1
            assert size_of_one(data) == heard.received == len(data), data
    assert kept > answers // 10, kept
