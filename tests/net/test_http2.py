"""HTTP/2 and proxies, by httpx's own transport: the same rules as over the wire."""

from __future__ import annotations

import gzip
import ssl
import sys
from base64 import b64encode
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio
from sites.left import sockets
from sites.over import over, requests
from sites.raw import Request, Server, hang_up, raw_server, redirect, reply, silence, tunnel
from sites.steps import cancelled_at, until

from trio_crawler.model import Fault, Job, Phase, Reason, Response
from trio_crawler.net.fetch import HttpFetch
from trio_crawler.net.httpx.http2 import Http2OrProxy
from trio_crawler.net.tls import Security
from trio_crawler.net.wire import Wire

pytest.importorskip("h2")
trustme = pytest.importorskip("trustme")
two = pytest.importorskip("sites.two")


@pytest.fixture
def server_tls(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1", "h.test", "*.h.test").configure_cert(context)
    return context


async def home(host: str, port: int) -> Sequence[str]:
    """Let every name lead to this machine."""
    return ["127.0.0.1"]


def http2_or_proxy(
    seeds: Sequence[str],
    tls: ssl.SSLContext | None = None,
    *,
    allow_private: Sequence[str] = ("127.0.0.1",),
    **options: Any,
) -> aclosing[Http2OrProxy]:
    """Make a network for which every name leads to this machine."""
    security = Security(tls)
    wire = Wire(seeds=seeds, allow_private=allow_private, security=security, resolve=home)
    return aclosing(Http2OrProxy(requests(), wire, security, **options))


async def ask(network: Http2OrProxy, url: str, **limits: Any) -> Response | Fault:
    with trio.fail_after(20):
        return await over(network, **{"timeout": 10} | limits)(Job(url))


async def body(network: Http2OrProxy, url: str) -> bytes:
    answer = await ask(network, url)
    assert isinstance(answer, Response), answer
    return answer.body


async def fault(network: Http2OrProxy, url: str, **limits: Any) -> Fault:
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
        http2_or_proxy([server.url], client_tls, http2=True) as network,
    ):
        for _ in range(2):
            assert await body(network, server.url) == b"one"
    # One to find that out; what was kept of the other is the wire's affair.
    assert server.connections == 2


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
        async with http2_or_proxy([url], client_tls, http2=True) as network:
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
        async with http2_or_proxy([url], http2=True) as network:
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
        async with http2_or_proxy(seeds, client_tls, allow_private=(), http2=True) as network:
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
            async with http2_or_proxy([url], client_tls, http2=True) as network:
                ended = await cancelled_at(checkpoint, lambda: ask(network, url + "large"))
                assert await body(network, url) == b"alive"
            await until(lambda: server.open == 0)
            await until(lambda: sockets() == before)
            cancelled += ended
            if not ended and checkpoint > cancelled + 5:
                break
    assert cancelled >= 10


async def test_connections_beyond_so_many_idle_origins_are_closed(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    most = 5
    async with two.two_server({"/": two.answer(b"two")}, server_tls) as server:
        urls = [f"https://a{n}.h.test:{server.port}/" for n in range(most + 5)]
        async with http2_or_proxy(urls, client_tls, http2=True, max_idle_origins=most) as network:
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


# Proxies.


class Proxy:
    """Forward nothing: answer everything itself, and tunnel to one port of this machine."""

    def __init__(self, to: int = 0) -> None:
        self.targets: list[str] = []
        self.heads: list[bytes] = []
        self.to = to

    async def __call__(self, request: Request, stream: trio.abc.Stream) -> None:
        self.targets.append(f"{request.method} {request.target}")
        self.heads.append(request.head)
        if request.method != "CONNECT":
            await stream.send_all(reply(body=b"by the proxy"))
        elif not self.to:
            await stream.send_all(reply(502, {"Connection": "close"}, b"no way"))
            await stream.aclose()
        else:
            await tunnel(stream, self.to)


@asynccontextmanager
async def proxied(
    proxy: Proxy, user: str = "", tls: ssl.SSLContext | None = None, **options: Any
) -> AsyncIterator[tuple[Server, Http2OrProxy]]:
    async with raw_server(proxy) as server:
        url = f"http://{user}127.0.0.1:{server.port}"
        async with http2_or_proxy([], tls, allow_private=(), proxy=url, **options) as network:
            yield server, network


async def test_a_proxy_is_asked_for_absolute_urls() -> None:
    proxy = Proxy()
    async with proxied(proxy) as (server, network):
        for _ in range(2):
            assert await body(network, "http://h.test/a?b=%20") == b"by the proxy"
        assert await body(network, "http://other.test:81/") == b"by the proxy"
    assert proxy.targets == ["GET http://h.test/a?b=%20"] * 2 + ["GET http://other.test:81/"]
    assert b"Host: h.test\r\n" in proxy.heads[0]
    assert server.connections == 3


async def test_https_goes_through_a_tunnel_and_is_secured_to_the_end(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    async with raw_server({"/": reply(body=b"secret")}, tls=server_tls) as origin:
        proxy = Proxy(origin.port)
        async with proxied(proxy, tls=client_tls) as (_, network):
            for _ in range(2):
                assert await body(network, "https://h.test/") == b"secret"
        assert proxy.targets == ["CONNECT h.test:443"] * 2
        assert origin.targets == ["/", "/"]
        async with proxied(proxy) as (_, network):
            assert (await fault(network, "https://h.test/")).reason is Reason.TLS
        async with proxied(proxy, tls=client_tls) as (_, network):
            assert (await fault(network, "https://evil.test/")).reason is Reason.TLS
    assert len(origin.targets) == 2


async def test_http_2_goes_through_a_tunnel(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    async with two.two_server({"/": two.answer(b"two")}, server_tls) as origin:
        proxy = Proxy(origin.port)
        async with proxied(proxy, tls=client_tls, http2=True) as (_, network):
            assert await body(network, "https://h.test/") == b"two"
    assert proxy.targets == ["CONNECT h.test:443"]


async def test_the_proxys_password_is_for_the_proxy_only(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    async with raw_server({"/": reply(body=b"secret")}, tls=server_tls) as origin:
        proxy = Proxy(origin.port)
        async with proxied(proxy, "us%40er:p%3Aw@", client_tls) as (_, network):
            assert await body(network, "http://h.test/") == b"by the proxy"
            assert await body(network, "https://h.test/") == b"secret"
            assert "p%3Aw" not in repr(network)
    said = b"Proxy-Authorization: Basic " + b64encode(b"us@er:p:w")
    assert all(said.lower() in head.lower() for head in proxy.heads)
    assert len(proxy.heads) == 2
    assert b"uthorization" not in origin.requests[0].head


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.0.0.2", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254"),
        *("10.0.0.1", "192.168.1.1", "[fd00::1]", "0.0.0.0", "[64:ff9b::7f00:1]"),
    ],
)
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_private_address_is_not_asked_of_a_proxy(host: str, scheme: str) -> None:
    proxy = Proxy()
    async with proxied(proxy) as (server, network):
        found = await fault(network, f"{scheme}://{host}/")
    assert (found.reason, found.phase) == (Reason.BLOCKED_ADDRESS, Phase.CONNECT)
    assert (proxy.targets, server.connections) == ([], 0)


async def test_a_proxy_that_refuses_a_tunnel_is_a_fault() -> None:
    async with proxied(Proxy()) as (server, network):
        found = await fault(network, "https://h.test/")
        await until(lambda: server.open == 0)
    assert found.reason is Reason.UNREACHABLE


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_that_hangs_up_or_says_nothing_is_a_fault(scheme: str) -> None:
    for site, reason in ((hang_up, Reason.RESET), (silence, Reason.TIMEOUT)):
        async with raw_server(site) as server:
            async with http2_or_proxy([], proxy=server.url) as network:
                found = await fault(network, f"{scheme}://h.test/", timeout=0.3)
                assert found.reason is reason
            await until(lambda: server.open == 0)


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_fetch_through_a_proxy_cancelled_at_any_checkpoint_leaves_nothing_behind(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext, scheme: str
) -> None:
    cancelled = 0
    async with raw_server({"/": reply(body=b"a" * 100_000)}, tls=server_tls) as origin:
        before = sockets()
        for checkpoint in range(1, 1000):
            async with proxied(Proxy(origin.port), tls=client_tls) as (server, network):
                work = lambda: ask(network, f"{scheme}://h.test/")  # noqa: E731
                ended = await cancelled_at(checkpoint, work)
                assert await body(network, f"{scheme}://h.test/")
                await network.aclose()
                await until(lambda: server.open == 0)
            await until(lambda: (sockets(), origin.open) == (before, 0))
            cancelled += ended
            if not ended and checkpoint > cancelled + 5:
                break
    assert cancelled >= 5


async def test_redirects_through_a_proxy_are_given_back() -> None:
    async with (
        raw_server(lambda request, stream: stream.send_all(redirect("/b"))) as server,
        http2_or_proxy([], proxy=server.url) as network,
    ):
        answer = await ask(network, "http://h.test/")
    assert isinstance(answer, Response)
    assert (answer.status, answer.headers["location"]) == (302, "/b")
    assert len(server.requests) == 1


# The environment.


@pytest.mark.parametrize("name", ["http_proxy", "all_proxy", "ALL_PROXY"])
@pytest.mark.parametrize("scheme", ["http://", ""])
async def test_the_environment_names_a_proxy_if_it_is_trusted(
    monkeypatch: pytest.MonkeyPatch, name: str, scheme: str
) -> None:
    proxy = Proxy()
    async with raw_server(proxy) as server:
        monkeypatch.setenv(name, f"{scheme}127.0.0.1:{server.port}")
        monkeypatch.setenv("no_proxy", "near.test, .local.test")
        monkeypatch.setenv("ftp_proxy", "ftp://nobody")
        async with http2_or_proxy([], trust_env=True) as network:
            assert await body(network, "http://far.test/") == b"by the proxy"
    assert proxy.targets == ["GET http://far.test/"]


@pytest.mark.parametrize(
    ("no_proxy", "host"),
    [
        ("h.test", "h.test"),
        (".test", "h.test"),
        ("a.test,h.test", "h.test"),
        ("*", "h.test"),
        ("127.0.0.1", "127.0.0.1"),
    ],
)
async def test_hosts_that_need_no_proxy_are_asked_by_the_wire(
    monkeypatch: pytest.MonkeyPatch, no_proxy: str, host: str
) -> None:
    proxy = Proxy()
    async with raw_server(proxy) as server, raw_server({"/": reply(body=b"direct")}) as origin:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.port}")
        monkeypatch.setenv("no_proxy", no_proxy)
        async with http2_or_proxy([], trust_env=True) as network:
            assert await body(network, f"http://{host}:{origin.port}/") == b"direct"
            assert network.statistics().made == 1
    assert proxy.targets == []


async def test_an_environment_that_is_not_trusted_is_not_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("all_proxy", "http://127.0.0.1:1")
    async with raw_server({"/": reply(body=b"direct")}) as server:
        async with HttpFetch(seeds=[server.url]) as fetch:
            assert isinstance(await fetch(Job(server.url)), Response)
        async with http2_or_proxy([server.url], http2=True) as network:
            assert await body(network, server.url) == b"direct"


async def test_a_proxy_that_is_named_comes_before_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "*")
    proxy = Proxy()
    async with proxied(proxy) as (_, network):
        assert await body(network, "http://h.test/") == b"by the proxy"


def test_a_proxy_and_those_of_the_environment_exclude_each_other() -> None:
    with pytest.raises(ValueError, match=r"^proxy and trust_env exclude each other"):
        HttpFetch(proxy="http://127.0.0.1:1", trust_env=True)


@pytest.mark.parametrize("url", ["nonsense", "ftp://h/", "user:secret@h", "://secret"])
def test_a_proxy_that_cannot_be_meant_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ValueError, match=r"^proxy must be a URL such as") as caught:
        HttpFetch(proxy=url)
    assert "secret" not in str(caught.value)


def test_without_the_package_a_socks_proxy_is_refused_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "socksio", None)
    with pytest.raises(ValueError, match=r"pip install 'trio-crawler\[socks\]'"):
        HttpFetch(proxy="socks5://127.0.0.1:1080")


async def test_a_request_beside_one_that_is_cancelled_while_they_connect_is_answered(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    async with two.two_server({"/": two.answer(b"alive")}, server_tls) as server:
        url = f"https://127.0.0.1:{server.port}/"
        for step in range(1, 40):
            async with (
                http2_or_proxy([url], client_tls, http2=True) as network,
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

    site = {"/": two.answer(b"alive"), "/end": end, "/large": two.answer(bytes(300_000))}
    async with two.two_server(site, server_tls) as server:
        url = f"https://127.0.0.1:{server.port}/"
        async with http2_or_proxy([url], client_tls, http2=True) as network:
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
