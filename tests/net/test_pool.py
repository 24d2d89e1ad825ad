from __future__ import annotations

import os
import subprocess
import sys

import httpx
import pytest
import trio
from sites.raw import (
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
from sites.steps import cancelled_at, until

from trio_crawler.model import Fault, Job, Reason, Response
from trio_crawler.net.fetch import HttpFetch
from trio_crawler.net.pool import Pool, PoolStatistics
from trio_crawler.policy.limits import Limits


async def get(pool: Pool, url: str) -> bytes:
    response = await pool.handle_async_request(httpx.Request("GET", url))
    return b"".join([part async for part in response.stream])


async def drain(response: httpx.Response) -> None:
    async for _ in response.stream:
        pass


async def start(pool: Pool, url: str) -> httpx.Response:
    return await pool.handle_async_request(httpx.Request("GET", url))


async def test_one_request_after_another_uses_one_connection() -> None:
    site = {
        "/": reply(body=b"a"),
        "/chunked": reply(200, {"Transfer-Encoding": "chunked"}, chunked(b"b")),
        "/empty": reply(204),
    }
    async with raw_server(site) as server, Pool() as pool:
        for path in ("", "chunked", "empty", "missing", ""):
            await get(pool, server.url + path)
        assert pool.statistics() == PoolStatistics(open=1, idle=1, made=1, reused=4)
    assert server.connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        reply(200, {"Connection": "close"}, b"a"),
        b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na",
        b"HTTP/1.1 200 OK\r\n\r\na",
    ],
)
async def test_a_connection_the_server_ends_is_not_kept(answer: bytes) -> None:
    async with raw_server({"/": answer}) as server, Pool() as pool:
        for _ in range(2):
            assert await get(pool, server.url) == b"a"
            assert pool.statistics().open == 0
    assert server.connections == 2


@pytest.mark.parametrize(
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
    async with raw_server({"/": answer, "/next": reply(body=b"next")}) as server, Pool() as pool:
        for _ in range(3):
            await get(pool, server.url)
            assert await get(pool, server.url + "next") == b"next"
    assert server.connections > 3


async def test_bytes_that_come_between_two_requests_end_the_connection() -> None:
    late = trio.Event()

    async def handler(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(reply(body=b"good"))
        if not late.is_set():
            await trio.testing.wait_all_tasks_blocked()
            await stream.send_all(reply(body=b"evil"))
            late.set()

    async with raw_server(handler) as server, Pool() as pool:
        assert await get(pool, server.url) == b"good"
        await late.wait()
        assert await get(pool, server.url) == b"good"
        assert pool.statistics().made == 2


async def test_a_kept_connection_that_was_closed_meanwhile_is_replaced() -> None:
    closed = trio.Event()

    async def once(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(reply(body=b"a"))
        await stream.aclose()
        closed.set()

    async with raw_server(once) as server, Pool() as pool:
        assert await get(pool, server.url) == b"a"
        await closed.wait()
        assert await get(pool, server.url) == b"a"
        assert pool.statistics().made == 2
    assert len(server.requests) == 2


def second_time(then: object) -> tuple[object, list[str]]:
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
    then: object,
) -> None:
    handler, log = second_time(then)
    async with raw_server(handler) as server, Pool() as pool:
        assert await get(pool, server.url + "1") == b"a"
        assert await get(pool, server.url + "2") == b"a"
        assert pool.statistics() == PoolStatistics(open=1, idle=1, made=2, reused=1)
    assert log == ["/1", "/2", "/2"]


async def test_a_new_connection_that_dies_is_not_retried() -> None:
    async with raw_server(hang_up) as server, Pool() as pool:
        with pytest.raises(httpx.RemoteProtocolError):
            await get(pool, server.url)
        assert pool.statistics() == PoolStatistics(made=1)
    assert len(server.requests) == 1


@pytest.mark.parametrize("part", [b"HTTP/1.1 20", b"nonsense\r\n\r\n"])
async def test_an_answer_that_has_begun_is_not_asked_for_again(part: bytes) -> None:
    async def begin(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(part)
        await stream.aclose()

    handler, log = second_time(begin)
    async with raw_server(handler) as server, Pool() as pool:
        await get(pool, server.url + "1")
        with pytest.raises(httpx.RemoteProtocolError):
            await get(pool, server.url + "2")
        assert pool.statistics().open == 0
    assert log == ["/1", "/2"]


async def test_a_request_that_changes_something_is_not_retried() -> None:
    handler, log = second_time(hang_up)
    async with raw_server(handler) as server, Pool() as pool:
        await get(pool, server.url + "1")
        with pytest.raises(httpx.RemoteProtocolError):
            await pool.handle_async_request(httpx.Request("POST", server.url + "2"))
    assert log == ["/1", "/2"]


async def test_the_connection_used_last_is_used_next() -> None:
    users: list[trio.abc.Stream] = []

    async def handler(request: Request, stream: trio.abc.Stream) -> None:
        users.append(stream)
        await stream.send_all(reply(body=b"a"))

    async with raw_server(handler) as server, Pool() as pool:
        responses = [await start(pool, server.url) for _ in range(3)]
        for place in (0, 2, 1):
            await drain(responses[place])
        for _ in range(3):
            await get(pool, server.url)
    assert len(set(users[:3])) == 3
    assert users[3:] == [users[1]] * 3


async def test_more_idle_connections_than_the_cap_are_closed_the_oldest_first() -> None:
    site = {"/": reply(body=b"a")}
    async with raw_server(site) as one, raw_server(site) as two, Pool(max_idle=2) as pool:
        responses = [await start(pool, one.url) for _ in range(3)]
        for response in responses:
            await drain(response)
        assert pool.statistics() == PoolStatistics(open=2, idle=2, made=3)
        await get(pool, two.url)
        assert pool.statistics() == PoolStatistics(open=2, idle=2, made=4)
        await until(lambda: (one.open, two.open) == (1, 1))
        await get(pool, one.url)
        assert pool.statistics().reused == 1


async def test_an_idle_connection_is_not_used_past_its_age(
    autojump_clock: trio.testing.MockClock,
) -> None:
    # The clock jumps only while all tasks wait, which they do while a socket is answering.
    autojump_clock.autojump_threshold = float("inf")
    async with raw_server({"/": reply(body=b"a")}) as server, Pool(keepalive=10) as pool:
        await get(pool, server.url)
        autojump_clock.jump(9)
        await get(pool, server.url)
        assert pool.statistics().made == 1
        autojump_clock.jump(11)
        await get(pool, server.url)
        assert pool.statistics() == PoolStatistics(open=1, idle=1, made=2, reused=1)


async def test_the_idle_connections_of_other_origins_end_with_their_age(
    autojump_clock: trio.testing.MockClock,
) -> None:
    autojump_clock.autojump_threshold = float("inf")
    async with raw_server({}) as one, raw_server({}) as two, Pool(keepalive=10) as pool:
        await get(pool, one.url)
        autojump_clock.jump(11)
        await get(pool, two.url)
        await until(lambda: (one.open, two.open) == (0, 1))


async def test_a_body_left_unread_or_half_read_closes_its_connection() -> None:
    site = {"/": reply(200, {"Transfer-Encoding": "chunked"}, chunked(*[b"x" * 9000] * 50))}
    async with raw_server(site) as server, Pool() as pool:
        for parts in (0, 1, 3):
            response = await start(pool, server.url)
            iterator = aiter(response.stream)
            for _ in range(parts):
                await anext(iterator)
            assert pool.statistics().open == 1
            await response.aclose()
            await response.stream.aclose()
            assert pool.statistics().open == 0


async def test_a_body_read_to_its_end_and_closed_again_gives_its_connection_back_once() -> None:
    async with raw_server({"/": reply(body=b"a")}) as server, Pool() as pool:
        response = await start(pool, server.url)
        stream = response.stream
        assert [part async for part in stream] == [b"a"]
        assert [part async for part in stream] == []
        await response.aclose()
        await stream.aclose()
        assert pool.statistics() == PoolStatistics(open=1, idle=1, made=1)


async def test_a_pool_serves_as_the_transport_of_a_client() -> None:
    client = httpx.AsyncClient(transport=Pool())
    async with raw_server({"/": reply(body=b"a")}) as server, client:
        for _ in range(2):
            assert (await client.get(server.url)).content == b"a"
    assert server.connections == 1


async def test_closing_ends_the_requests_under_way_and_refuses_new_ones() -> None:
    async with raw_server(silence) as server, trio.open_nursery() as nursery:
        pool = Pool()

        async def ask() -> None:
            with pytest.raises(httpx.ReadError):
                await get(pool, server.url)

        nursery.start_soon(ask)
        await until(lambda: len(server.requests) == 1)
        await pool.aclose()
        assert pool.statistics().open == 0
        with pytest.raises(RuntimeError, match="closed"):
            await get(pool, server.url)
        await until(lambda: server.open == 0)


async def test_a_body_cannot_be_read_on_once_the_pool_is_closed() -> None:
    async def half(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(reply(200, {"Content-Length": "10"}, b"half"))
        await silence(request, stream)

    async with raw_server(half) as server:
        pool = Pool()
        response = await start(pool, server.url)
        await pool.aclose()
        with pytest.raises(httpx.ReadError):
            await drain(response)
        assert pool.statistics().open == 0
        await until(lambda: server.open == 0)


async def test_a_scheme_other_than_http_and_https_is_not_supported() -> None:
    async with Pool() as pool:
        with pytest.raises(httpx.UnsupportedProtocol):
            await get(pool, "ftp://127.0.0.1/")


async def test_a_hundred_requests_at_once_do_not_queue() -> None:
    everybody = trio.Event()

    async def handler(request: Request, stream: trio.abc.Stream) -> None:
        if len(server.requests) == 100:
            everybody.set()
        await everybody.wait()
        await stream.send_all(reply(body=b"a"))

    async with raw_server(handler) as server, Pool() as pool:
        with trio.fail_after(10):
            async with trio.open_nursery() as nursery:
                for _ in range(100):
                    nursery.start_soon(get, pool, server.url)
        assert pool.statistics() == PoolStatistics(open=100, idle=100, made=100)


# Cancellation.

SITE = {
    "/": reply(200, {"Transfer-Encoding": "chunked"}, chunked(*[b"x" * 30_000] * 8)),
    "/redirect": redirect("/b"),
    "/cut": reply(200, {"Content-Length": "10"}, b"short"),
    "/check": reply(body=b"alive"),
}


def sockets() -> int:
    return sum("socket:" in os.readlink(f"/proc/self/fd/{fd}") for fd in _descriptors())


def _descriptors() -> list[str]:
    return [fd for fd in os.listdir("/proc/self/fd") if os.path.islink(f"/proc/self/fd/{fd}")]


async def nothing_is_left(server: Server, fetch: HttpFetch, before: int) -> None:
    pool = fetch.statistics().pool
    assert pool.open == pool.idle
    # Both ends of each kept connection are in this process. The server needs a moment to accept
    # and drop one that was given up.
    await until(lambda: (server.open, sockets()) == (pool.open, before + 2 * pool.open))


@pytest.mark.parametrize("path", ["", "redirect", "cut"])
@pytest.mark.parametrize("warm", [False, True], ids=["new", "kept"])
async def test_a_fetch_cancelled_at_any_checkpoint_leaves_no_connection_behind(
    path: str, warm: bool
) -> None:
    cancelled = 0
    async with raw_server(SITE) as server:
        before = sockets()
        for checkpoint in range(1, 1000):
            async with HttpFetch(limits=Limits(timeout=20)) as fetch:
                if warm:
                    await fetch(Job(server.url + "check"))
                job = Job(server.url + path)
                ended = await cancelled_at(checkpoint, lambda: fetch(job))  # noqa: B023
                await nothing_is_left(server, fetch, before)
                answer = await fetch(Job(server.url + "check"))
                assert isinstance(answer, Response)
                assert answer.body == b"alive"
            await until(lambda: server.open == 0)
            cancelled += ended
            if not ended and checkpoint > cancelled + 5:
                break
    assert cancelled >= 3


async def test_a_stale_connection_cancelled_at_any_checkpoint_leaves_nothing_behind() -> None:
    cancelled = 0
    handler, _ = second_time(hang_up)
    async with raw_server(handler) as server:
        before = sockets()
        for checkpoint in range(1, 1000):
            async with HttpFetch() as fetch:
                await fetch(Job(server.url))
                ended = await cancelled_at(checkpoint, lambda: fetch(Job(server.url)))
                await nothing_is_left(server, fetch, before)
            await until(lambda: server.open == 0)
            cancelled += ended
            if not ended and checkpoint > cancelled + 5:
                break
    assert cancelled >= 4


async def test_many_requests_cancelled_at_once_leave_the_pool_usable() -> None:
    async with raw_server({"/": silence, "/a": reply(body=b"a")}) as server, HttpFetch() as fetch:
        for _ in range(3):
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    for _ in range(50):
                        nursery.start_soon(fetch, Job(server.url))
                    wanted = len(server.requests) + 50
                    await until(lambda: len(server.requests) == wanted)  # noqa: B023
                    scope.cancel()
            assert fetch.statistics().pool.open == 0
        answer = await fetch(Job(server.url + "a"))
        assert isinstance(answer, Response)
        await until(lambda: server.open == 1)


async def test_the_same_fault_comes_whether_the_connection_was_new_or_kept() -> None:
    async with raw_server({"/": reply(), "/cut": SITE["/cut"]}) as server, HttpFetch() as fetch:
        faults = [await fetch(Job(server.url + "cut"))]
        await fetch(Job(server.url))
        faults.append(await fetch(Job(server.url + "cut")))
    assert [isinstance(fault, Fault) and fault.reason for fault in faults] == [
        Reason.INCOMPLETE,
        Reason.INCOMPLETE,
    ]


def test_importing_the_fetch_loads_neither_httpcore_nor_the_certificates() -> None:
    code = "import sys, trio_crawler.net.fetch as f; f.HttpFetch(); print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not {"httpcore", "h11", "h2"} & set(run.stdout.split())
