"""Servers that break a connection that is used again, and such as do not wait for a request."""

from __future__ import annotations

import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import repeat

import pytest
import trio
from cases import for_each
from sites.exchange import KIB, MIB, table
from sites.raw import Handler, Request, hang_up, raw_server, reply, reset, silence
from trio.testing import MockClock

from trio_crawler.model import Fault, Job, Phase, Reason, Response
from trio_crawler.net.fetch import HttpFetch
from trio_crawler.net.statistics import WireStatistics

Accept = Callable[[trio.SocketStream], Awaitable[object]]
PAGE = reply(body=b"page")


def wire_of(fetch: HttpFetch) -> WireStatistics:
    wire = fetch.statistics().wire
    assert wire is not None
    return wire


def second_time(behaviour: Handler) -> tuple[Handler, list[str]]:
    """Answer the first request of all with a page, the second by `behaviour`, and so on."""
    seen: list[str] = []

    async def site(request: Request, stream: trio.abc.Stream) -> None:
        seen.append(request.target)
        if len(seen) == 2:
            await behaviour(request, stream)
        else:
            await stream.send_all(PAGE)

    return site, seen


# A kept connection that dies under the request (RFC 9112, 9.3.1).


@pytest.mark.parametrize("dies", table({"is closed": hang_up, "is reset": reset}))
async def test_a_request_goes_out_again_at_once_when_its_kept_connection(dies: Handler) -> None:
    site, seen = second_time(dies)
    async with raw_server(site) as server, HttpFetch(seeds=[server.url]) as fetch:
        await fetch(Job(server.url + "a"))
        answer = await fetch(Job(server.url + "b"))
        wire = wire_of(fetch)
        assert fetch.statistics().requests == 2, "the second attempt is not counted"
    assert isinstance(answer, Response)
    assert answer.body == b"page"
    assert seen == ["/a", "/b", "/b"]
    assert (wire.made, wire.reused, wire.retried) == (2, 1, 1)
    assert server.connections == 2


async def test_a_request_goes_out_twice_at_most() -> None:
    async def site(request: Request, stream: trio.abc.Stream) -> None:
        await (stream.send_all(PAGE) if request.target == "/a" else stream.aclose())

    async with raw_server(site) as server, HttpFetch(seeds=[server.url]) as fetch:
        await fetch(Job(server.url + "a"))
        answer = await fetch(Job(server.url + "b"))
        wire = wire_of(fetch)
    assert isinstance(answer, Fault)
    assert (answer.reason, answer.phase) == (Reason.RESET, Phase.WAIT)
    assert server.targets == ["/a", "/b", "/b"]
    assert (wire.made, wire.retried, wire.open) == (2, 1, 0)


BEGUN = {
    "one byte": b"H",
    "a status line": b"HTTP/1.1 200 OK\r\n",
    "an interim answer": b"HTTP/1.1 103 Early Hints\r\n\r\n",
}


@for_each("begun", table(BEGUN))
@for_each("dies", table({"closed": hang_up, "reset": reset}))
async def test_a_request_does_not_go_out_again_that_was_answered_by(
    dies: Handler, begun: bytes
) -> None:
    async def begin(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(begun)
        await trio.testing.wait_all_tasks_blocked()
        await dies(request, stream)

    site, seen = second_time(begin)
    async with raw_server(site) as server, HttpFetch(seeds=[server.url]) as fetch:
        await fetch(Job(server.url + "a"))
        answer = await fetch(Job(server.url + "b"))
        wire = wire_of(fetch)
    assert isinstance(answer, Fault)
    assert (answer.reason, answer.phase) == (Reason.RESET, Phase.WAIT)
    assert seen == ["/a", "/b"]
    assert (wire.made, wire.reused, wire.retried) == (1, 1, 0)


async def test_a_bad_reply_on_a_kept_connection_is_not_asked_for_again() -> None:
    async def junk(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(b"junk\r\n\r\n")

    site, seen = second_time(junk)
    async with raw_server(site) as server, HttpFetch(seeds=[server.url]) as fetch:
        await fetch(Job(server.url + "a"))
        answer = await fetch(Job(server.url + "b"))
    assert isinstance(answer, Fault)
    assert answer.reason is Reason.BAD_REPLY
    assert seen == ["/a", "/b"]


async def test_a_kept_connection_that_says_nothing_more_is_not_asked_again_in_time() -> None:
    site, seen = second_time(silence)
    async with raw_server(site) as server, HttpFetch(timeout=0.2, seeds=[server.url]) as fetch:
        await fetch(Job(server.url + "a"))
        answer = await fetch(Job(server.url + "b"))
        assert wire_of(fetch).open == 0
    assert isinstance(answer, Fault)
    assert (answer.reason, answer.phase) == (Reason.TIMEOUT, Phase.WAIT)
    assert seen == ["/a", "/b"]


async def test_a_body_that_breaks_on_a_kept_connection_is_not_asked_for_again() -> None:
    async def cut(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npage")
        await stream.aclose()

    site, seen = second_time(cut)
    async with raw_server(site) as server, HttpFetch(seeds=[server.url]) as fetch:
        await fetch(Job(server.url + "a"))
        answer = await fetch(Job(server.url + "b"))
    assert isinstance(answer, Fault)
    assert (answer.reason, answer.phase) == (Reason.INCOMPLETE, Phase.READ)
    assert seen == ["/a", "/b"]


async def test_a_hundred_requests_need_one_connection() -> None:
    site = {f"/{number}": reply(body=b"%d" % number) for number in range(100)}
    async with raw_server(site) as server, HttpFetch(seeds=[server.url]) as fetch:
        for number in range(100):
            answer = await fetch(Job(f"{server.url}{number}"))
            assert isinstance(answer, Response)
            assert answer.body == b"%d" % number
        wire = wire_of(fetch)
    assert (server.connections, wire.made, wire.reused) == (1, 1, 99)


async def test_a_connection_that_ends_after_each_answer_costs_no_page() -> None:
    async def once(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(PAGE)
        await stream.aclose()

    async with raw_server(once) as server, HttpFetch(seeds=[server.url]) as fetch:
        for number in range(20):
            answer = await fetch(Job(f"{server.url}{number}"))
            assert isinstance(answer, Response), answer
        wire = wire_of(fetch)
    # Whether the end is seen before the next request goes out, or by it, is chance.
    assert (server.connections, wire.made) == (20, 20)
    assert len(server.requests) == 20


# Servers that do not wait for a request, or do not read it.


@asynccontextmanager
async def accepting(accept: Accept) -> AsyncIterator[str]:
    """Serve connections by `accept`, which need not read; give the URL."""
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, accept, 0)
        port = listeners[0].socket.getsockname()[1]
        yield f"http://127.0.0.1:{port}/"
        nursery.cancel_scope.cancel()


async def ask(accept: Accept, deadline: float = 5.0) -> tuple[Response | Fault, WireStatistics]:
    options = {"timeout": deadline, "max_bytes": 100 * KIB}
    async with accepting(accept) as url, HttpFetch(seeds=[url], **options) as fetch:
        answer = await fetch(Job(url))
        return answer, wire_of(fetch)


async def break_off(stream: trio.SocketStream) -> None:
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    stream.socket.close()


async def never_read(stream: trio.SocketStream) -> None:
    await trio.sleep_forever()


async def test_a_server_that_closes_every_connection_at_once_gives_a_reset() -> None:
    answer, wire = await ask(trio.aclose_forcefully)
    assert isinstance(answer, Fault)
    assert answer.reason is Reason.RESET
    assert answer.phase in (Phase.SEND, Phase.WAIT)
    assert (wire.open, wire.made, wire.retried) == (0, 1, 0)


async def test_a_server_that_resets_every_connection_at_once_gives_a_reset() -> None:
    answer, wire = await ask(break_off)
    assert isinstance(answer, Fault)
    assert answer.reason is Reason.RESET
    assert (wire.open, wire.retried) == (0, 0)


async def test_an_answer_sent_before_the_request_was_is_taken() -> None:
    async def hasty(stream: trio.SocketStream) -> None:
        await stream.send_all(PAGE)
        await trio.sleep_forever()

    answer, _ = await ask(hasty)
    assert isinstance(answer, Response)
    assert answer.body == b"page"


async def test_an_answer_of_a_server_that_closes_without_having_read_is_taken() -> None:
    async def busy(stream: trio.SocketStream) -> None:
        await stream.send_all(reply(503, {"Connection": "close", "Retry-After": "1"}, b"busy"))
        await stream.aclose()

    answer, wire = await ask(busy)
    assert isinstance(answer, Response), answer
    assert (answer.status, answer.body) == (503, b"busy")
    assert (wire.open, wire.made) == (0, 1)


async def test_a_flood_before_the_request_is_left_at_the_limit() -> None:
    async def flood(stream: trio.SocketStream) -> None:
        await stream.send_all(b"HTTP/1.1 200 OK\r\n\r\n")
        for block in repeat(bytes(64 * KIB)):
            await stream.send_all(block)

    async def until_closed(stream: trio.SocketStream) -> None:
        with pytest.raises(trio.BrokenResourceError):
            await flood(stream)

    answer, wire = await ask(until_closed)
    assert isinstance(answer, Response)
    assert answer.flaw is Reason.TOO_LARGE
    assert wire.bytes_in <= (100 + 256) * KIB


async def test_a_server_that_never_reads_costs_the_deadline(mock_clock: MockClock) -> None:
    mock_clock.autojump_threshold = 0.02
    answer, wire = await ask(never_read, deadline=30)
    assert isinstance(answer, Fault)
    assert (answer.reason, answer.phase) == (Reason.TIMEOUT, Phase.WAIT)
    assert 30 <= trio.current_time() < 31
    assert wire.open == 0


async def test_a_request_that_is_not_taken_costs_the_deadline_in_sending(
    mock_clock: MockClock,
) -> None:
    mock_clock.autojump_threshold = 0.02
    headers = {"X-Large": "x" * 16 * MIB}
    async with accepting(never_read) as url, HttpFetch(seeds=[url], headers=headers) as fetch:
        answer = await fetch(Job(url))
        wire = wire_of(fetch)
    assert isinstance(answer, Fault)
    assert (answer.reason, answer.phase) == (Reason.TIMEOUT, Phase.SEND)
    assert "sending the request" in answer.detail
    assert (wire.open, wire.bytes_in) == (0, 0)
    assert 0 < wire.bytes_out < 16 * MIB


async def test_two_answers_under_way_at_once_come_to_their_own_requests() -> None:
    arrived = trio.Event()

    async def crossed(request: Request, stream: trio.abc.Stream) -> None:
        # The first request is answered after the second.
        if request.target == "/a":
            await arrived.wait()
        await stream.send_all(reply(body=request.target.encode()))
        arrived.set()

    got: dict[str, object] = {}
    async with raw_server(crossed) as server, HttpFetch(seeds=[server.url]) as fetch:

        async def get(target: str) -> None:
            answer = await fetch(Job(server.url + target))
            assert isinstance(answer, Response)
            got[target] = answer.body

        async with trio.open_nursery() as nursery:
            nursery.start_soon(get, "a")
            nursery.start_soon(get, "b")
        assert wire_of(fetch).idle == 2
    assert got == {"a": b"/a", "b": b"/b"}
    assert server.connections == 2
