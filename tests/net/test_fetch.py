from __future__ import annotations

import gzip
import random
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack
from functools import partial

import httpx
import pytest
import trio
import trio.testing
from cases import for_each
from sites.over import Wired, over
from sites.raw import (
    Request,
    Server,
    chunked,
    hang_up,
    raw_server,
    redirect,
    reply,
    silence,
)

from trio_crawler.model import Fault, Job, Phase, Reason, Response
from trio_crawler.net.dial.connector import Resolver
from trio_crawler.net.fetch import DEFAULT_USER_AGENT, HttpFetch
from trio_crawler.net.http1.wire import FRAMING_BYTES
from trio_crawler.net.httpx_fetch import HttpxFetch
from trio_crawler.page.urls import normalise
from trio_crawler.policy.answers import is_transient

KIB = 1024
CLIENT = partial(httpx.AsyncClient, trust_env=False)


async def ask(answer: bytes, *, max_bytes: int = 100_000) -> Response | Fault:
    """Fetch one URL from a server that answers with these bytes and closes."""

    async def once(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(answer)
        await stream.aclose()

    options = {"max_bytes": max_bytes, "timeout": 10}
    async with raw_server(once) as server, HttpFetch(seeds=[server.url], **options) as fetch:
        return await fetch(Job(server.url))


def hasty(server: Server) -> HttpFetch:
    """Make a fetch that has little time."""
    return HttpFetch(seeds=[server.url], timeout=0.3)


def gzipped(body: bytes, status: int = 200) -> bytes:
    return reply(status, {"Content-Encoding": "gzip"}, body)


def body_of(answer: Response | Fault) -> bytes:
    assert isinstance(answer, Response), answer
    return answer.body


def flaw_of(answer: Response | Fault) -> Reason | None:
    assert isinstance(answer, Response), answer
    return answer.flaw


def reason_of(answer: Response | Fault) -> Reason:
    assert isinstance(answer, Fault), answer
    assert answer.detail.isprintable()
    return answer.reason


# How a body ends.


async def test_a_page_comes_with_its_status_headers_and_body() -> None:
    answer = await ask(reply(201, {"X-Kind": "page"}, b"hello"))
    assert isinstance(answer, Response)
    assert (answer.status, answer.headers["x-kind"], answer.body) == (201, "page", b"hello")


# What is not valid HTTP.


# Content codings.


# Limits.


@pytest.mark.parametrize(("status", "kind"), [(200, "image/png"), (404, "text/html")])
async def test_an_announced_length_over_the_limit_of_a_body_that_is_not_read_is_not_waited_for(
    status: int, kind: str
) -> None:
    async def announce(request: Request, stream: trio.abc.Stream) -> None:
        fields = {"Content-Length": "1001", "Content-Type": kind}
        await stream.send_all(reply(status, fields))
        await trio.sleep_forever()

    async with (
        raw_server(announce) as server,
        HttpFetch(seeds=[server.url], max_bytes=1000, timeout=60) as fetch,
    ):
        assert flaw_of(await fetch(Job(server.url))) is Reason.TOO_LARGE
        assert fetch.statistics().bytes == 0


@pytest.mark.parametrize("framing", ["close", "chunked"])
async def test_a_body_without_end_is_left_at_the_limit(framing: str) -> None:
    async def flood(request: Request, stream: trio.abc.Stream) -> None:
        head = (
            {"Transfer-Encoding": "chunked"} if framing == "chunked" else {"Connection": "close"}
        )
        start = reply(200, head).replace(b"Content-Length: 0\r\n", b"")
        await stream.send_all(start)
        piece = bytes(100 * KIB)
        while True:
            await stream.send_all(b"19000\r\n%s\r\n" % piece if framing == "chunked" else piece)

    options = {"max_bytes": KIB * KIB}
    async with raw_server(flood) as server, HttpFetch(seeds=[server.url], **options) as fetch:
        assert flaw_of(await fetch(Job(server.url))) is Reason.TOO_LARGE
        assert fetch.statistics().bytes <= (1024 + 256) * KIB
        assert fetch.statistics().wire.open == 0


async def test_an_answer_of_little_in_much_is_left_at_the_limit() -> None:
    async def flood(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            await stream.send_all(b"1;%s\r\na\r\n" % (b"x" * 1000) * 100)

    options = {"max_bytes": 100 * KIB}
    async with raw_server(flood) as server, HttpFetch(seeds=[server.url], **options) as fetch:
        answer = await fetch(Job(server.url))
        assert fetch.statistics().wire.bytes_in <= 100 * KIB + FRAMING_BYTES + 64 * KIB
    assert flaw_of(answer) is Reason.TOO_LARGE
    assert set(body_of(answer)) == {ord("a")}


async def test_plain_http_where_tls_was_meant_is_said_in_plain_words() -> None:
    async def plain(stream: trio.SocketStream) -> None:
        await stream.send_all(reply(400))
        await stream.receive_some()

    async with trio.open_nursery() as nursery:
        serve = partial(trio.serve_tcp, plain, 0, host="127.0.0.1")
        [listener] = await nursery.start(serve)
        port = listener.socket.getsockname()[1]
        url = f"https://127.0.0.1:{port}/"
        async with HttpFetch(seeds=[url]) as fetch:
            answer = await fetch(Job(url))
        nursery.cancel_scope.cancel()
    detail = f"127.0.0.1:{port} does not speak TLS on this port"
    assert answer == Fault(Reason.TLS, detail, Phase.TLS)


async def test_a_deadline_while_tls_is_set_up_says_so_and_passes() -> None:
    # Nobody answers the TLS handshake: the connection is there, and is not.
    async with raw_server(silence) as server, hasty(server) as fetch:
        answer = await fetch(Job(server.url.replace("http:", "https:")))
        assert fetch.statistics().wire.open == 0
    assert reason_of(answer) is Reason.CONNECT_TIMEOUT
    assert "securing the connection" in answer.detail
    assert answer.phase is Phase.TLS
    assert is_transient(answer)


async def test_a_lost_packet_while_connecting_is_asked_again() -> None:
    with ExitStack() as stack:
        # As soon as the queue of a listener is full, Linux drops what comes.
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        async with HttpFetch(seeds=[url], timeout=0.3) as fetch:
            answer = await fetch(Job(url))
    assert reason_of(answer) is Reason.CONNECT_TIMEOUT
    assert "0.3 seconds was over while connecting to 127.0.0.1" in answer.detail
    assert answer.phase is Phase.CONNECT
    assert is_transient(answer)


async def test_a_lookup_that_takes_too_long_is_asked_again() -> None:
    async def never(host: str, port: int) -> list[str]:
        await trio.sleep_forever()
        return []

    async with Wired(resolve=never) as wire:
        answer = await over(wire, timeout=0.1)(Job("http://a.example/"))
    assert reason_of(answer) is Reason.DNS
    assert "looking up the name of a.example" in answer.detail
    assert answer.phase is Phase.RESOLVE
    assert is_transient(answer)


async def test_a_server_that_was_reached_and_says_nothing_is_asked_once_more() -> None:
    async with raw_server(silence) as server, hasty(server) as fetch:
        answer = await fetch(Job(server.url))
    assert reason_of(answer) is Reason.TIMEOUT
    assert is_transient(answer, 1)
    assert not is_transient(answer, 2)


async def test_a_page_that_waits_to_be_decoded_does_not_blame_the_server() -> None:
    page = random.Random(1).randbytes(300_000)
    async with (
        raw_server({"/": gzipped(gzip.compress(page, mtime=0))}) as server,
        Wired(seeds=[server.url]) as wire,
        trio.open_nursery() as nursery,
    ):

        async def decode_all_the_time() -> None:
            async with fetch._slots, fetch._slots:
                await trio.sleep_forever()

        fetch = over(wire, timeout=0.3)
        nursery.start_soon(decode_all_the_time)
        await trio.testing.wait_all_tasks_blocked()
        answer = await fetch(Job(server.url))
        nursery.cancel_scope.cancel()
    assert reason_of(answer) is Reason.TIMEOUT
    assert "while decoding the body of 127.0.0.1" in answer.detail
    assert "in turn with others" in answer.detail


# What is passed in.


@for_each("host", ["LOCALHOST", "127.1", "0x7f.0.0.1", "user:secret@127.0.0.1"])
async def test_a_seed_in_any_spelling_opens_its_address(host: str) -> None:
    async with raw_server({"/": reply(body=b"a")}) as server:
        seeds = [f"http://{host}:{server.port}"]
        async with HttpFetch(seeds=seeds) as fetch:
            answer = await fetch(Job(normalise(seeds[0])))
    assert body_of(answer) == b"a"


async def test_a_deadline_of_the_caller_is_not_taken_for_ours() -> None:
    async with raw_server(silence) as server, HttpFetch(seeds=[server.url]) as fetch:
        with trio.move_on_after(0.1) as scope:
            await fetch(Job(server.url))
            pytest.fail("the cancellation was swallowed")
        assert scope.cancelled_caught
        assert fetch.statistics().wire.open == 0


# Connecting.


async def test_a_port_nobody_listens_on_refuses() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/"
        async with HttpFetch(seeds=[url]) as fetch:
            assert reason_of(await fetch(Job(url))) is Reason.CONNECTION_REFUSED


def no_such_name(name: bytes) -> list[str]:
    """Know no name, as a resolver that was asked would say."""
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


async def test_a_name_that_does_not_exist_has_a_reason_of_its_own() -> None:
    async with Wired(resolve=Resolver(no_such_name)) as wire:
        answer = await over(wire)(Job("http://no-such-host.invalid/"))
    assert answer == Fault(
        Reason.NO_SUCH_HOST, "the name of no-such-host.invalid is not known", Phase.RESOLVE
    )


@pytest.mark.parametrize("host", ["[1::2::3]", "[::ffff:1.2.3]", "1.2.3.4.5.6.example"])
async def test_a_host_that_nobody_can_look_up_is_a_fault(host: str) -> None:
    async with Wired(resolve=Resolver(no_such_name)) as wire:
        assert reason_of(await over(wire)(Job(f"http://{host}/"))) is Reason.NO_SUCH_HOST


async def test_a_very_long_url_is_sent_whole() -> None:
    target = "/" + "x" * 70_000
    async with raw_server({}) as server, HttpFetch(seeds=[server.url]) as fetch:
        answer = await fetch(Job(server.url.removesuffix("/") + target))
    assert isinstance(answer, Response)
    assert (answer.status, server.targets) == (404, [target])


async def test_an_ipv6_address_is_asked_with_its_brackets_in_host() -> None:
    async with (
        raw_server({"/": reply(body=b"six")}, host="::1") as server,
        HttpFetch(seeds=[server.url]) as fetch,
    ):
        assert body_of(await fetch(Job(server.url))) == b"six"
    assert server.requests[0].headers["host"] == f"[::1]:{server.port}"


@for_each(
    "url",
    [
        "ftp://h/",
        "javascript:alert(1)",
        "",
        "http://",
        "http:///",
        "http://user:secret@h/",
        "http://a..b/",
        "http://a\0b/",
        "http://" + "a" * 64 + ".test/",
        "http://127.0.0.1:65536/",
        "http://127.0.0.1:" + "9" * 5000 + "/",
        "http://h/a b",
        "http://h/\n",
        "http://h/\xe9",
        "http://b\xfccher.test/",
        "http://[::1/",
    ],
)
async def test_a_url_that_cannot_be_asked_for_is_a_bad_url(url: str) -> None:
    async with HttpFetch() as fetch:
        assert reason_of(await fetch(Job(url))) is Reason.BAD_URL
        assert fetch.statistics().requests == 0


# Redirects.


async def test_a_redirect_with_an_empty_body_keeps_its_connection() -> None:
    async with raw_server({"/": redirect("/b")}) as server, HttpFetch(seeds=[server.url]) as fetch:
        await fetch(Job(server.url))
        await fetch(Job(server.url))
    assert (len(server.requests), server.connections) == (2, 1)


async def test_a_redirect_status_that_leads_nowhere_is_read() -> None:
    assert body_of(await ask(reply(302, body=b"where to?"))) == b"where to?"


# What is sent.


@for_each(
    "target",
    ["/", "/?", "/a|b[c]{d}^e", "/%7e/%2F?q=a%20b&c='\"", "//double//slash", "/a?b?c", "/;p=1/@:"],
)
async def test_path_and_query_are_sent_byte_for_byte(target: str) -> None:
    async with raw_server({}) as server, HttpFetch(seeds=[server.url]) as fetch:
        await fetch(Job(server.url.removesuffix("/") + target))
    assert server.targets == [target]


async def test_a_fragment_is_not_sent() -> None:
    async with raw_server({}) as server, HttpFetch(seeds=[server.url]) as fetch:
        await fetch(Job(server.url + "a#b?c"))
    assert server.targets == ["/a"]


async def test_the_request_says_who_asks_and_what_can_be_read() -> None:
    async with raw_server({}) as server, HttpFetch(seeds=[server.url]) as fetch:
        await fetch(Job(server.url))
    sent = server.requests[0].headers
    assert sent["user-agent"] == DEFAULT_USER_AGENT
    assert sent["accept-encoding"] == "gzip, deflate, br, zstd"
    assert sent["accept"].startswith("text/html")
    assert sent["host"] == f"127.0.0.1:{server.port}"


async def test_headers_of_the_user_replace_the_defaults_and_may_come_twice() -> None:
    own = [("user-agent", "mine"), ("Cookie", "a=1"), ("Cookie", "b=2"), ("X-Name", "K\xf6ln")]
    async with raw_server({}) as server, HttpFetch(seeds=[server.url], headers=own) as fetch:
        await fetch(Job(server.url))
    head = server.requests[0].head
    assert head.lower().count(b"user-agent") == 1
    assert b"user-agent: mine\r\n" in head
    assert b"Cookie: a=1\r\nCookie: b=2\r\nX-Name: K\xc3\xb6ln\r\n" in head


async def test_headers_of_the_user_go_only_to_their_origins() -> None:
    own = {"Authorization": "Basic c2VjcmV0", "User-Agent": "mine"}
    async with raw_server({}) as home, raw_server({}) as away:
        allowed = ["127.0.0.1"]
        async with HttpFetch(
            seeds=[home.url], headers=own, user_agent="us", allow_private=allowed
        ) as fetch:
            for server in (home, away):
                await fetch(Job(server.url + "page"))
    assert home.requests[0].headers["authorization"] == "Basic c2VjcmV0"
    assert home.requests[0].headers["user-agent"] == "mine"
    assert b"c2VjcmV0" not in away.requests[0].head
    assert away.requests[0].headers["user-agent"] == "us"


async def test_no_headers_of_the_user_go_to_a_name_that_only_begins_like_the_origin() -> None:
    seen: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200)

    urls = ["http://h.test.evil/", "http://h.test:81/", "https://h.test/", "http://h.test/"]
    own = {"X-Secret": "1"}
    fetch = HttpxFetch(httpx.MockTransport(handler), headers=own, seeds=["http://h.test/a"])
    for url in urls:
        await fetch(Job(url))
    assert ["x-secret" in request.headers for request in seen] == [False, False, False, True]


# Transports and clients of the caller's.


async def test_a_short_body_of_any_transport_is_incomplete() -> None:
    def short(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"Content-Length": "9"}, content=b"short")

    fetch = HttpxFetch(httpx.MockTransport(short))
    assert reason_of(await fetch(Job("http://h.test/"))) is Reason.INCOMPLETE


async def test_a_length_of_a_transport_that_is_no_number_is_a_bad_reply() -> None:
    def odd(request: httpx.Request) -> httpx.Response:
        headers = [(b"Content-Length", "\u0663".encode())]
        return httpx.Response(200, headers=headers, stream=Pieces(b"x"))

    fetch = HttpxFetch(httpx.MockTransport(odd))
    assert reason_of(await fetch(Job("http://h.test/"))) is Reason.BAD_REPLY


async def test_a_response_with_a_bad_head_is_closed() -> None:
    pieces = Pieces(b"x")

    def odd(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"Content-Length": "-1"}, stream=pieces)

    fetch = HttpxFetch(httpx.MockTransport(odd))
    assert reason_of(await fetch(Job("http://h.test/"))) is Reason.BAD_REPLY
    assert pieces.closed


@pytest.mark.parametrize("bug", [TypeError, KeyError, httpx.StreamConsumed])
async def test_a_bug_in_a_transport_is_raised(bug: type[Exception]) -> None:
    error = bug() if bug is httpx.StreamConsumed else bug("a bug")

    def handler(request: httpx.Request) -> httpx.Response:
        raise error

    with pytest.raises(bug):
        await HttpxFetch(httpx.MockTransport(handler))(Job("http://h.test/"))


class Pieces(httpx.AsyncByteStream):
    """Give the same piece for ever, and note that it was closed."""

    def __init__(self, piece: bytes, times: int = 1) -> None:
        self._piece = piece
        self._times = times
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for _ in range(self._times):
            yield self._piece

    async def aclose(self) -> None:
        self.closed = True


async def test_a_body_that_is_left_early_is_closed_without_a_trace() -> None:
    pieces = Pieces(b"x" * 1000, 10**9)
    transport = httpx.MockTransport(lambda request: httpx.Response(200, stream=pieces))
    fetch = HttpxFetch(transport, max_bytes=5000)
    assert flaw_of(await fetch(Job("http://h.test/"))) is Reason.TOO_LARGE
    assert pieces.closed


async def test_a_client_brings_its_headers_cookies_and_authentication() -> None:
    client = httpx.AsyncClient(
        headers={"X-Own": "1", "User-Agent": "the client's"},
        cookies={"c": "2"},
        auth=("u", "p"),
        trust_env=False,
    )
    async with raw_server({}) as server, client:
        await HttpxFetch(client)(Job(server.url + "a|b"))
    sent = server.requests[0].headers
    assert (sent["x-own"], sent["cookie"], sent["authorization"]) == ("1", "c=2", "Basic dTpw")
    assert sent["user-agent"] == "the client's"
    assert sent["accept-encoding"] == "gzip, deflate, br, zstd"
    assert server.targets == ["/a|b"]


async def test_a_plain_client_asks_in_our_name() -> None:
    async with raw_server({}) as server, CLIENT() as client:
        await HttpxFetch(client)(Job(server.url))
        await HttpxFetch(client, user_agent="us")(Job(server.url))
    agents = [request.headers["user-agent"] for request in server.requests]
    assert agents == [DEFAULT_USER_AGENT, "us"]


@for_each("target", ["javascript:alert(1)", "http://xn--a/", "/next", "http://[", ""])
async def test_a_client_gives_redirects_back_wherever_they_lead(target: str) -> None:
    client = CLIENT(follow_redirects=True)
    async with raw_server({"/": redirect(target)}) as server, client:
        answer = await HttpxFetch(client)(Job(server.url))
    assert isinstance(answer, Response)
    assert (answer.status, answer.headers["location"]) == (302, target)
    assert server.targets == ["/"]


async def test_a_client_keeps_its_own_timeouts() -> None:
    async with raw_server(silence) as server, CLIENT(timeout=0.1) as client:
        answer = await HttpxFetch(client)(Job(server.url))
    assert reason_of(answer) is Reason.TIMEOUT


async def test_a_body_of_a_client_that_is_too_large_leaves_nothing_open() -> None:
    site = {"/": reply(200, {"Transfer-Encoding": "chunked"}, chunked(*[b"x" * 5000] * 200))}
    async with raw_server(site) as server, CLIENT() as client:
        fetch = HttpxFetch(client, max_bytes=50_000)
        assert flaw_of(await fetch(Job(server.url))) is Reason.TOO_LARGE
        assert not client._transport._pool.connections


async def test_the_bytes_and_requests_are_counted_as_sent() -> None:
    page = gzip.compress(b"page" * 1000, mtime=0)
    site = {"/": gzipped(page), "/gone": hang_up}
    async with raw_server(site) as server, HttpFetch(seeds=[server.url]) as fetch:
        for path in ("", "gone", ""):
            await fetch(Job(server.url + path))
        figures = fetch.statistics()
    assert (figures.requests, figures.bytes) == (3, 2 * len(page))


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_port_0_is_asked_and_named(scheme: str) -> None:
    url = f"{scheme}://127.0.0.1:0/"
    async with HttpFetch(seeds=[url]) as fetch:
        answer = await fetch(Job(url))
        assert isinstance(answer, Fault)
        assert answer.detail.startswith("127.0.0.1:0 ")
