"""What servers do, met through HTTP/2: as safe as over the wire."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Any

import pytest
import trio
from sites.over import Wired, home, over, requests
from sites.raw import Request, Server, chunked, html, raw_server, reply, tunnel
from sites.steps import until

from trio_crawler.model import Fault, Job, Phase, Reason, Response
from trio_crawler.net.fetch import WireAdapter
from trio_crawler.net.fetcher import Fetcher
from trio_crawler.net.http1.wire import FRAMING_BYTES
from trio_crawler.net.tls import Security

pytest.importorskip("h2")
trustme = pytest.importorskip("trustme")
two = pytest.importorskip("sites.two")

from trio_crawler.net.http2.wire import Http2Wire  # noqa: E402

EVIL = reply(body=b"EVIL")
SMALL = {"timeout": 10, "max_bytes": 20_000}
Handler = Callable[[Request, trio.abc.Stream], Awaitable[object]]


def serving(authority: trustme.CA, *alpn: str) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1", "h.test").configure_cert(context)
    context.set_alpn_protocols(list(alpn))
    return context


def asking_by_http2(
    tls: ssl.SSLContext | None = None, *, resolve: Any = home, **options: Any
) -> aclosing[WireAdapter]:
    private = ["127.0.0.0/8"]
    wire = Wired(security=Security(tls), resolve=resolve, allow_private=private, **options)
    return aclosing(WireAdapter(requests(), Http2Wire(wire)))


def told(answer: Response | Fault) -> object:
    """Return what came of a request, for comparison."""
    if isinstance(answer, Fault):
        return answer.reason, answer.phase, answer.detail
    return answer.status, answer.body


Served = Callable[..., AbstractAsyncContextManager[tuple[Server, Fetcher]]]


@pytest.fixture
def served(server_tls: ssl.SSLContext, client_tls: ssl.SSLContext) -> Served:
    """Open a server with TLS and no HTTP/2, and a fetch that would like HTTP/2."""

    @asynccontextmanager
    async def opened(site: Handler, **bounds: Any) -> AsyncIterator[tuple[Server, Fetcher]]:
        async with (
            raw_server(site, tls=server_tls) as server,
            asking_by_http2(client_tls) as network,
        ):
            yield server, over(network, **bounds)

    return opened


async def test_what_comes_behind_an_answer_is_not_taken_for_the_next_one(served: Served) -> None:
    async def site(request: Request, stream: trio.abc.Stream) -> None:
        if request.target.endswith("/"):
            await stream.send_all(html("/a") + EVIL)
        elif request.target.endswith("/moved"):
            await stream.send_all(reply(302, {"Location": "/b"}) + EVIL)
        else:
            await stream.send_all(reply(body=b"true"))

    async with served(site) as (server, fetch):
        for path in ("", "a", "moved", "b", "", "", "c"):
            answer = await fetch(Job(server.url + path))
            assert isinstance(answer, Response)
            assert answer.body != b"EVIL"
            if path in ("a", "b", "c"):
                assert answer.body == b"true"
    assert len(server.requests) == 7


async def endless(request: Request, stream: trio.abc.Stream) -> None:
    """Send a page in chunks of one byte, with an essay on each."""
    await stream.send_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        await stream.send_all((b"1;" + b"x" * 4000 + b"\r\na\r\n") * 10)


async def interim(request: Request, stream: trio.abc.Stream) -> None:
    """Say for ever that an answer is to come."""
    while True:
        await stream.send_all(b"HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n" * 500)


@pytest.mark.parametrize("site", [endless, interim])
async def test_an_answer_that_is_mostly_framing_ends_at_the_bound(
    served: Served, site: Handler
) -> None:
    async with served(site, **SMALL) as (server, fetch):
        answer = await fetch(Job(server.url))
        await until(lambda: server.open == 0)
    if isinstance(answer, Response):
        assert site is endless
        assert answer.flaw is Reason.TOO_LARGE
    else:
        assert answer.reason is Reason.BAD_REPLY
        assert (answer.phase, site) == (Phase.WAIT, interim)
    # What lies in the buffers of sockets was sent as well.
    assert server.sent < 12_000_000


async def test_an_answer_within_the_bound_is_taken(served: Served) -> None:
    large = chunked(*[b"y"] * 10_000)

    async def site(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(reply(headers={"Transfer-Encoding": "chunked"}, body=large))

    assert 20_000 < len(large) < FRAMING_BYTES
    async with served(site, **SMALL) as (server, fetch):
        for _ in range(5):
            assert told(await fetch(Job(server.url))) == (200, b"y" * 10_000)


async def test_the_answers_of_http_2_that_share_a_connection_are_not_counted_together(
    authority: trustme.CA, client_tls: ssl.SSLContext
) -> None:
    site = {"/": two.answer(b"z" * 10_000)}
    async with (
        two.two_server(site, serving(authority)) as server,
        asking_by_http2(client_tls) as network,
    ):
        fetch = over(network, **SMALL)
        for _ in range(40):
            answer = await fetch(Job(f"https://127.0.0.1:{server.port}/"))
            assert told(answer) == (200, b"z" * 10_000)
    assert SMALL["max_bytes"] + FRAMING_BYTES < 40 * 10_000
    assert server.connections == 1


SHORT = {"timeout": 0.3, "max_bytes": 1000}
LONG = {"timeout": 10, "max_bytes": 1000}


async def test_the_wire_does_not_offer_http_2_because_another_does(
    authority: trustme.CA, client_tls: ssl.SSLContext
) -> None:
    agreed: list[object] = []

    async def site(request: Request, stream: Any) -> None:
        agreed.append(stream.inner.selected_alpn_protocol())
        await stream.send_all(reply())

    async with (
        two.two_server({"/": two.answer(b"two")}, serving(authority)) as first,
        raw_server(site, tls=serving(authority, "h2", "http/1.1")) as second,
        asking_by_http2(client_tls) as network,
    ):
        answer = await over(network)(Job(f"https://127.0.0.1:{first.port}/"))
        assert told(answer) == (200, b"two")
        await over(network.wire.wire)(Job(second.url))
    assert agreed == ["http/1.1"]


async def test_who_waits_for_a_tunnel_shares_it_by_http_2(
    authority: trustme.CA, client_tls: ssl.SSLContext
) -> None:
    asked: list[str] = []
    site = {"/mute": two.silence, "/": two.answer(b"two")}
    async with two.two_server(site, serving(authority)) as origin:

        async def through(request: Request, stream: trio.abc.Stream) -> None:
            asked.append(request.method)
            await tunnel(stream, origin.port)

        async with (
            raw_server(through) as server,
            asking_by_http2(client_tls, proxy=server.url) as network,
            trio.open_nursery() as nursery,
        ):
            fetch = over(network)
            nursery.start_soon(fetch, Job("https://h.test/mute"))
            await until(lambda: bool(asked))
            assert told(await fetch(Job("https://h.test/"))) == (200, b"two")
            nursery.cancel_scope.cancel()
    assert asked == ["CONNECT"]


async def test_who_waits_for_the_first_connection_of_http_2_is_connecting() -> None:
    async def silent(request: Request, stream: trio.abc.Stream) -> None:
        await trio.sleep_forever()

    # It takes the hello of TLS for a head that has no end.
    async with (
        raw_server(silent) as server,
        asking_by_http2() as network,
        trio.open_nursery() as nursery,
    ):
        job = Job(f"https://127.0.0.1:{server.port}/")
        nursery.start_soon(over(network, **LONG), job)
        await until(lambda: server.connections == 1)
        answer = await over(network, **SHORT)(job)
        nursery.cancel_scope.cancel()
    assert isinstance(answer, Fault)
    assert answer.phase is Phase.CONNECT
    assert server.connections == 1


# Figures.


async def test_connections_and_bytes_of_http_2_are_counted(
    authority: trustme.CA, client_tls: ssl.SSLContext
) -> None:
    site = {"/": two.answer(b"x" * 5000)}
    async with two.two_server(site, serving(authority)) as server:
        async with asking_by_http2(client_tls) as network:
            for _ in range(3):
                await over(network)(Job(f"https://127.0.0.1:{server.port}/"))
            figures = network.statistics()
        after = network.statistics()
    assert (figures.open, figures.idle, figures.made, figures.reused) == (1, 1, 1, 2)
    assert 15_000 < figures.bytes_in < 25_000
    assert 0 < figures.bytes_out < 5_000
    assert (after.open, after.idle, after.made) == (0, 0, 1)
