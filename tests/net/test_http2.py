"""HTTP/2: the same rules as over the wire."""

from __future__ import annotations

import gzip
import ssl
import sys
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import pytest
import trio
from sites.over import Wired, home, over, requests
from sites.steps import until

from trio_crawler.model import Fault, Job, Phase, Reason, Response
from trio_crawler.net.fetch import HttpFetch, WireAdapter
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
    wire = Wired(seeds=seeds, security=security, resolve=home, **private, **options)
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
