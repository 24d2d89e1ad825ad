"""The wire: which connections it keeps, gives out again and closes."""

from __future__ import annotations

import errno
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from cases import for_each
from msgspec.structs import replace
from sites.docs import serve_directory
from sites.over import Wired, begun
from sites.raw import (
    Handler,
    Request,
    Server,
    chunked,
    hang_up,
    raw_server,
    redirect,
    reply,
    reset,
    silence,
)
from sites.steps import until

from trio_crawler.model import Fault, Job, Phase, Reason, Response
from trio_crawler.net.errors import FetchError
from trio_crawler.net.fetch import HttpFetch
from trio_crawler.net.statistics import WireStatistics


def wired(*servers: Server, **options: Any) -> Wired:
    """Make a wire that may connect to these servers."""
    return Wired(seeds=[server.url for server in servers], **options)


def figures(wire: Wired) -> WireStatistics:
    """Count the connections; the bytes have tests of their own."""
    return replace(wire.statistics(), bytes_in=0, bytes_out=0)


async def get(wire: Wired, url: str) -> bytes:
    return await (await begun(wire, url)).read()


@for_each(
    "answer",
    [
        reply(body=b"a") + reply(body=b"evil"),
        reply(body=b"a") + b"\r\n",
        reply(204) + reply(body=b"evil"),
        reply(304) + reply(body=b"evil"),
        redirect("/b") + reply(body=b"evil"),
        reply(200, {"Transfer-Encoding": "chunked"}, chunked(b"a")) + reply(body=b"evil"),
        reply(200, {"Transfer-Encoding": "chunked", "Content-Length": "1"}, chunked(b"a")),
    ],
)
async def test_bytes_behind_an_answer_are_never_the_answer_to_another_request(
    answer: bytes,
) -> None:
    site = {"/": answer, "/next": reply(body=b"next")}
    async with raw_server(site) as server, wired(server) as wire:
        for _ in range(3):
            await get(wire, server.url)
            assert await get(wire, server.url + "next") == b"next"
    assert server.connections > 3


def second_time(then: Handler) -> tuple[Handler, list[str]]:
    """Answer the first request of each connection, and do something else with the second."""
    served: dict[trio.abc.Stream, int] = {}
    log: list[str] = []

    async def handler(request: Request, stream: trio.abc.Stream) -> None:
        served[stream] = served.get(stream, 0) + 1
        log.append(request.target)
        if served[stream] == 1:
            await stream.send_all(reply(body=b"a"))
        else:
            await then(request, stream)

    return handler, log


@pytest.mark.parametrize("then", [hang_up, reset])
async def test_a_kept_connection_that_dies_under_the_request_is_retried_once_on_a_new_one(
    then: Handler,
) -> None:
    handler, log = second_time(then)
    async with raw_server(handler) as server, wired(server) as wire:
        assert await get(wire, server.url + "1") == b"a"
        assert await get(wire, server.url + "2") == b"a"
        assert figures(wire) == WireStatistics(open=1, idle=1, made=2, reused=1, retried=1)
    assert log == ["/1", "/2", "/2"]


async def test_a_new_connection_that_dies_is_not_retried() -> None:
    async with raw_server(hang_up) as server, wired(server) as wire:
        with pytest.raises(FetchError):
            await get(wire, server.url)
        assert figures(wire) == WireStatistics(made=1)
    assert len(server.requests) == 1


async def test_the_connection_used_last_is_used_next() -> None:
    users: list[trio.abc.Stream] = []

    async def handler(request: Request, stream: trio.abc.Stream) -> None:
        users.append(stream)
        await stream.send_all(reply(body=b"a"))

    async with raw_server(handler) as server, wired(server) as wire:
        responses = [await begun(wire, server.url) for _ in range(3)]
        for place in (0, 2, 1):
            await responses[place].read()
        for _ in range(3):
            await get(wire, server.url)
    assert len(set(users[:3])) == 3
    assert users[3:] == [users[1]] * 3


async def test_more_idle_connections_than_the_cap_are_closed_the_oldest_first() -> None:
    site = {"/": reply(body=b"a")}
    async with (
        raw_server(site) as one,
        raw_server(site) as two,
        wired(one, two, max_idle=2) as wire,
    ):
        responses = [await begun(wire, one.url) for _ in range(3)]
        for response in responses:
            await response.read()
        assert figures(wire) == WireStatistics(open=2, idle=2, made=3)
        await get(wire, two.url)
        assert figures(wire) == WireStatistics(open=2, idle=2, made=4)
        await until(lambda: (one.open, two.open) == (1, 1))
        await get(wire, one.url)
        assert wire.statistics().reused == 1


async def test_an_idle_connection_is_not_used_past_its_age(
    autojump_clock: trio.testing.MockClock,
) -> None:
    # The clock jumps only while all tasks wait, which they do while a socket is answering.
    autojump_clock.autojump_threshold = float("inf")
    async with raw_server({"/": reply(body=b"a")}) as server, wired(server, keepalive=10) as wire:
        await get(wire, server.url)
        autojump_clock.jump(9)
        await get(wire, server.url)
        assert wire.statistics().made == 1
        autojump_clock.jump(11)
        await get(wire, server.url)
        assert figures(wire) == WireStatistics(open=1, idle=1, made=2, reused=1)


async def test_the_idle_connections_of_other_origins_end_with_their_age(
    autojump_clock: trio.testing.MockClock,
) -> None:
    autojump_clock.autojump_threshold = float("inf")
    async with raw_server({}) as one, raw_server({}) as two, wired(one, two, keepalive=10) as wire:
        await get(wire, one.url)
        autojump_clock.jump(11)
        await get(wire, two.url)
        await until(lambda: (one.open, two.open) == (0, 1))


async def test_a_body_left_unread_or_half_read_closes_its_connection() -> None:
    site = {"/": reply(200, {"Transfer-Encoding": "chunked"}, chunked(*[b"x" * 9000] * 50))}
    async with raw_server(site) as server, wired(server) as wire:
        for parts in (0, 1, 3):
            response = await begun(wire, server.url)
            for _ in range(parts):
                await response.piece()
            assert wire.statistics().open == 1
            response.release()
            assert wire.statistics().open == 0


async def test_a_body_read_to_its_end_and_closed_again_gives_its_connection_back_once() -> None:
    async with raw_server({"/": reply(body=b"a")}) as server, wired(server) as wire:
        response = await begun(wire, server.url)
        assert await response.read() == b"a"
        assert await response.read() == b""
        assert figures(wire) == WireStatistics(open=1, idle=1, made=1)


async def test_closing_ends_the_requests_under_way_and_refuses_new_ones() -> None:
    async with raw_server(silence) as server, trio.open_nursery() as nursery:
        wire = wired(server)

        async def ask() -> None:
            with pytest.raises(FetchError):
                await get(wire, server.url)

        nursery.start_soon(ask)
        await until(lambda: len(server.requests) == 1)
        await wire.aclose()
        assert wire.statistics().open == 0
        with pytest.raises(RuntimeError, match="closed"):
            await get(wire, server.url)
        await until(lambda: server.open == 0)


async def test_closing_ends_a_request_that_is_still_connecting() -> None:
    looked_up = trio.Event()

    async def slow(host: str, port: int) -> list[str]:
        await looked_up.wait()
        return ["127.0.0.1"]

    async with raw_server(silence) as server, trio.open_nursery() as nursery:
        wire = wired(server, resolve=slow)

        async def ask() -> None:
            with pytest.raises(FetchError):
                await get(wire, server.url)

        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        await wire.aclose()
        looked_up.set()
        await until(lambda: server.connections == 1 and server.open == 0)
        assert server.requests == []
        assert figures(wire) == WireStatistics(made=1)


async def test_a_body_cannot_be_read_on_once_the_wire_is_closed() -> None:
    async def half(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(reply(200, {"Content-Length": "10"}, b"half"))
        await silence(request, stream)

    async with raw_server(half) as server:
        wire = wired(server)
        response = await begun(wire, server.url)
        await wire.aclose()
        await until(lambda: server.sent == wire.statistics().bytes_in)
        at_the_end = wire.statistics()
        assert at_the_end.open == 0
        with pytest.raises(FetchError):
            await response.read()
        assert wire.statistics() == at_the_end
        await until(lambda: server.open == 0)


async def test_a_hundred_requests_at_once_do_not_queue() -> None:
    everybody = trio.Event()

    async def handler(request: Request, stream: trio.abc.Stream) -> None:
        if len(server.requests) == 100:
            everybody.set()
        await everybody.wait()
        await stream.send_all(reply(body=b"a"))

    async with raw_server(handler) as server, wired(server) as wire:
        with trio.fail_after(10):
            async with trio.open_nursery() as nursery:
                for _ in range(100):
                    nursery.start_soon(get, wire, server.url)
        assert figures(wire) == WireStatistics(open=100, idle=100, made=100)


async def test_the_same_fault_comes_whether_the_connection_was_new_or_kept() -> None:
    site = {"/": reply(), "/cut": reply(200, {"Content-Length": "10"}, b"short")}
    async with raw_server(site) as server, HttpFetch(seeds=[server.url]) as fetch:
        faults = [await fetch(Job(server.url + "cut"))]
        await fetch(Job(server.url))
        faults.append(await fetch(Job(server.url + "cut")))
    assert faults == [Fault(Reason.INCOMPLETE, "5 of 10 bytes of the body came", Phase.READ)] * 2


async def test_the_bytes_of_connections_open_and_closed_are_counted() -> None:
    site = {"/": reply(body=b"a" * 1000), "/last": reply(200, {"Connection": "close"}, b"b")}
    async with raw_server(site) as server, wired(server) as wire:
        for path in ("", "last", "", "missing"):
            await get(wire, server.url + path)
            bytes_out = sum(len(request.head) for request in server.requests)
            assert wire.statistics().bytes_out == bytes_out
            await until(lambda: wire.statistics().bytes_in == server.sent)
        await wire.aclose()
        assert (wire.statistics().bytes_in, wire.statistics().open) == (server.sent, 0)


# Descriptors.


@contextmanager
def no_descriptors_left() -> Iterator[None]:
    """Take every file descriptor the process may have."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as taken:
        taken.callback(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        highest = max(int(fd) for fd in os.listdir("/proc/self/fd"))
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, limits[1]))
        with suppress(OSError):
            while True:
                taken.callback(os.close, os.open("/dev/null", os.O_RDONLY))
        with pytest.raises(OSError, match=os.strerror(errno.EMFILE)):
            socket.socket()
        yield


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Give a directory to serve from another process, which has descriptors of its own."""
    Path(tmp_path, "a").write_text("a")
    return tmp_path


async def test_without_a_descriptor_an_idle_connection_gives_its_own(files: Path) -> None:
    with serve_directory(files) as one, serve_directory(files) as two:
        async with Wired(seeds=[one.url, two.url]) as wire:
            for response in [await begun(wire, one.url + "a") for _ in range(3)]:
                await response.read()
            assert figures(wire) == WireStatistics(open=3, idle=3, made=3)
            with no_descriptors_left():
                assert await get(wire, two.url + "a") == b"a"
                assert figures(wire) == WireStatistics(open=3, idle=3, made=4)


async def test_without_a_descriptor_or_an_idle_connection_the_fault_says_what_to_do(
    files: Path,
) -> None:
    with serve_directory(files) as docs:
        async with HttpFetch(seeds=[docs.url]) as fetch:
            with no_descriptors_left():
                fault = await fetch(Job(docs.url))
            assert isinstance(fault, Fault)
            assert (fault.reason, fault.phase) == (Reason.NO_SOCKETS, Phase.CONNECT)
            assert "ulimit -n" in fault.detail
            assert isinstance(await fetch(Job(docs.url)), Response)


async def test_no_more_than_half_of_the_descriptors_are_kept_idle() -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with raw_server({"/": reply(body=b"a")}) as server:
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, limits[1]))
        try:
            wire = wired(server)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        async with wire:
            for response in [await begun(wire, server.url) for _ in range(25)]:
                await response.read()
            assert figures(wire) == WireStatistics(open=20, idle=20, made=25)


def test_importing_the_fetch_loads_neither_httpcore_nor_the_certificates() -> None:
    code = "import sys, trio_crawler.net.fetch as f; f.HttpFetch(); print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not {"httpcore", "h11", "h2"} & set(run.stdout.split())


# How much is kept.


@pytest.mark.parametrize(("begins", "ends"), [(11, 12), (5, 11)])
async def test_a_late_connection_is_closed_when_another_request_begins_or_ends(
    autojump_clock: trio.testing.MockClock, begins: float, ends: float
) -> None:
    async def slow(request: Request, stream: trio.abc.Stream) -> None:
        await trio.sleep(ends - begins)
        await stream.send_all(reply())

    site = {"/": reply(body=b"a")}
    async with (
        raw_server(site) as one,
        raw_server(slow) as other,
        wired(one, other, keepalive=10) as wire,
        trio.open_nursery() as nursery,
    ):
        await get(wire, one.url)
        await trio.sleep(begins)
        assert figures(wire).idle == 1
        nursery.start_soon(get, wire, other.url)
        await trio.testing.wait_all_tasks_blocked()
        assert figures(wire).idle == (begins < 10)
        await trio.sleep(ends - begins + 0.5)
        # Only the other one is left.
        assert figures(wire) == WireStatistics(open=1, idle=1, made=2)
