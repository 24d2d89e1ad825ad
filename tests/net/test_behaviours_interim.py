"""Servers that send interim answers, change the protocol, or answer before they are asked."""

from __future__ import annotations

import pytest
import trio
from cases import for_each
from sites.exchange import KIB, meet, table
from sites.raw import Request, chunked, redirect, reply, reset

from trio_crawler.model import Phase, Reason

OK = b"HTTP/1.1 200 OK\r\n"
PAGE = reply(body=b"page")
EARLY = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"
GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"

PASSED_OVER = {
    "a 100": GO_ON,
    "a 100 without a phrase": b"HTTP/1.1 100\r\n\r\n",
    "a 102": b"HTTP/1.1 102 Processing\r\n\r\n",
    "a 103 with links": EARLY,
    "an interim answer nobody knows": b"HTTP/1.1 199 What\r\n\r\n",
    "an interim answer of HTTP 1.0": b"HTTP/1.0 100 Continue\r\n\r\n",
    "an interim answer with a length of nothing": (
        b"HTTP/1.1 103 Early Hints\r\nContent-Length: 0\r\n\r\n"
    ),
    "an interim answer that says chunked": (
        b"HTTP/1.1 103 Early Hints\r\nTransfer-Encoding: chunked\r\n\r\n"
    ),
    "an interim answer that says close": b"HTTP/1.1 100 Continue\r\nConnection: close\r\n\r\n",
    "an interim answer with a cookie": b"HTTP/1.1 103 Early Hints\r\nSet-Cookie: a=b\r\n\r\n",
    "eight interim answers": EARLY * 8,
    "a 100 and a 103": GO_ON + EARLY,
    "interim answers with 255 lines": b"HTTP/1.1 103 E\r\n%s\r\n" % (b"X: y\r\n" * 255),
    "an interim answer of 60,000 bytes": b"HTTP/1.1 103 E\r\nX: %s\r\n\r\n" % (b"y" * 60_000),
}


@for_each("interim", table(PASSED_OVER))
async def test_it_is_passed_over(interim: bytes) -> None:
    met = await meet(interim + PAGE)
    assert (met.status, met.body) == (200, b"page")
    assert met.kept
    assert met.bytes_in == len(interim + PAGE)


async def test_an_interim_answer_in_loose_lines_is_passed_over() -> None:
    met = await meet(b"HTTP/1.1 103 Early Hints\nLink: a\n\n" + PAGE)
    assert met.body == b"page"


REFUSED = {
    "nine interim answers": (EARLY * 9 + PAGE, "interim"),
    "ten thousand interim answers": (GO_ON * 10_000 + PAGE, "interim"),
    "interim answers with 256 lines and a page with one": (
        b"HTTP/1.1 103 E\r\n%s\r\n" % (b"X: y\r\n" * 256) + PAGE,
        "header lines",
    ),
    "eight interim answers with 40 lines each": (
        b"HTTP/1.1 103 E\r\n%s\r\n" % (b"X: y\r\n" * 40) * 8 + PAGE,
        "header lines",
    ),
    "interim answers with 65 KiB together": (
        b"HTTP/1.1 103 E\r\nX: %s\r\n\r\n" % (b"y" * 13 * KIB) * 5 + PAGE,
        "bytes",
    ),
    "a 101 to HTTP 2": (
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
        "protocol",
    ),
    "a 101 to a web socket": (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n\x81\x05hello",
        "protocol",
    ),
    "a 101 without an upgrade and a page": (b"HTTP/1.1 101 OK\r\n\r\n" + PAGE, "protocol"),
    "a 101 behind a 100": (GO_ON + b"HTTP/1.1 101 OK\r\n\r\n" + PAGE, "protocol"),
    "junk behind a 100": (GO_ON + b"junk" + PAGE, "not HTTP"),
    "a little junk behind a 100": (GO_ON + b"junk", "not HTTP"),
    "the body of a 103": (b"HTTP/1.1 103 E\r\nContent-Length: 4\r\n\r\npage" + PAGE, "not HTTP"),
    "a 103 with two lengths": (
        b"HTTP/1.1 103 E\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n" + PAGE,
        "length",
    ),
    "a 100 with a NUL": (b"HTTP/1.1 100 Continue\r\nX: \0\r\n\r\n" + PAGE, "control"),
}


@for_each("answer, why", table(REFUSED))
async def test_it_is_a_bad_reply_to_send(answer: bytes, why: str) -> None:
    met = await meet(answer)
    assert met.fault == (Reason.BAD_REPLY, Phase.WAIT)
    assert why in met.detail
    assert (met.kept, met.asked, met.made) == (False, 1, 2)
    assert met.bytes_in <= len(answer)


async def test_interim_answers_without_end_are_left_after_nine() -> None:
    async def flood(request: Request, stream: trio.abc.Stream) -> None:
        while True:
            await stream.send_all(EARLY)
            await trio.lowlevel.checkpoint()

    met = await meet(flood)
    assert met.fault == (Reason.BAD_REPLY, Phase.WAIT)
    assert met.bytes_in < 256 * KIB


@pytest.mark.parametrize("interim", table({"a 100": GO_ON, "eight 103": EARLY * 8}))
async def test_a_close_is_a_reset_that_follows(interim: bytes) -> None:
    met = await meet(interim, closes=True)
    assert met.fault == (Reason.RESET, Phase.WAIT)
    assert (met.asked, met.made) == (1, 2)


# At each phase something may end. The server of a `meet` has the request already.

CUT = {
    "before the first byte": b"",
    "in the first byte's word": b"HT",
    "in the status": b"HTTP/1.1 20",
    "in the phrase": b"HTTP/1.1 200 O",
    "behind the status line": OK,
    "in a field": OK + b"Content-Len",
    "behind a field": OK + b"Content-Length: 4\r\n",
    "in the empty line": OK + b"Content-Length: 4\r\n\r",
}


@for_each("begun", table(CUT))
async def test_an_answer_is_a_reset_that_is_closed(begun: bytes) -> None:
    met = await meet(begun, closes=True)
    assert met.fault == (Reason.RESET, Phase.WAIT)
    assert "before it had answered" in met.detail
    assert (met.kept, met.asked, met.made) == (False, 1, 2)
    assert met.bytes_in == len(begun)


@for_each("begun", table(CUT))
async def test_an_answer_is_a_reset_that_is_broken(begun: bytes) -> None:
    async def broken(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(begun)
        await trio.testing.wait_all_tasks_blocked()
        await reset(request, stream)

    met = await meet(broken)
    assert met.fault == (Reason.RESET, Phase.WAIT)
    assert (met.kept, met.asked, met.made) == (False, 1, 2)


WHOLE = {
    "a length": (PAGE, b"page", 200),
    "chunks": (OK + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(b"page"), b"page", 200),
    "a redirect": (redirect("/x"), b"", 302),
    "a 204": (b"HTTP/1.1 204 No Content\r\n\r\n", b"", 204),
}


@pytest.mark.parametrize(("answer", "body", "status"), table(WHOLE))
async def test_an_answer_is_whole_that_is_reset_behind_its_end_with(
    answer: bytes, body: bytes, status: int
) -> None:
    async def broken(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(answer)
        await trio.testing.wait_all_tasks_blocked()
        await reset(request, stream)

    met = await meet(broken)
    assert (met.status, met.body, met.kept, met.asked) == (status, body, False, 1)
