"""A caller's client: its hooks, authentication and transports, and the bytes they read."""

from __future__ import annotations

import gzip
import re
import ssl
import zlib
from collections.abc import Awaitable, Callable, Generator
from typing import Any

import httpx
import pytest
import trio
import trio.testing
from cases import for_each
from sites import two
from sites.raw import Request, chunked, raw_server, redirect, reply

from trio_crawler import Crawler, Page, Politeness
from trio_crawler.model import Answer, Fault, Job, Phase, Reason, Response
from trio_crawler.net import CookieStore
from trio_crawler.net.httpx_fetch import HttpxFetch

TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
PAGE = b"<a href=/b>b</a>" + b"x" * 70_000
POLITE = Politeness(robots=False)
Hook = Callable[[httpx.Response], Awaitable[None]]


def client_of(*hooks: Hook, **options: Any) -> httpx.AsyncClient:
    hooked = {"response": list(hooks)}
    return httpx.AsyncClient(**{"verify": TLS, "trust_env": False, **options}, event_hooks=hooked)


async def asked(
    site: Any, *hooks: Hook, target: str = "", fetch: dict[str, Any] | None = None, **options: Any
) -> Answer:
    """Return the answer of a raw server to one request by a client."""
    async with raw_server(site) as server, client_of(*hooks, **options) as client:
        try:
            return await HttpxFetch(client, **fetch or {})(Job(server.url + target))
        except Exception as error:
            raised = error
    raise raised


def names(given: Any) -> str | None:
    """Return an id for some hooks, or for the options of a client."""
    if isinstance(given, list):
        return ",".join(hook.__name__ for hook in given) or "none"
    return next(iter(given)) if isinstance(given, dict) else None


def whole(answer: Answer) -> bytes:
    assert isinstance(answer, Response), answer
    return answer.body


# Hooks that read.


async def reads(response: httpx.Response) -> None:
    await response.aread()


async def reads_errors(response: httpx.Response) -> None:
    if response.is_error:
        await response.aread()


async def reads_and_checks(response: httpx.Response) -> None:
    await response.aread()
    response.raise_for_status()


async def checks(response: httpx.Response) -> None:
    response.raise_for_status()


async def reads_half(response: httpx.Response) -> None:
    parts = response.aiter_raw()
    await anext(parts, None)
    await parts.aclose()


READERS = [reads, reads_errors, reads_and_checks, checks]
ODD = {
    "/": reply(200, {"Content-Type": "text/html"}, PAGE),
    "/gzip": reply(
        200, {"Content-Type": "text/html", "Content-Encoding": "gzip"}, gzip.compress(PAGE)
    ),
    "/twice": reply(
        200, {"Content-Encoding": "deflate, gzip"}, gzip.compress(zlib.compress(PAGE))
    ),
    "/chunks": reply(200, {"Transfer-Encoding": "chunked"}, chunked(b"ab", b"c" * 9000, b"d")),
    "/close": b"HTTP/1.1 200 OK\r\n\r\nuntil the end",
    "/empty": reply(204),
    "/not-modified": reply(304, {"ETag": '"a"'}),
    "/moved": redirect("/b"),
    "/odd": redirect("javascript:alert(1)"),
    "/gone": reply(404, {"Content-Type": "text/plain"}, b"not here"),
    "/busy": reply(503, {"Retry-After": "9", "Content-Encoding": "gzip"}, gzip.compress(b"no")),
    "/short": b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n" + b"x" * 37,
    "/cut": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    "/not-gzip": reply(200, {"Content-Encoding": "gzip"}, b"not gzip"),
    "/long": reply(200, {"Transfer-Encoding": "chunked"}, chunked(*[b"x" * 9000] * 200)),
}
CLOSING = {"/close", "/short", "/cut"}


async def odd_site(request: Request, stream: trio.abc.Stream) -> None:
    await stream.send_all(ODD[request.target.partition("?")[0]])
    if request.target in CLOSING:
        await stream.aclose()


# httpx leaves its own iterators behind when it cannot decode, or when a hook stops halfway.
LEFT = pytest.mark.filterwarnings(
    "ignore:.*(__aiter__|aiter_raw|_receive_response_body):pytest.PytestUnraisableExceptionWarning"
)


@LEFT
@pytest.mark.parametrize("hook", READERS)
@for_each("target", ODD)
async def test_a_hook_that_reads_changes_no_answer(hook: Hook, target: str) -> None:
    bounds = {"max_bytes": 100_000}
    plain = await asked(odd_site, target=target[1:], fetch=bounds)
    hooked = await asked(odd_site, hook, target=target[1:], fetch=bounds)
    if isinstance(plain, Fault):
        assert isinstance(hooked, Fault)
        assert hooked.reason is plain.reason
        assert hooked.phase is plain.phase is Phase.READ
        assert hooked.detail
        return
    assert isinstance(hooked, Response), hooked
    assert (hooked.status, hooked.headers, hooked.flaw) == (
        plain.status,
        plain.headers,
        plain.flaw,
    )
    # httpx closes a response for which a hook raises; nothing reads the body of an error.
    assert hooked.body == plain.body or plain.status >= 400


async def test_what_a_hook_reads_is_decoded_once_and_within_the_bounds_of_the_fetch() -> None:
    bomb = gzip.compress(bytes(3_000_000))
    site = {"/": reply(200, {"Content-Encoding": "gzip"}, bomb)}
    answer = await asked(site, reads, fetch={"max_bytes": 100_000})
    assert isinstance(answer, Response)
    assert (len(answer.body), answer.flaw) == (100_000, Reason.TOO_LARGE)


@LEFT
async def test_a_hook_that_closes_a_page_is_a_bug_and_one_that_closes_an_error_is_none() -> None:
    async def closes(response: httpx.Response) -> None:
        await response.aclose()

    site = {"/": reply(body=PAGE), "/moved": redirect("/b"), "/gone": reply(404, body=b"gone")}
    for target in ("moved", "gone"):
        assert whole(await asked(site, closes, target=target)) == b""
    for loses in (closes, reads_half):
        with pytest.raises(RuntimeError, match="did not keep it: a hook reads it with aread"):
            await asked(site, loses)
    async with raw_server(site) as server, client_of(closes) as client:
        with pytest.raises(ExceptionGroup) as caught:
            await Crawler([server.url], fetch=HttpxFetch(client), politeness=POLITE).crawl()
    [error] = caught.value.exceptions
    assert error.__notes__ == [f"while crawling {server.url}"]


@pytest.mark.parametrize("error", [TypeError("mine"), ValueError("mine"), KeyError("mine")])
async def test_an_exception_of_a_hook_is_raised_as_it_is(error: Exception) -> None:
    async def fails(response: httpx.Response) -> None:
        await trio.lowlevel.checkpoint()
        raise error

    with pytest.raises(type(error)) as caught:
        await asked({"/": reply()}, fails)
    assert caught.value is error


async def test_a_status_that_a_hook_refuses_for_another_request_is_a_bug() -> None:
    async def asks_more(response: httpx.Response) -> None:
        if response.request.url.path == "/":
            (await client.get(response.request.url.join("/gone"))).raise_for_status()

    site = {"/": reply(body=b"page")}
    async with raw_server(site) as server, client_of(asks_more) as client:
        with pytest.raises(httpx.HTTPStatusError):
            await HttpxFetch(client)(Job(server.url))


async def test_hooks_that_are_added_while_a_crawl_runs_see_what_the_server_sent() -> None:
    seen: list[str] = []

    async def notes(response: httpx.Response) -> None:
        await response.aread()
        seen.append(response.headers.get("location", ""))

    site = {f"/{name}": redirect(f"/{name}x") for name in "abcd"}
    async with raw_server(site) as server, client_of() as client:
        fetch = HttpxFetch(client)
        for number, name in enumerate("abcd"):
            await fetch(Job(server.url + name))
            if number == 0:
                client.event_hooks["response"].append(notes)
            elif number == 1:
                client.event_hooks["response"].insert(0, notes)
            elif number == 2:
                client.event_hooks = {"response": [notes]}
    assert seen == ["/bx", "/cx", "/cx", "/dx"]


# One answer's bytes are never those of another.


def named(number: int) -> bytes:
    return b"page %d " % number * 500


async def named_site(request: Request, stream: trio.abc.Stream) -> None:
    number = int(request.target[1:] or 0)
    coded = gzip.compress(named(number)) if number % 3 else named(number)
    headers = {"Content-Encoding": "gzip"} if number % 3 else {}
    if number % 2:
        headers["Transfer-Encoding"] = "chunked"
        coded = chunked(coded[:20], coded[20:])
    status = 404 if number % 5 == 0 else 200
    data = reply(status, {**headers, "Content-Type": "text/plain"}, coded)
    for start in range(0, len(data), 700):
        await stream.send_all(data[start : start + 700])
        await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("hook", READERS)
async def test_of_100_pages_at_once_each_has_its_own_bytes(hook: Hook) -> None:
    found: dict[int, Answer] = {}
    limits = httpx.Limits(max_connections=5, max_keepalive_connections=3)
    async with (
        raw_server(named_site) as server,
        client_of(hook, limits=limits, timeout=None) as client,
    ):
        fetch = HttpxFetch(client)

        async def ask(number: int) -> None:
            found[number] = await fetch(Job(f"{server.url}{number}"))

        async def other(number: int) -> None:
            # The caller's own task, by the same client.
            answer = await client.get(f"{server.url}{number}")
            assert answer.content == named(number)

        async with trio.open_nursery() as nursery:
            for number in range(100):
                nursery.start_soon(ask, number)
                if number % 10 == 1:
                    nursery.start_soon(other, number)
    for number, answer in found.items():
        assert whole(answer) in ([named(number)] if number % 5 else [named(number), b""])
    assert len(found) == 100
    assert server.connections >= 5


# Authentication.


class Reading(httpx.Auth):
    """Read each response, and send a token from its body once."""

    requires_response_body = True

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        response = yield request
        if response.status_code == 401:
            request.headers["X-Token"] = response.text
            yield request


class TwoSteps(httpx.Auth):
    """Ask another page for a token before each request, and read it."""

    requires_response_body = True

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        token = yield httpx.Request("POST", request.url.join("/token"))
        request.headers["X-Token"] = token.text
        yield request


async def guarded_site(request: Request, stream: trio.abc.Stream) -> None:
    if request.target == "/token":
        await stream.send_all(reply(body=b"open sesame"))
    elif request.headers.get("x-token") == "open sesame":
        await stream.send_all(reply(200, {"Content-Encoding": "gzip"}, gzip.compress(PAGE)))
    elif request.headers.get("authorization", "").startswith("Digest "):
        await stream.send_all(reply(200, body=PAGE))
    else:
        asks = 'Digest realm="r", nonce="n", qop="auth", algorithm=MD5'
        await stream.send_all(reply(401, {"WWW-Authenticate": asks}, b"open sesame"))


@for_each("hooks", [[], [reads], [reads_errors]], ids=names)
@for_each("auth", [Reading(), TwoSteps(), httpx.DigestAuth("u", "p")])
async def test_an_authentication_may_read_bodies(auth: httpx.Auth, hooks: list[Hook]) -> None:
    limits = httpx.Limits(max_connections=1)
    options = {"auth": auth, "limits": limits, "timeout": httpx.Timeout(5, pool=0.5)}
    async with raw_server(guarded_site) as server, client_of(*hooks, **options) as client:
        fetch = HttpxFetch(client)
        for _ in range(2):
            assert whole(await fetch(Job(server.url))) == PAGE
    assert server.connections == 1


# Clients of other kinds.


@for_each(
    "options",
    [
        {"follow_redirects": True},
        {"base_url": "http://other.test/base/"},
        {"params": {"p": "1"}},
        {"cookies": {"c": "1"}},
        {"mounts": {"all://other.test": httpx.MockTransport(lambda request: httpx.Response(500))}},
        {"default_encoding": "latin-1"},
        {"max_redirects": 0},
    ],
    ids=names,
)
async def test_the_options_of_a_client_leave_the_page_alone(options: dict[str, Any]) -> None:
    async with raw_server(odd_site) as server, client_of(reads, **options) as client:
        fetch = HttpxFetch(client)
        answer = await fetch(Job(server.url + "gzip"))
        moved = await fetch(Job(server.url + "odd"))
    assert whole(answer) == PAGE
    assert isinstance(moved, Response)
    assert moved.headers["location"] == "javascript:alert(1)"


async def test_a_proxy_of_a_client_that_refuses_is_to_blame_itself() -> None:
    async def refuses(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
        await stream.aclose()

    async with raw_server(refuses) as proxy, client_of(proxy=proxy.url) as client:
        answer = await HttpxFetch(client)(Job("https://h.test/a"))
    assert isinstance(answer, Fault)
    assert answer.detail == (
        "the proxy of the HTTP client did not connect to h.test: 407 Proxy Authentication Required"
    )
    assert answer.reason is Reason.PROXY


async def test_a_407_is_never_a_page_of_the_site() -> None:
    site = {"http://h.test/a": reply(407, {"Proxy-Authenticate": "Basic"})}
    async with raw_server(site) as proxy, client_of(proxy=proxy.url) as client:
        answer = await HttpxFetch(client)(Job("http://h.test/a"))
    assert isinstance(answer, Fault)
    assert (answer.reason, answer.phase) == (Reason.PROXY, Phase.CONNECT)


async def test_cookies_of_the_client_are_no_change_of_cookies() -> None:
    site = {"/": redirect("/b"), "/b": redirect("/")}
    async with raw_server(site) as server, client_of(cookies={"a": "b"}) as client:
        fetch = HttpxFetch(client, cookies=CookieStore())
        await Crawler([server.url], fetch=fetch, politeness=POLITE).crawl()
    assert sorted(server.targets) == ["/", "/b"]


async def test_a_client_that_its_owner_uses_too_is_the_same_to_both() -> None:
    site = {"/": reply(body=b"page"), "/a": redirect("/"), "/gone": reply(404, body=b"gone")}
    async with raw_server(site) as server, client_of(follow_redirects=True) as client:
        fetch = HttpxFetch(client)
        results: list[Any] = []

        async def own() -> None:
            results.append((await client.get(server.url + "a")).text)
            async with client.stream("GET", server.url + "gone") as response:
                results.append(await response.aread())

        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(fetch, Job(server.url + "a"))
                nursery.start_soon(own)
    assert sorted(map(str, results)) == sorted([*["b'gone'"] * 20, *["page"] * 20])


async def test_a_crawl_of_an_asgi_app_runs_on_trio() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        body = b"<a href=/b>b</a>" if scope["path"] == "/" else b"leaf"
        headers = [(b"content-type", b"text/html")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    for hooks in ((), (reads,)):
        transport = httpx.ASGITransport(app)
        async with client_of(*hooks, transport=transport) as client:
            crawler = Crawler(["http://app.test/"], fetch=HttpxFetch(client), politeness=POLITE)
            async with crawler.outcomes() as outcomes:
                pages = {o.url: o.body async for o in outcomes if isinstance(o, Page)}
        assert pages == {"http://app.test/": b"<a href=/b>b</a>", "http://app.test/b": b"leaf"}


@for_each("hooks", [[], [reads], [reads_and_checks]], ids=names)
@for_each("is_async", [False, True])
async def test_a_mock_transport_answers_a_client(is_async: bool, hooks: list[Hook]) -> None:
    def plain(request: httpx.Request) -> httpx.Response:
        match request.url.path:
            case "/gzip":
                coded = {"Content-Encoding": "gzip"}
                return httpx.Response(200, headers=coded, content=gzip.compress(PAGE))
            case "/tiny":
                coded = {"Content-Encoding": "gzip"}
                return httpx.Response(200, headers=coded, content=gzip.compress(b"x"))
            case "/json":
                return httpx.Response(404, json={"a": 1})
        return httpx.Response(200, content=PAGE)

    async def handler(request: httpx.Request) -> httpx.Response:
        await trio.lowlevel.checkpoint()
        return plain(request)

    transport = httpx.MockTransport(handler if is_async else plain)
    async with client_of(*hooks, transport=transport) as client:
        for fetch in (HttpxFetch(client), HttpxFetch(transport)):
            assert whole(await fetch(Job("http://h.test/"))) == PAGE
            assert whole(await fetch(Job("http://h.test/gzip"))) == PAGE
            assert whole(await fetch(Job("http://h.test/tiny"))) == b"x"
            assert whole(await fetch(Job("http://h.test/json"))) == b'{"a":1}'


@LEFT
async def test_a_transport_may_read_its_own_answers_but_not_lose_them() -> None:
    class Reads(httpx.AsyncBaseTransport):
        def __init__(self, read: Callable[[httpx.Response], Awaitable[object]]) -> None:
            self._inner = httpx.AsyncHTTPTransport(verify=TLS)
            self._read = read

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            response = await self._inner.handle_async_request(request)
            await self._read(response)
            return response

        async def aclose(self) -> None:
            await self._inner.aclose()

    async with raw_server(odd_site) as server:
        for target in ("", "gzip", "chunks", "gone"):
            url = server.url + target
            async with client_of() as plain, Reads(reads) as transport:
                wanted = whole(await HttpxFetch(plain)(Job(url)))
                assert whole(await HttpxFetch(transport)(Job(url))) == wanted
            async with client_of(reads, transport=Reads(reads)) as client:
                assert whole(await HttpxFetch(client)(Job(url))) == wanted
        for lost in (reads_half, httpx.Response.aclose):
            async with Reads(lost) as transport:
                with pytest.raises(RuntimeError, match="did not keep it"):
                    await HttpxFetch(transport)(Job(server.url))


# HTTP/2.


@pytest.fixture
def two_tls(authority: Any) -> ssl.SSLContext:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    return tls


@pytest.mark.parametrize("hook", [reads, reads_errors, checks])
async def test_of_pages_by_http_2_each_has_its_own_bytes(
    hook: Hook, two_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    site = {f"/{n}": two.answer(named(n), 404 if n % 5 == 0 else 200) for n in range(60)}
    found: dict[int, Answer] = {}
    async with (
        two.two_server(site, two_tls) as server,
        client_of(hook, http2=True, verify=client_tls) as client,
    ):
        fetch = HttpxFetch(client)

        async def ask(number: int) -> None:
            found[number] = await fetch(Job(f"https://127.0.0.1:{server.port}/{number}"))

        async with trio.open_nursery() as nursery:
            for number in range(60):
                nursery.start_soon(ask, number)
    for number, answer in found.items():
        empty = hook is checks and number % 5 == 0
        assert whole(answer) == (b"" if empty else named(number)), number
    assert server.connections == 1


async def test_a_stream_that_is_reset_is_a_lost_connection(
    two_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    async def resets(talk: two.Talk, stream: int) -> None:
        talk.machine.reset_stream(stream, 2)
        await talk.flush()

    short = two.answer(b"x" * 37, 200, [("content-length", "9999")])
    for site in (resets, short):
        async with (
            two.two_server({"/": site}, two_tls) as server,
            client_of(http2=True, verify=client_tls) as client,
        ):
            answer = await HttpxFetch(client)(Job(f"https://127.0.0.1:{server.port}/"))
        assert isinstance(answer, Fault), answer
        assert answer.reason is Reason.RESET
        assert answer.detail.startswith(f"127.0.0.1:{server.port} ")


# The client's own limits.


@for_each(
    "error, reason, detail",
    [
        (httpx.ConnectTimeout, Reason.CONNECT_TIMEOUT, "over while waiting for the answer of h."),
        (httpx.ReadTimeout, Reason.TIMEOUT, "over while waiting for the answer of h.test"),
        (httpx.PoolTimeout, Reason.NO_SOCKETS, "over: h.test was not asked, since all its conn"),
    ],
)
async def test_a_timeout_of_the_client_is_said_to_be_its_own(
    error: type[httpx.TimeoutException], reason: Reason, detail: str
) -> None:
    def late(request: httpx.Request) -> httpx.Response:
        raise error("")

    answer = await HttpxFetch(httpx.MockTransport(late))(Job("http://h.test/"))
    assert isinstance(answer, Fault)
    assert answer.reason is reason
    assert answer.detail.startswith(f"the HTTP client's own timeout was {detail}")


async def test_a_read_timeout_in_a_body_says_how_much_of_it_had_come() -> None:
    async def stalls(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npage")
        await trio.sleep_forever()

    answer = await asked(stalls, timeout=0.05)
    assert isinstance(answer, Fault)
    assert answer.reason is Reason.TIMEOUT
    assert answer.detail.endswith(", after 4 bytes")


@for_each(
    "error",
    [
        httpx.ConnectError,
        httpx.ReadError,
        httpx.RemoteProtocolError,
        httpx.LocalProtocolError,
        httpx.ProxyError,
        httpx.UnsupportedProtocol,
        httpx.TimeoutException,
        httpx.CloseError,
    ],
)
async def test_an_error_without_a_text_leaves_no_empty_sentence(error: type[Exception]) -> None:
    for text in ("", " ", "\n"):

        def fails(request: httpx.Request, text: str = text) -> httpx.Response:
            raise error(text)

        answer = await HttpxFetch(httpx.MockTransport(fails))(Job("http://h.test/"))
        assert isinstance(answer, Fault)
        assert re.search(r"[a-z]$", answer.detail), answer.detail
        assert "Error" not in answer.detail
