"""HTTP/2: the same rules as over the wire."""

from __future__ import annotations

import gzip
import ssl
import sys
from collections.abc import Sequence
from contextlib import aclosing
from functools import partial
from typing import Any

import pytest
import trio
from sites.left import sockets
from sites.over import home, over, requests
from sites.raw import raw_server, reply
from sites.steps import cancelled_at, until

from trio_crawler.model import Fault, Job, Phase, Reason, Response
from trio_crawler.net.fetch import HttpFetch, WireAdapter
from trio_crawler.net.http1.wire import Wire
from trio_crawler.net.tls import Security

pytest.importorskip("h2")
trustme = pytest.importorskip("trustme")
two = pytest.importorskip("sites.two")

from trio_crawler.net.http2.wire import MAX_IDLE, Http2Wire  # noqa: E402


def asking_by_http2(
    seeds: Sequence[str],
    tls: ssl.SSLContext | None = None,
    *,
    allow_private: Sequence[str] = ("127.0.0.1",),
    max_idle: int = MAX_IDLE,
    **options: Any,
) -> aclosing[WireAdapter]:
    """Make a network for which every name leads to this machine."""
    security = Security(tls)
    private = {"allow_private": allow_private}
    wire = Wire(seeds=seeds, security=security, resolve=home, **private, **options)
    return aclosing(WireAdapter(requests(), Http2Wire(wire, max_idle=max_idle)))


async def ask(network: WireAdapter, url: str, **limits: Any) -> Response | Fault:
    with trio.fail_after(20):
        return await over(network, **{"timeout": 10} | limits)(Job(url))


async def body(network: WireAdapter, url: str) -> bytes:
    answer = await ask(network, url)
    assert isinstance(answer, Response), answer
    return answer.body


async def fault(network: WireAdapter, url: str, **limits: Any) -> Fault:
    answer = await ask(network, url, **limits)
    assert isinstance(answer, Fault), answer
    assert answer.detail.isprintable()
    return answer


# HTTP/2.


async def test_https_is_asked_by_http_2_on_one_connection(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    large = bytes(range(256)) * 4000
    site = {
        "/": two.answer(b"two"),
        "/large": two.answer(large),
        "/gzip": two.answer(gzip.compress(large, mtime=0), headers=[("content-encoding", "gzip")]),
        "/b?c=%20": two.answer(b"spelt"),
        "/no": two.answer(b"not here", 404),
    }
    async with two.two_server(site, server_tls) as server:
        url = f"https://127.0.0.1:{server.port}/"
        async with HttpFetch(seeds=[url], tls=client_tls, http2=True) as fetch:
            answers = [await fetch(Job(url + path)) for path in ("", "large", "gzip", "b?c=%20")]
            missing = await fetch(Job(url + "no"))
            figures = fetch.statistics()
        await until(lambda: server.open == 0)
    assert [getattr(answer, "body", answer) for answer in answers] == [
        *(b"two", large, large, b"spelt")
    ]
    assert isinstance(missing, Response)
    assert (missing.status, missing.body) == (404, b"not here")
    assert server.connections == 1
    assert figures.requests == len(server.requests) == 5
    assert server.requests[0]["user-agent"].startswith("trio_crawler/")
    assert server.requests[0]["accept-encoding"] == "gzip, deflate, br, zstd"


async def test_plain_http_goes_by_the_wire() -> None:
    async with (
        raw_server({"/": reply(body=b"one")}) as server,
        HttpFetch(seeds=[server.url], http2=True) as fetch,
    ):
        for _ in range(2):
            answer = await fetch(Job(server.url))
            assert isinstance(answer, Response)
            assert answer.body == b"one"
        figures = fetch.statistics().wire
    assert figures is not None
    assert (figures.made, figures.reused) == (1, 1)


async def test_a_server_without_http_2_is_asked_by_http_1_1(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    server_tls.set_alpn_protocols(["http/1.1"])
    async with (
        raw_server({"/": reply(body=b"one")}, tls=server_tls) as server,
        asking_by_http2([server.url], client_tls) as network,
    ):
        for _ in range(2):
            assert await body(network, server.url) == b"one"
    # The connection that showed it is used.
    assert server.connections == 1


async def test_what_goes_wrong_over_http_2_is_a_fault(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    site = {
        "/": two.answer(b"well"),
        "/mute": two.silence,
        "/refused": two.refuse,
        "/gone": two.hang_up,
        "/cut": two.cut_after(b"short"),
        "/large": two.answer(b"x" * 200_000),
        "/away": two.answer(b"x" * 200_000, 302, [("location", "/b")]),
        "/length": two.answer(b"short", headers=[("content-length", "10")]),
    }
    expected = {
        "mute": {Reason.TIMEOUT},
        "refused": {Reason.RESET, Reason.BAD_REPLY},
        "gone": {Reason.RESET},
        "cut": {Reason.INCOMPLETE, Reason.RESET},
        "length": {Reason.INCOMPLETE, Reason.BAD_REPLY},
    }
    async with two.two_server(site, server_tls) as server:
        url = f"https://127.0.0.1:{server.port}/"
        async with asking_by_http2([url], client_tls) as network:
            for path, reasons in expected.items():
                timeout = 0.2 if path == "mute" else 10
                found = await fault(network, url + path, max_bytes=100_000, timeout=timeout)
                assert found.reason in reasons, (path, found)
                assert await body(network, url) == b"well"
            answer = await over(network, max_bytes=100_000)(Job(url + "large"))
            assert isinstance(answer, Response)
            assert (answer.flaw, len(answer.body)) == (Reason.TOO_LARGE, 100_000)
            answer = await ask(network, url + "away")
            assert isinstance(answer, Response)
            assert (answer.status, answer.body) == (302, b"")
            assert await body(network, url) == b"well"
        await until(lambda: server.open == 0)


async def test_a_certificate_nobody_vouches_for_is_refused_by_http_2_as_well(
    server_tls: ssl.SSLContext,
) -> None:
    async with two.two_server({"/": two.answer()}, server_tls) as server:
        url = f"https://127.0.0.1:{server.port}/"
        async with asking_by_http2([url]) as network:
            found = await fault(network, url)
    assert (found.reason, found.phase) == (Reason.TLS, Phase.TLS)
    assert server.requests == []


@pytest.mark.parametrize("host", ["127.0.0.1", "h.test", "[::ffff:127.0.0.1]"])
async def test_private_addresses_are_not_contacted_by_http_2(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext, host: str
) -> None:
    async with two.two_server({"/": two.answer()}, server_tls) as server:
        url = f"https://{host}:{server.port}/"
        seeds = ["https://127.0.0.2/"]
        async with asking_by_http2(seeds, client_tls, allow_private=()) as network:
            found = await fault(network, url)
    assert found.reason in (Reason.BLOCKED_ADDRESS, Reason.UNREACHABLE)
    assert server.connections == 0


async def test_without_the_package_http_2_is_refused_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "h2", None)
    with pytest.raises(ValueError, match=r"pip install 'trio-crawler\[http2\]'"):
        HttpFetch(http2=True)


@pytest.mark.slow
async def test_a_fetch_by_http_2_cancelled_at_any_checkpoint_leaves_nothing_behind(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    site = {"/": two.answer(b"alive"), "/large": two.answer(b"x" * 300_000)}
    cancelled = 0
    async with two.two_server(site, server_tls) as server:
        url = f"https://127.0.0.1:{server.port}/"
        before = sockets()
        for checkpoint in range(1, 1000):
            async with asking_by_http2([url], client_tls) as network:
                ended = await cancelled_at(checkpoint, lambda: ask(network, url + "large"))
                assert await body(network, url) == b"alive"
            await until(lambda: server.open == 0)
            await until(lambda: sockets() == before)
            cancelled += ended
            if not ended and checkpoint > cancelled + 5:
                break
    assert cancelled >= 5


async def test_connections_beyond_so_many_idle_origins_are_closed(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    most = 5
    async with two.two_server({"/": two.answer(b"two")}, server_tls) as server:
        urls = [f"https://a{n}.h.test:{server.port}/" for n in range(most + 5)]
        async with asking_by_http2(urls, client_tls, max_idle=most) as network:
            for url in urls:
                assert await body(network, url) == b"two"
            await until(lambda: server.open <= most)
            assert server.connections == most + 5
            # The first ones were closed, the last ones kept.
            assert await body(network, urls[-1]) == b"two"
            assert server.connections == most + 5
            assert await body(network, urls[0]) == b"two"
            assert server.connections == most + 6
        await until(lambda: server.open == 0)


async def test_a_request_beside_one_that_is_cancelled_while_they_connect_is_answered(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    async with two.two_server({"/": two.answer(b"alive")}, server_tls) as server:
        url = f"https://127.0.0.1:{server.port}/"
        for step in range(1, 40):
            async with (
                asking_by_http2([url], client_tls) as network,
                trio.open_nursery() as both,
            ):
                both.start_soon(cancelled_at, step, partial(ask, network, url))
                await trio.lowlevel.checkpoint()
                assert await body(network, url) == b"alive"


async def test_requests_under_way_when_the_server_ends_the_connection_may_be_tried_again(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    async def end(talk: two.Talk, number: int) -> None:
        talk.machine.close_connection(last_stream_id=number)
        await talk.flush()
        await talk.stream.aclose()

    site = {"/": two.answer(b"alive"), "/end": end, "/large": two.answer(bytes(300_000))}
    async with two.two_server(site, server_tls) as server:
        url = f"https://127.0.0.1:{server.port}/"
        async with asking_by_http2([url], client_tls) as network:
            answers: list[Response | Fault] = []

            async def note(target: str) -> None:
                answers.append(await ask(network, url + target))

            assert await body(network, url) == b"alive"
            async with trio.open_nursery() as nursery:
                for target in ("large", "end", "", "large", ""):
                    nursery.start_soon(note, target)
            faults = [answer for answer in answers if isinstance(answer, Fault)]
            assert {fault.reason for fault in faults} == {Reason.RESET}
            assert await body(network, url) == b"alive"
