"""Proxies: requests through them are as safe as without, and each fault names its culprit."""

from __future__ import annotations

import socket
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
import trio
from cases import for_each
from sites.left import sockets
from sites.over import Wired, home, over
from sites.raw import (
    Request,
    Server,
    hang_up,
    html,
    raw_server,
    reply,
    silence,
    tunnel,
)
from sites.socks import socks_server
from sites.steps import cancelled_at, until

from trio_crawler.model import Fault, Job, Phase, Reason, Response
from trio_crawler.net.dial.addresses import server_name
from trio_crawler.net.dial.connector import Resolver
from trio_crawler.net.errors import FetchError
from trio_crawler.net.tls import Security
from trio_crawler.net.turn import Progress

trustme = pytest.importorskip("trustme")

EVIL = reply(body=b"EVIL")
Handler = Callable[[Request, trio.abc.Stream], Awaitable[object]]


def wired(
    tls: ssl.SSLContext | None = None,
    *,
    allow_private: Sequence[str] = (),
    resolve: Any = home,
    **options: Any,
) -> Wired:
    """Make a wire for which every name leads to this machine."""
    security = Security(tls)
    return Wired(allow_private=allow_private, security=security, resolve=resolve, **options)


async def ask(wire: Wired, url: str, **limits: Any) -> Response | Fault:
    with trio.fail_after(20):
        return await over(wire, **{"timeout": 10} | limits)(Job(url))


async def body(wire: Wired, url: str) -> bytes:
    answer = await ask(wire, url)
    assert isinstance(answer, Response), answer
    return answer.body


async def fault(wire: Wired, url: str, **limits: Any) -> Fault:
    answer = await ask(wire, url, **limits)
    assert isinstance(answer, Fault), answer
    assert answer.detail.isprintable()
    return answer


def told(answer: Response | Fault) -> object:
    """Return what came of a request, for comparison."""
    if isinstance(answer, Fault):
        return answer.reason, answer.phase, answer.detail
    return answer.status, answer.body


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
    proxy: Handler, user: str = "", tls: ssl.SSLContext | None = None, **options: Any
) -> AsyncIterator[tuple[Server, Wired]]:
    async with raw_server(proxy) as server:
        url = f"http://{user}127.0.0.1:{server.port}"
        async with wired(tls, proxy=url, **options) as wire:
            yield server, wire


async def answered(site: bytes | Handler, url: str, user: str = "", **limits: Any) -> Fault:
    """Return the fault of a request to a proxy that answers so; {} in its detail is the proxy."""

    async def handler(request: Request, stream: trio.abc.Stream) -> None:
        if not isinstance(site, bytes):
            await site(request, stream)
            return
        await stream.send_all(site)
        await stream.aclose()

    async with proxied(handler, user) as (server, wire):
        found = await fault(wire, url, **limits)
        await until(lambda: server.open == 0)
    detail = found.detail.replace(f"the proxy 127.0.0.1:{server.port}", "{}")
    return Fault(found.reason, detail, found.phase)


async def test_a_proxy_is_asked_for_absolute_urls_over_one_connection_for_each_origin() -> None:
    proxy = Proxy()
    async with proxied(proxy) as (server, wire):
        for _ in range(2):
            assert await body(wire, "http://h.test/a?b=%20") == b"by the proxy"
        assert await body(wire, "http://other.test:81/") == b"by the proxy"
        assert await body(wire, "http://other.test:443/") == b"by the proxy"
    assert proxy.targets == [
        *["GET http://h.test/a?b=%20"] * 2,
        *("GET http://other.test:81/", "GET http://other.test:443/"),
    ]
    assert b"Host: h.test\r\n" in proxy.heads[0]
    assert server.connections == 3


async def test_an_address_of_ipv6_is_written_in_brackets() -> None:
    proxy = Proxy()
    async with proxied(proxy, allow_private=["::/0"]) as (_, wire):
        assert await body(wire, "http://[::1]:81/") == b"by the proxy"
        await fault(wire, "https://[::1]/")
    assert proxy.targets == ["GET http://[::1]:81/", "CONNECT [::1]:443"]


async def test_what_is_recorded_is_the_request_as_the_site_would_have_it() -> None:
    async with proxied(Proxy(), "me:secret@") as (_, wire):
        answer = await ask(wire, "http://h.test/a")
    assert isinstance(answer, Response)
    assert answer.request.startswith(b"GET /a HTTP/1.1\r\nHost: h.test\r\n")
    assert b"Proxy" not in answer.request


async def test_https_goes_through_a_tunnel_that_is_kept_and_is_secured_to_the_end(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    async with raw_server({"/": reply(body=b"secret")}, tls=server_tls) as origin:
        proxy = Proxy(origin.port)
        async with proxied(proxy, tls=client_tls) as (_, wire):
            for _ in range(2):
                assert await body(wire, "https://h.test/") == b"secret"
        assert proxy.targets == ["CONNECT h.test:443"]
        assert origin.targets == ["/", "/"]
        async with proxied(proxy) as (_, wire):
            found = await fault(wire, "https://h.test/")
            assert (found.reason, found.phase) == (Reason.TLS, Phase.TLS)
            assert "the certificate of h.test cannot" in found.detail
        async with proxied(proxy, tls=client_tls) as (_, wire):
            assert (await fault(wire, "https://evil.test/")).reason is Reason.TLS
    assert len(origin.targets) == 2


async def test_the_proxys_password_is_for_the_proxy_only(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    async with raw_server({"/": reply(body=b"secret")}, tls=server_tls) as origin:
        proxy = Proxy(origin.port)
        async with proxied(proxy, "us%40er:p%3Aw@", client_tls) as (_, wire):
            assert await body(wire, "http://h.test/") == b"by the proxy"
            assert await body(wire, "https://h.test/") == b"secret"
            assert "p:w" not in repr(wire) + repr(wire.connector.proxies(("http", "h.test", 80)))
    said = b"Proxy-Authorization: Basic " + b64encode(b"us@er:p:w") + b"\r\n"
    assert all(said in head for head in proxy.heads)
    assert len(proxy.heads) == 2
    assert b"uthorization" not in origin.requests[0].head


@for_each(
    "host",
    [
        *("127.0.0.1", "127.0.0.2", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254"),
        *("10.0.0.1", "192.168.1.1", "[fd00::1]", "0.0.0.0", "[64:ff9b::7f00:1]"),
    ],
)
@for_each("scheme", ["http", "https"])
async def test_a_private_address_is_not_asked_of_a_proxy(host: str, scheme: str) -> None:
    proxy = Proxy()
    async with proxied(proxy) as (server, wire):
        found = await fault(wire, f"{scheme}://{host}/")
    assert (found.reason, found.phase) == (Reason.BLOCKED_ADDRESS, Phase.CONNECT)
    assert (proxy.targets, server.connections) == ([], 0)


# SOCKS.


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
@pytest.mark.parametrize("user", ["", "us%40er:p%3Aw@"])
async def test_a_socks_proxy_looks_up_the_name_and_its_connections_are_kept(
    scheme: str, user: str
) -> None:
    login = (b"us@er", b"p:w") if user else None
    async with (
        raw_server({"/": reply(body=b"site")}) as origin,
        socks_server(origin.port, login) as socks,
        wired(proxy=f"{scheme}://{user}127.0.0.1:{socks.port}", resolve=no_name) as wire,
    ):
        for _ in range(2):
            assert await body(wire, "http://h.test:81/") == b"site"
        assert await body(wire, "http://8.8.8.8/") == b"site"
        assert await body(wire, "http://[2001:4860::8]/") == b"site"
    assert origin.targets == ["/"] * 4
    assert socks.asked == [(3, b"h.test", 81), (1, b"\x08" * 4, 80), (4, V6, 80)]


V6 = bytes.fromhex("20014860" + "0" * 23 + "8")


async def no_name(host: str, port: int) -> Sequence[str]:
    """Look up no name, but return addresses."""
    return await Resolver(lambda name: [])(host, port)


async def test_tls_through_a_socks_proxy_is_secured_to_the_end(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    async with (
        raw_server({"/": reply(body=b"secret")}, tls=server_tls) as origin,
        socks_server(origin.port) as socks,
    ):
        async with wired(client_tls, proxy=f"socks5://127.0.0.1:{socks.port}") as wire:
            for _ in range(2):
                assert await body(wire, "https://h.test/") == b"secret"
        async with wired(proxy=f"socks5://127.0.0.1:{socks.port}") as wire:
            assert (await fault(wire, "https://h.test/")).reason is Reason.TLS
    assert socks.asked == [(3, b"h.test", 443)] * 2


@pytest.mark.parametrize("user", ["", "me:wrong@"])
async def test_a_socks_proxy_that_wants_another_login_is_the_culprit(user: str) -> None:
    async with socks_server(1, (b"me", b"right")) as socks:
        url = f"socks5://{user}127.0.0.1:{socks.port}"
        async with wired(proxy=url) as wire:
            found = await fault(wire, "http://h.test/")
    name = f"the proxy 127.0.0.1:{socks.port}"
    why = "wants a user and a password: give them in --proxy, as socks5://USER@HOST:PORT"
    if user:
        why = "does not accept the user and the password in --proxy"
    assert told(found) == (Reason.PROXY, Phase.CONNECT, f"{name} {why}")


# What a proxy itself answers.

HTTPS, HTTP = "https://h.test/", "http://h.test/"
LOGIN = "{} wants a user and a password: give them in --proxy, as http://USER@HOST:PORT"
SQUID = {"Via": "1.1 p (squid/5.7)"}


@for_each(
    "status, reason, detail",
    [
        (407, Reason.PROXY, LOGIN),
        (302, Reason.PROXY, "{} refuses to ask h.test: 302 Found"),
        (400, Reason.PROXY, "{} refuses to ask h.test: 400 Bad Request"),
        (401, Reason.PROXY, LOGIN),
        (403, Reason.PROXY, "{} refuses to ask h.test: 403 Forbidden"),
        (405, Reason.PROXY, "{} refuses to ask h.test: 405 Method Not Allowed"),
        (501, Reason.PROXY, "{} refuses to ask h.test: 501 Not Implemented"),
        (404, Reason.UNREACHABLE, "{} cannot reach h.test: 404 Not Found"),
        (429, Reason.UNREACHABLE, "{} cannot reach h.test: 429 Too Many Requests"),
        (500, Reason.UNREACHABLE, "{} cannot reach h.test: 500 Internal Server Error"),
        (502, Reason.UNREACHABLE, "{} cannot reach h.test: 502 Bad Gateway"),
        (503, Reason.UNREACHABLE, "{} cannot reach h.test: 503 Service Unavailable"),
        (504, Reason.UNREACHABLE, "{} cannot reach h.test: 504 Gateway Timeout"),
    ],
)
async def test_a_proxy_that_refuses_a_tunnel_is_named(
    status: int, reason: Reason, detail: str
) -> None:
    found = await answered(reply(status), HTTPS)
    assert told(found) == (reason, Phase.CONNECT, detail)


@pytest.mark.parametrize("url", [HTTP, HTTPS])
async def test_a_407_says_what_to_do_and_shows_no_password(url: str) -> None:
    refuse = reply(407, {"Proxy-Authenticate": "Basic"})
    assert told(await answered(refuse, url)) == (Reason.PROXY, Phase.CONNECT, LOGIN)
    found = await answered(refuse, url, "me:secret@")
    assert found.detail == "{} does not accept the user and the password in --proxy"


@pytest.mark.parametrize("url", [HTTP, HTTPS])
async def test_a_login_that_no_password_helps_against_is_told_as_such(url: str) -> None:
    refuse = (
        b"HTTP/1.1 407 No\r\nProxy-Authenticate: NTLM\r\nProxy-Authenticate: Negotiate\r\n\r\n"
    )
    found = await answered(refuse, url, "me:secret@")
    wants = "{} wants a login by NTLM; only Basic is supported"
    assert told(found) == (Reason.PROXY, Phase.CONNECT, wants)


@pytest.mark.parametrize("user", ["", "me:secret@"])
async def test_a_proxy_of_the_environment_is_told_by_its_variable(
    user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse = reply(407, {"Proxy-Authenticate": "Basic"})
    async with raw_server(lambda request, stream: stream.send_all(refuse)) as server:
        monkeypatch.setenv("http_proxy", f"http://{user}127.0.0.1:{server.port}")
        async with wired(trust_env=True) as wire:
            found = await fault(wire, HTTP)
    advice = {
        "": "wants a user and a password: give them in http_proxy, as "
        "http://USER:PASSWORD@HOST:PORT",
        "me:secret@": "does not accept the user and the password in http_proxy",
    }
    assert found.detail == f"the proxy 127.0.0.1:{server.port} {advice[user]}"


@for_each("url", [HTTP, HTTPS])
@for_each(
    "status, headers, reason",
    [
        (503, {**SQUID, "X-Squid-Error": "ERR_CONNECT_FAIL 111"}, Reason.CONNECTION_REFUSED),
        (503, {**SQUID, "X-Squid-Error": "ERR_CONNECT_FAIL 113"}, Reason.UNREACHABLE),
        (503, {**SQUID, "X-Squid-Error": "ERR_DNS_FAIL 0"}, Reason.DNS),
        (502, {**SQUID, "X-Squid-Error": "ERR_READ_ERROR 0"}, Reason.UNREACHABLE),
        (403, {**SQUID, "X-Squid-Error": "ERR_ACCESS_DENIED 0"}, Reason.PROXY),
        (502, {"Proxy-Status": "p; error=connection_refused"}, Reason.CONNECTION_REFUSED),
        (502, {"Proxy-Status": 'cdn, p; error="dns_error"; x=1'}, Reason.DNS),
        (504, {"Proxy-Status": "p;next-hop=h;error=connection_timeout"}, Reason.UNREACHABLE),
        (302, {**SQUID, "X-Squid-Error": "403 Access Denied", "Location": "/"}, Reason.PROXY),
    ],
)
async def test_a_page_that_the_proxy_has_made_is_no_page_of_the_site(
    url: str, status: int, headers: dict[str, str], reason: Reason
) -> None:
    found = await answered(reply(status, headers, b"sorry"), url)
    assert (found.reason, found.phase) == (reason, Phase.CONNECT)
    does = "refuses to ask" if reason is Reason.PROXY else "cannot reach"
    assert found.detail.startswith(f"{{}} {does} h.test: {status} ")


@for_each(
    "status, headers",
    [
        (503, {}),
        (404, {"Server": "nginx", "Via": "1.1 p (squid/5.7)"}),
        (200, {"X-Squid-Error": "ERR_NONE 0"}),
        (503, {"Via": "1.1 cache.h.test, 1.1 p", "X-Squid-Error": "ERR_CONNECT_FAIL 111"}),
        (502, {"Proxy-Status": "cdn; error=connection_refused, p"}),
    ],
)
async def test_a_page_of_the_site_stays_one(status: int, headers: dict[str, str]) -> None:
    site = reply(status, headers, b"the site's")
    async with proxied(lambda request, stream: stream.send_all(site)) as (_, wire):
        answer = await ask(wire, HTTP)
    assert told(answer) == (status, b"the site's")


@for_each("url", [HTTP, HTTPS])
@for_each("said", [b"SSH-2.0-x\r\n", b"\x05\xff", b"\x15\x03\x01\x00\x02", b"<"])
async def test_what_is_no_http_on_the_proxys_port_is_told(url: str, said: bytes) -> None:
    found = await answered(said, url)
    assert told(found)[:2] == (Reason.PROXY, Phase.CONNECT)
    how = "speak HTTP on this port" if url == HTTP else "answer in valid HTTP: the answer begins"
    assert f" does not {how}" in found.detail


async def test_a_site_without_http_is_not_blamed_on_a_proxy_that_has_answered() -> None:
    async def site(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(reply() if "good" in request.target else b"SSH-2.0-x\r\n\r\n")

    async with proxied(site) as (_, wire):
        assert await body(wire, "http://good.test/") == b""
        found = await fault(wire, HTTP)
        assert found.reason is Reason.BAD_REPLY


@pytest.mark.parametrize(
    ("url", "site", "reason", "phase", "detail"),
    [
        (HTTP, hang_up, Reason.RESET, Phase.WAIT, "h.test through {} closed the connection"),
        (HTTPS, hang_up, Reason.RESET, Phase.CONNECT, "{} closed the connection before it had"),
        (HTTP, silence, Reason.TIMEOUT, Phase.WAIT, "waiting for the answer of h.test through {}"),
        (HTTPS, silence, Reason.CONNECT_TIMEOUT, Phase.CONNECT, "connecting to h.test through {}"),
    ],
)
async def test_a_proxy_that_hangs_up_or_says_nothing_is_a_fault(
    url: str, site: Handler, reason: Reason, phase: Phase, detail: str
) -> None:
    found = await answered(site, url, timeout=0.3)
    assert (found.reason, found.phase) == (reason, phase)
    assert detail in found.detail


async def test_a_socks_proxy_that_says_nothing_is_named() -> None:
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = listener.socket.getsockname()[1]
        async with wired(proxy=f"socks5://127.0.0.1:{port}") as wire:
            found = await fault(wire, HTTP, timeout=0.3)
        nursery.cancel_scope.cancel()
        listener.socket.close()
    assert (found.reason, found.phase) == (Reason.CONNECT_TIMEOUT, Phase.CONNECT)
    assert f"connecting to h.test through the proxy 127.0.0.1:{port}" in found.detail


async def test_bytes_behind_the_answer_to_connect_are_not_taken_for_the_sites() -> None:
    found = await answered(b"HTTP/1.1 200 OK\r\n\r\n" + EVIL, HTTPS)
    detail = "{} sends bytes of its own to those of h.test"
    assert told(found) == (Reason.PROXY, Phase.CONNECT, detail)


@for_each(
    "answer",
    [
        b"HTTP/1.1 200 Fine\r\nContent-Length: 100\r\n\r\n",
        b"HTTP/1.0 200\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 299 Odd\n\n",
    ],
)
async def test_any_2xx_makes_a_tunnel_and_has_no_body(
    answer: bytes, server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    async with raw_server({"/": reply(body=b"secret")}, tls=server_tls) as origin:

        async def site(request: Request, stream: trio.abc.Stream) -> None:
            await tunnel(stream, origin.port, answer)

        async with proxied(site, tls=client_tls) as (_, wire):
            assert await body(wire, HTTPS) == b"secret"


async def test_a_tunnel_that_ends_at_once_may_be_the_fault_of_both() -> None:
    found = await answered(reply(200, {"Content-Length": "0"}), HTTPS)
    assert (found.reason, found.phase) == (Reason.RESET, Phase.TLS)
    assert found.detail.startswith("h.test through {} closed the connection")


async def test_a_proxy_without_tls_is_told_if_its_url_says_https() -> None:
    async with raw_server(Proxy()) as server, trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")

        async def talk(stream: trio.SocketStream) -> None:
            await stream.receive_some()
            await stream.send_all(reply(400))

        nursery.start_soon(trio.serve_listeners, talk, [listener])
        port = listener.socket.getsockname()[1]
        async with wired(proxy=f"https://127.0.0.1:{port}") as wire:
            found = await fault(wire, HTTP)
        nursery.cancel_scope.cancel()
    assert server.requests == []
    detail = f"the proxy 127.0.0.1:{port} does not speak TLS on this port"
    assert told(found) == (Reason.PROXY, Phase.CONNECT, detail)


async def test_tls_to_the_proxy_has_tls_to_the_site_in_it(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    async with raw_server({"/": reply(body=b"secret")}, tls=server_tls) as origin:
        proxy = Proxy(origin.port)
        async with (
            raw_server(proxy, tls=server_tls) as server,
            wired(client_tls, proxy=f"https://127.0.0.1:{server.port}") as wire,
        ):
            for _ in range(3):
                assert await body(wire, HTTPS) == b"secret"
                assert await body(wire, HTTP) == b"by the proxy"
    assert server.connections == 2


async def test_the_certificate_of_a_proxy_is_not_taken_for_the_servers(
    server_tls: ssl.SSLContext,
) -> None:
    async with (
        raw_server({}, tls=server_tls) as server,
        wired(proxy=f"https://127.0.0.1:{server.port}") as wire,
    ):
        answer = await fault(wire, HTTP)
    assert (answer.reason, answer.phase) == (Reason.TLS, Phase.TLS)
    assert f"the certificate of the proxy 127.0.0.1:{server.port}" in answer.detail


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_a_proxy_that_refuses_is_named_as_in_its_url(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as taken:
        taken.bind((host, 0))
        port = taken.getsockname()[1]
        proxy = f"http://{server_name(host, port)}"
        async with wired(proxy=proxy, resolve=no_name) as wire:
            answer = await ask(wire, HTTP)
    detail = f"the proxy {server_name(host, port)} refused the connection"
    assert told(answer) == (Reason.CONNECTION_REFUSED, Phase.CONNECT, detail)


async def test_a_proxy_whose_name_is_not_known_is_named() -> None:
    for port, name in (("", "p.test"), (":81", "p.test:81")):
        async with wired(proxy=f"http://p.test{port}", resolve=no_name) as wire:
            found = await fault(wire, HTTP)
        detail = f"the proxy {name} cannot be used: the name of {name} is not known"
        assert told(found) == (Reason.DNS, Phase.RESOLVE, detail)

    async def own(host: str, port: int) -> Sequence[str]:
        raise FetchError(Reason.DNS, "no such name", Phase.RESOLVE)

    async with wired(proxy="http://p.test", resolve=own) as wire:
        assert (await fault(wire, HTTP)).detail == (
            "the proxy p.test cannot be used: no such name"
        )


async def test_a_deadline_says_that_it_was_the_proxy_that_was_waited_for() -> None:
    async def never(host: str, port: int) -> Sequence[str]:
        await trio.sleep_forever()
        raise AssertionError

    async with wired(proxy="http://p.test:81", resolve=never) as wire:
        found = await fault(wire, HTTP, timeout=0.1)
    assert found.detail.endswith("was over while looking up the name of the proxy p.test:81")


# Connections: as safe as without a proxy.


class Way:
    """A server behind a proxy, a tunnel or SOCKS, and a fetch that asks it."""

    def __init__(self, kind: str, server_tls: ssl.SSLContext, client_tls: ssl.SSLContext) -> None:
        self.kind = kind
        self._server_tls = server_tls
        self._client_tls = client_tls
        self._stack = AsyncExitStack()
        self.url = HTTPS if kind.startswith("tunnel") else HTTP

    async def open(self, site: Handler, **bounds: Any) -> tuple[Server, Any]:
        tls = self._server_tls if self.kind.startswith("tunnel") else None
        enter = self._stack.enter_async_context
        server: Server = await enter(raw_server(site, tls=tls))
        if self.kind == "proxy":
            proxy = server.url
        elif self.kind == "socks":
            proxy = f"socks5://127.0.0.1:{(await enter(socks_server(server.port))).port}"
        else:
            tls = tls if self.kind == "tunnel in tls" else None
            proxy = (await enter(raw_server(Proxy(server.port), tls=tls))).url
        wire = await enter(wired(self._client_tls, proxy=proxy))
        return server, over(wire, **bounds)

    async def __aenter__(self) -> Way:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()


@pytest.fixture(params=["proxy", "tunnel", "tunnel in tls", "socks"])
def way(
    request: pytest.FixtureRequest, server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> Way:
    return Way(request.param, server_tls, client_tls)


async def test_what_comes_behind_an_answer_is_not_taken_for_the_next_one(way: Way) -> None:
    async def site(request: Request, stream: trio.abc.Stream) -> None:
        if request.target.endswith("/"):
            await stream.send_all(html("/a") + EVIL)
        elif request.target.endswith("/moved"):
            await stream.send_all(reply(302, {"Location": "/b"}) + EVIL)
        else:
            await stream.send_all(reply(body=b"true"))

    async with way:
        server, fetch = await way.open(site)
        for path in ("", "a", "moved", "b", "", "", "c"):
            answer = await fetch(Job(way.url + path))
            assert isinstance(answer, Response)
            assert answer.body != b"EVIL"
            if path in ("a", "b", "c"):
                assert answer.body == b"true"
    assert len(server.requests) == 7


async def test_a_connection_that_was_closed_meanwhile_is_replaced_and_no_request_is_lost(
    way: Way,
) -> None:
    served: dict[trio.abc.Stream, int] = {}

    async def site(request: Request, stream: trio.abc.Stream) -> None:
        served[stream] = served.get(stream, 0) + 1
        if served[stream] % 3 == 0:
            await stream.aclose()
        else:
            await stream.send_all(reply(body=b"true"))

    async with way:
        server, fetch = await way.open(site, timeout=10)
        for _ in range(10):
            assert told(await fetch(Job(way.url))) == (200, b"true")
    assert server.connections == 5


async def test_a_flood_before_a_tunnel_ends_at_the_bound() -> None:
    async def interim(request: Request, stream: trio.abc.Stream) -> None:
        while True:
            await stream.send_all(b"HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n" * 500)

    async def endless(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(b"HTTP/1.1 200 OK\r\n")
        while True:
            await stream.send_all(b"A: b\r\n" * 5000)

    for site in (interim, endless):
        found = await answered(site, HTTPS)
        assert (found.reason, found.phase) == (Reason.PROXY, Phase.CONNECT)
        assert found.detail.startswith("{} does not answer in valid HTTP: ")


async def test_a_fetch_through_a_proxy_cancelled_at_any_checkpoint_leaves_nothing_behind(
    way: Way,
) -> None:
    async def site(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(reply(body=b"a" * 300_000))

    cancelled = 0
    before = sockets()
    for checkpoint in range(1, 1000):
        async with way:
            server, fetch = await way.open(site, timeout=10)
            wire = fetch._network.wire
            ended = await cancelled_at(checkpoint, lambda each=fetch: each(Job(way.url)))
            kept = wire.statistics().open
            assert kept == wire.statistics().idle <= 1
            assert isinstance(await fetch(Job(way.url)), Response)
            await wire.aclose()
            await until(lambda each=server: each.open == 0)
        way._stack = AsyncExitStack()
        await until(lambda: sockets() == before)
        cancelled += ended
        if not ended and checkpoint > cancelled + 5:
            break
    assert cancelled >= 2


# The choice of a proxy.


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])
@pytest.mark.parametrize("scheme", ["http://", ""])
async def test_the_environment_names_a_proxy_if_it_is_trusted(
    monkeypatch: pytest.MonkeyPatch, name: str, scheme: str
) -> None:
    proxy = Proxy()
    async with raw_server(proxy) as server:
        monkeypatch.setenv(name, f"{scheme}127.0.0.1:{server.port}")
        monkeypatch.setenv("no_proxy", "near.test, .local.test")
        monkeypatch.setenv("ftp_proxy", "ftp://nobody")
        async with wired(trust_env=True) as wire:
            assert await body(wire, "http://far.test/") == b"by the proxy"
    assert proxy.targets == ["GET http://far.test/"]


@pytest.mark.parametrize(
    ("no_proxy", "host"),
    [
        ("h.test", "h.test"),
        (".test", "h.test"),
        ("a.test,h.test", "h.test"),
        ("*", "h.test"),
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.0/8", "127.0.0.1"),
    ],
)
async def test_hosts_that_need_no_proxy_are_asked_directly(
    monkeypatch: pytest.MonkeyPatch, no_proxy: str, host: str
) -> None:
    proxy = Proxy()
    async with raw_server(proxy) as server, raw_server({"/": reply(body=b"direct")}) as origin:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.port}")
        monkeypatch.setenv("no_proxy", no_proxy)
        async with wired(trust_env=True, allow_private=["127.0.0.1"]) as wire:
            assert await body(wire, f"http://{host}:{origin.port}/") == b"direct"
            assert wire.statistics().made == 1
    assert proxy.targets == []


async def test_http2_may_be_offered_to_a_site_behind_each_kind_of_proxy(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    server_tls.set_alpn_protocols(["h2"])
    async with (
        raw_server({}, tls=server_tls) as origin,
        socks_server(origin.port) as socks,
        raw_server(Proxy(origin.port)) as http,
    ):
        for url in (http.url, f"socks5://127.0.0.1:{socks.port}"):
            async with wired(client_tls, proxy=url) as wire:
                site = ("https", "h.test", 443)
                stream = await wire.open(site, Progress(""), ("h2", "http/1.1"))
                assert stream.protocol == "h2"
                stream.close()
