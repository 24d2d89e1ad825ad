"""The usual answer: a head and a body by Content-Length, received together, over a kept socket."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

import pytest
from sites.exchange import table
from sites.pieces import Pieces, at_once
from sites.raw import chunked, raw_server, reply

import trio_crawler
from trio_crawler.model import Job, Response
from trio_crawler.net.fetch import HttpFetch
from trio_crawler.net.http1.connection import Connection
from trio_crawler.net.http1.message import Head
from trio_crawler.net.turn import Progress

PACKAGE = Path(trio_crawler.__file__).parent
OK = b"HTTP/1.1 200 OK\r\n"
NOT_WHOLE = {
    "a body that has not all come": [OK + b"Content-Length: 4\r\n\r\npag", b"e"],
    "a body of which nothing has come": [OK + b"Content-Length: 4\r\n\r\n", b"page"],
    "chunks": [OK + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(b"page")],
    "a body that ends with the connection": [OK + b"\r\npage"],
}


def asked(*pieces: bytes) -> tuple[Connection, Head, Progress]:
    connection, progress = Connection(("http", "h.test", 80), Pieces(pieces)), Progress("h.test")
    return connection, at_once(connection.ask(b"GET / HTTP/1.1\r\n\r\n", progress, 99)), progress


@pytest.mark.parametrize("body", [b"page", b""])
def test_a_body_that_came_with_its_head_is_taken_whole_and_the_connection_is_kept(
    body: bytes,
) -> None:
    connection, _, progress = asked(reply(body=body))
    assert connection.take_whole() == body
    assert connection.reusable
    assert progress.received == len(body)


def test_bytes_behind_a_body_that_is_taken_whole_end_the_connection() -> None:
    connection, _, _ = asked(reply(body=b"page") + reply(body=b"evil"))
    assert connection.take_whole() == b"page"
    assert not connection.reusable


@pytest.mark.parametrize("pieces", table(NOT_WHOLE))
def test_it_is_read_step_by_step_and_not_taken_whole_if_it_is(pieces: list[bytes]) -> None:
    connection, _, _ = asked(*pieces)
    assert connection.take_whole() is None
    parts = []
    while part := at_once(connection.read()):
        parts.append(part)
    assert b"".join(parts) == b"page"


async def test_a_usual_answer_takes_at_most_55_calls_and_none_more_for_a_longer_body() -> None:
    calls: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and PACKAGE in Path(frame.f_code.co_filename).parents:
            calls.append(frame.f_code.co_qualname)

    counts = []
    pages = {f"/{size}": reply(body=b"x" * size) for size in (1, 100, 5_000)}
    async with raw_server(pages) as server, HttpFetch(seeds=[server.url]) as fetch:
        for size in (1, 1, 100, 5_000):
            calls.clear()
            sys.setprofile(note)
            try:
                answer = await fetch(Job(f"{server.url}{size}"))
            finally:
                sys.setprofile(None)
            assert isinstance(answer, Response)
            assert answer.body == b"x" * size
            counts.append(len(calls))
        assert fetch.statistics().bytes == 5_102
    # The first one has opened the connection.
    assert counts[1] == counts[2] == counts[3] <= 55
