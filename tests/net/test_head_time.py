"""Heads and chunks made to be slow: their cost grows with their size and no faster."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from time import process_time

import pytest
from sites.exchange import table
from sites.pieces import hear

from trio_crawler.net.dial.stream import STEP
from trio_crawler.net.errors import FetchError
from trio_crawler.net.http1.message import parse

pytestmark = pytest.mark.slow

KIB = 1024
LIMIT = 1024 * KIB
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"

MONOTONOUS = {
    "spaces": lambda size: b"X:" + b" " * size + b"\r\n",
    "spaces without a colon": lambda size: b"X" + b" " * size + b"\r\n",
    "spaces first": lambda size: b" " * size + b"\r\n",
    "tabs": lambda size: b"X:" + b"\t" * size + b"y\r\n",
    "tabs before a colon": lambda size: b"X" + b"\t" * size + b": y\r\n",
    "spaces and tabs behind a value": lambda size: b"X: y" + b" \t" * (size // 2) + b"z\r\n",
    "folds": lambda size: b"X: y\r\n" + b" z\r\n" * (size // 4),
    "folds of nothing": lambda size: b"X:\r\n" + b" \r\n" * (size // 3),
    "folds with bare LFs": lambda size: b"X:" + b"\n " * (size // 2) + b"\r\n",
    "folds of nothing first": lambda size: b" \r\n" * (size // 3),
    "folds that end in a NUL": lambda size: b"X:" + b"\n " * (size // 2) + b"\0\r\n",
    "folds that end in a CR": lambda size: b"X:" + b"\n " * (size // 2) + b"\r \r\n",
    "colons": lambda size: b":" * size + b"\r\n",
    "colons in a value": lambda size: b"X" + b":" * size + b"\r\n",
    "colons and spaces": lambda size: b"X" + b": " * (size // 2) + b"\r\n",
    "a name": lambda size: b"X" * size + b": y\r\n",
    "a name without a colon": lambda size: b"X" * size + b"\r\n",
    "a name that ends in a NUL": lambda size: b"X" * size + b"\0\r\n",
    "names without a colon": lambda size: b"X\r\n" * (size // 3),
    "names and spaces": lambda size: b"X " * (size // 2) + b"\r\n",
    "carriage returns": lambda size: b"X: " + b"\r" * size + b"\r\n",
    "a value": lambda size: b"X: " + b"y" * size + b"\n",
    "a number": lambda size: b"Content-Length: " + b"9" * size + b"\r\n",
    "equal numbers": lambda size: b"Content-Length: 5" + b",5" * (size // 2) + b"\r\n",
    "commas in a length": lambda size: b"Content-Length: 5" + b"," * size + b"\r\n",
    "commas in Connection": lambda size: b"Connection: " + b"," * size + b"\r\n",
    "commas in Transfer-Encoding": lambda size: b"Transfer-Encoding: " + b"," * size + b"\r\n",
    "identities": lambda size: b"Transfer-Encoding: x" + b",identity" * (size // 9) + b"\r\n",
    "codings": lambda size: b"Content-Encoding: " + b"gzip, " * (size // 6) + b"\r\n",
    "lengths": lambda size: b"Content-Length: 5\r\n" * (size // 19),
    "connections": lambda size: b"Connection: a, b, c\r\n" * (size // 21),
    "a phrase": lambda size: b"",
}


def seconds(work: Callable[[], object]) -> float:
    """Take the best of five, in CPU time, of as many runs as the clock can tell apart."""
    best = float("inf")
    for _ in range(5):
        begun, runs = process_time(), 0
        while (spent := process_time() - begun) < 0.002:
            work()
            runs += 1
        best = min(best, spent / runs)
    return best


def read(raw: bytes) -> None:
    with suppress(FetchError):
        parse(raw)


@pytest.mark.parametrize("lines", table(MONOTONOUS))
def test_a_head_costs_time_in_proportion_to_its_size_of(lines: Callable[[int], bytes]) -> None:
    start = b"HTTP/1.1 200 OK"
    small, large = (
        start + (b"O" * size if lines(1) == b"" else b"") + b"\r\n" + lines(size) + b"\r\n"
        for size in (15 * KIB, 60 * KIB)
    )
    # Four times the size: sixteen times the time would be quadratic, and 3 a doubling are 9.
    ratio = seconds(lambda: read(large)) / seconds(lambda: read(small))
    assert ratio < 9, ratio
    assert seconds(lambda: read(large)) < 0.05


def test_a_head_that_comes_byte_by_byte_costs_no_more_than_a_second() -> None:
    raw = OK + b"X: " + b"y" * 60 * KIB + b"\r\nContent-Length: 0\r\n\r\n"
    begun = process_time()
    heard = hear([raw[place : place + 1] for place in range(len(raw))])
    assert heard.kept
    assert process_time() - begun < 2


def test_chunks_of_one_byte_cost_time_in_proportion_to_their_number() -> None:
    def read_chunks(count: int) -> None:
        data = CHUNKED + b"1\r\nx\r\n" * count + b"0\r\n\r\n"
        assert hear(
            [data[place : place + STEP] for place in range(0, len(data), STEP)], LIMIT
        ).kept

    ratio = seconds(lambda: read_chunks(60_000)) / seconds(lambda: read_chunks(15_000))
    assert ratio < 9, ratio
