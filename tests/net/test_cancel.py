"""A fetch cancelled at its 1st, 2nd, ... n-th checkpoint: nothing is left of it, ever."""

from __future__ import annotations

import gc
import gzip
import ssl
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, TypeAlias

import pytest
import trio
from sites.left import descriptors, sockets
from sites.over import Wired, over
from sites.raw import Request, Server, chunked, hang_up, raw_server, redirect, reply, silence
from sites.steps import cancelled_at, until

from trio_crawler.model import Job, Response
from trio_crawler.net.dial.connector import Resolver
from trio_crawler.net.fetch import HttpFetch
from trio_crawler.net.tls import Security

trustme = pytest.importorskip("trustme")

Work: TypeAlias = Callable[[Wired], Awaitable[object]]


async def interim(request: Request, stream: trio.abc.Stream) -> None:
    for _ in range(3):
        await stream.send_all(b"HTTP/1.1 103 Early Hints\r\n\r\n")
    await stream.send_all(reply(body=b"a"))


LARGE = gzip.compress(bytes(8_000_000), mtime=0)
SITE = {
    "/": reply(body=b"alive"),
    "/large": reply(body=b"x" * 300_000),
    "/chunked": reply(200, {"Transfer-Encoding": "chunked"}, chunked(*[b"x" * 30_000] * 8)),
    "/gzip": reply(200, {"Content-Encoding": "gzip"}, LARGE),
    "/close": b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 300_000,
    "/interim": interim,
    "/redirect": redirect("/b"),
    "/long": reply(302, {"Location": "/b", "Content-Length": "500000"}, b"x" * 400_000),
    "/cut": reply(200, {"Content-Length": "10"}, b"short"),
    "/bad": b"nonsense\r\n\r\n",
    "/gone": hang_up,
}


@pytest.fixture(autouse=True)
def uncollected() -> Iterator[None]:
    """Keep the collector off: only what is closed on purpose is closed."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def fetched(url: str) -> Work:
    """Ask for a URL over a wire as a crawl does."""
    return lambda wire: over(wire, timeout=60)(Job(url))


async def answers(wire: Wired, url: str) -> None:
    answer = await fetched(url)(wire)
    assert isinstance(answer, Response), answer
    assert answer.body == b"alive"


async def nothing_is_left(server: Server, wire: Wired, before: int) -> None:
    """Check the wire's books against the server's and the system's.

    Both ends of each kept connection are in this process. The server needs a moment to accept
    and drop one that was given up.
    """
    kept = wire.statistics().open
    assert kept == wire.statistics().idle <= 1
    await until(lambda: (server.open, sockets()) == (kept, before + 2 * kept))


async def tortured(
    server: Server, make: Callable[[], Wired], work: Work, *, warm: bool = False
) -> int:
    """Cancel `work` at each of its checkpoints, each time on a new wire; count them."""
    async with make() as wire:
        await work(wire)
    await until(lambda: server.open == 0)
    before, files = sockets(), len(descriptors())
    cancelled = 0
    for checkpoint in range(1, 5000):
        async with make() as wire:
            if warm:
                await answers(wire, server.url)
            ended = await cancelled_at(checkpoint, lambda: work(wire))
            await nothing_is_left(server, wire, before)
            await answers(wire, server.url)
        await until(lambda: server.open == 0)
        cancelled += ended
        # Their number may differ from run to run, as it is the system that wakes the tasks.
        if not ended and checkpoint > cancelled + 5:
            break
    await until(lambda: len(descriptors()) == files)
    return cancelled


@pytest.mark.slow
@pytest.mark.parametrize("warm", [False, True], ids=["new", "kept"])
@pytest.mark.parametrize("path", [path[1:] for path in SITE])
async def test_a_fetch_leaves_nothing_behind(path: str, warm: bool) -> None:
    async with raw_server(SITE) as server:
        work = fetched(server.url + path)
        count = await tortured(server, lambda: Wired(seeds=[server.url]), work, warm=warm)
    # A kept connection needs no connecting.
    assert count >= (1 if warm else 3)


async def test_the_retry_of_a_stale_connection_leaves_nothing_behind() -> None:
    served: dict[trio.abc.Stream, int] = {}

    async def handler(request: Request, stream: trio.abc.Stream) -> None:
        served[stream] = served.get(stream, 0) + 1
        if served[stream] == 2:
            await stream.aclose()
        else:
            await stream.send_all(SITE["/"])

    async with raw_server(handler) as server:
        work = fetched(server.url)
        assert await tortured(server, lambda: Wired(seeds=[server.url]), work, warm=True) >= 4


# Names.


async def slow(host: str, port: int) -> Sequence[str]:
    """Know the address only after a while."""
    for _ in range(3):
        await trio.lowlevel.checkpoint()
    await trio.to_thread.run_sync(lambda: None, abandon_on_cancel=True)
    return ["127.0.0.1"]


async def several(host: str, port: int) -> Sequence[str]:
    """Know addresses of which the last one answers."""
    return ["127.0.0.2", "127.0.0.3", "127.0.0.1"]


@pytest.mark.parametrize(
    "resolve",
    [lambda: slow, lambda: several, lambda: Resolver(lambda name: ["127.0.0.1"])],
    ids=["a slow resolver", "several addresses", "a thread"],
)
async def test_looking_up_a_name_leaves_nothing_behind(resolve: Callable[[], Any]) -> None:
    async with raw_server(SITE) as server:
        url = f"http://h.test:{server.port}/"

        def make() -> Wired:
            return Wired(seeds=[server.url, url], resolve=resolve())

        assert await tortured(server, make, fetched(url)) >= 3


# TLS.


@pytest.mark.slow
@pytest.mark.parametrize("warm", [False, True], ids=["new", "kept"])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("path", ["", "large", "close", "cut"])
async def test_tls_leaves_nothing_behind(path: str, version: ssl.TLSVersion, warm: bool) -> None:
    authority, client_tls = trustme.CA(), ssl.create_default_context()
    server_tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(server_tls)
    authority.configure_trust(client_tls)
    server_tls.minimum_version = server_tls.maximum_version = version

    async with raw_server(SITE, tls=server_tls) as server:

        def make() -> Wired:
            return Wired(seeds=[server.url], security=Security(client_tls))

        count = await tortured(server, make, fetched(server.url + path), warm=warm)
        assert count >= (1 if warm else 4)


async def test_a_handshake_that_fails_leaves_nothing_behind() -> None:
    server_tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(server_tls)
    cancelled = 0
    async with raw_server(SITE, tls=server_tls) as server:
        before = sockets()
        for checkpoint in range(1, 20):
            async with Wired(seeds=[server.url]) as wire:
                work = fetched(server.url)
                cancelled += await cancelled_at(checkpoint, lambda: work(wire))  # noqa: B023
                await nothing_is_left(server, wire, before)
    assert cancelled >= 3
    assert server.requests == []


# As the transport of an httpx client.


# Many at once.


async def test_many_requests_cancelled_at_once_leave_the_wire_usable() -> None:
    async with raw_server({**SITE, "/mute": silence}) as server:
        before = sockets()
        async with Wired(seeds=[server.url]) as wire:
            for turn in range(1, 4):
                async with trio.open_nursery() as nursery:
                    for _ in range(50):
                        nursery.start_soon(fetched(server.url + "mute"), wire)
                    await until(lambda: server.targets.count("/mute") == 50 * turn)  # noqa: B023
                    nursery.cancel_scope.cancel()
                await nothing_is_left(server, wire, before)
                await answers(wire, server.url)


async def test_a_body_whose_decoding_is_cancelled_lets_the_others_be_decoded() -> None:
    async with raw_server(SITE) as server, HttpFetch(seeds=[server.url]) as fetch:
        for checkpoint in (4, 6, 8, 10):
            async with trio.open_nursery() as nursery:
                others: list[object] = []

                async def other(seen: list[object] = others) -> None:
                    seen.append(await fetch(Job(server.url + "gzip")))

                nursery.start_soon(other)
                await cancelled_at(checkpoint, lambda: fetch(Job(server.url + "gzip")))
            assert isinstance(others[0], Response)
            assert len(others[0].body) == 8_000_000
        assert fetch.statistics().wire.open == fetch.statistics().wire.idle
