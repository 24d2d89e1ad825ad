"""HTTP/2 over our own streams: none is lost because of another, and every cost is bounded."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from sites.left import sockets
from sites.over import Wired, home, over, requests
from sites.raw import Request, raw_server, tunnel
from sites.socks import socks_server
from sites.steps import cancelled_at, until

from trio_crawler.model import Fault, Job, Phase, Reason, Response
from trio_crawler.net.errors import FetchError
from trio_crawler.net.fetch import WireAdapter
from trio_crawler.net.fetcher import Fetcher
from trio_crawler.net.http1.wire import FRAMING_BYTES
from trio_crawler.net.tls import Security
from trio_crawler.net.turn import TURN, Pace, Progress, Turn
from trio_crawler.policy.host_load import HostLoad
from trio_crawler.policy.settings import Politeness

pytest.importorskip("h2")
trustme = pytest.importorskip("trustme")
two = pytest.importorskip("sites.two")

from h2.errors import ErrorCodes  # noqa: E402
from hpack import Encoder, NeverIndexedHeaderTuple  # noqa: E402

from trio_crawler.net.http2.connection import MAX_STREAMS, WINDOW  # noqa: E402
from trio_crawler.net.http2.stream import BLOCK_BYTES, block_of, code_name  # noqa: E402
from trio_crawler.net.http2.wire import ALONE_AFTER, Http2Wire  # noqa: E402

LEAVES = [f"leaf{number}" for number in range(40)]
GOOD = {f"/{leaf}": two.answer(leaf.encode() * 50) for leaf in LEAVES}


class Asked:
    """A server, and a fetch that asks it by HTTP/2."""

    def __init__(self, server: Any, wire: Http2Wire, fetch: Fetcher, base: str = "") -> None:
        self.server = server
        self.wire = wire
        self.fetch = fetch
        self.base = base or server.url

    async def one(self, path: str = "") -> Response | Fault:
        with trio.fail_after(30):
            return await self.fetch(Job(self.base + path))

    async def body(self, path: str = "") -> bytes:
        answer = await self.one(path)
        assert isinstance(answer, Response), answer
        return answer.body

    async def fault(self, path: str = "") -> Fault:
        answer = await self.one(path)
        assert isinstance(answer, Fault), answer
        assert answer.detail.isprintable()
        assert "<" not in answer.detail
        return answer

    async def all(self, paths: Sequence[str], at_once: int = 8) -> dict[str, Response | Fault]:
        """Ask for some paths, a few at a time."""
        answers: dict[str, Response | Fault] = {}
        left = iter(paths)

        async def work() -> None:
            for path in left:
                answers[path] = await self.one(path)

        async with trio.open_nursery() as nursery:
            for _ in range(at_once):
                nursery.start_soon(work)
        return answers

    async def assert_good(self, beside: Sequence[str] = (), at_once: int = 8) -> dict[str, Any]:
        """Ask for every good page, beside others; return the answers of the others."""
        mixed = [*LEAVES]
        for place, path in enumerate(beside):
            mixed.insert(place * 5, path)
        answers = await self.all(mixed, at_once)
        for leaf in LEAVES:
            answer = answers.pop(leaf)
            assert isinstance(answer, Response), (leaf, answer)
            assert answer.body == leaf.encode() * 50
        return answers


Asking = Callable[..., Any]


@pytest.fixture
def asking(server_tls: ssl.SSLContext, client_tls: ssl.SSLContext) -> Asking:
    @asynccontextmanager
    async def opened(
        site: Mapping[str, Any],
        *,
        one: bytes = b"",
        greet: Any = None,
        limits: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> AsyncIterator[Asked]:
        async with two.two_server(site, server_tls, one=one, greet=greet) as server:
            security = Security(client_tls)
            wire = Wired(allow_private=["127.0.0.1"], security=security, resolve=home)
            http2 = Http2Wire(wire, **options)
            bounds = {"timeout": 20, **(limits or {})}
            try:
                yield Asked(server, http2, over(WireAdapter(requests(), http2), **bounds))
            finally:
                await http2.aclose()
            await until(lambda: server.open == 0)

    return opened


# The usual.


async def test_a_hundred_requests_together_share_one_connection(asking: Asking) -> None:
    async with asking(GOOD) as asked:
        await asked.assert_good(at_once=40)
        figures = asked.wire.statistics()
    assert asked.server.connections == 1
    assert (figures.made, figures.reused, figures.retried) == (1, 39, 0)
    assert (figures.open, figures.idle) == (1, 1)


async def test_a_body_larger_than_every_window_arrives_whole(asking: Asking) -> None:
    large = bytes(range(256)) * 20_000
    assert len(large) > WINDOW
    async with asking({"/large": two.answer(large)} | GOOD) as asked:
        answers = await asked.assert_good(["large", "large"][:1])
    assert answers["large"].body == large


async def test_interim_answers_and_trailers_are_not_the_answer(asking: Asking) -> None:
    async def odd(talk: Any, number: int) -> None:
        for _ in range(8):
            talk.machine.send_headers(number, [(":status", "103"), ("link", "</a>")])
        talk.machine.send_headers(number, [(":status", "200")])
        talk.machine.send_data(number, b"body")
        talk.machine.send_headers(number, [("x-sum", "1")], end_stream=True)

    async with asking({"/": odd} | GOOD) as asked:
        assert await asked.body() == b"body"
        await asked.assert_good()
    assert asked.server.connections == 1


@pytest.mark.parametrize("status", [204, 304])
@pytest.mark.parametrize("ends", ["head", "data", "never"])
async def test_an_answer_without_a_body_may_state_a_length(
    asking: Asking, status: int, ends: str
) -> None:
    async def odd(talk: Any, number: int) -> None:
        block = Encoder().encode([(":status", str(status)), ("content-length", "9999")])
        await talk.send(two.frame(1, block, 0x5 if ends == "head" else 0x4, number))
        if ends == "data":
            await talk.send(two.frame(0, b"", 0x1, number))

    async with asking({"/": odd} | GOOD) as asked:
        answer = await asked.one()
        await asked.assert_good()
    assert isinstance(answer, Response)
    assert (answer.status, answer.body) == (status, b"")
    assert asked.server.connections == 1


async def test_padding_and_unknown_frames_are_nothing(asking: Asking) -> None:
    async def odd(talk: Any, number: int) -> None:
        talk.machine.send_headers(number, [(":status", "200"), ("content-length", "8")])
        await talk.send(two.frame(0xBE, b"grease", 0xFF, number))
        for _ in range(2):
            talk.machine.send_data(number, b"body", pad_length=200)
        talk.machine.end_stream(number)

    async with asking({"/": odd} | GOOD) as asked:
        for _ in range(20):
            assert await asked.body() == b"bodybody"
    assert asked.server.connections == 1


def test_passwords_and_cookies_are_in_no_table_of_the_compressor() -> None:
    request = b"GET /a?b HTTP/1.1\r\nHost: h.test:81\r\nConnection: close\r\nTE: trailers\r\n"
    secret = b"Authorization: Basic eA==\r\nCookie: a=b\r\nX-A: c: d\r\n\r\n"
    block = block_of(request + secret)
    assert block == [
        *((b":method", b"GET"), (b":authority", b"h.test:81")),
        *((b":scheme", b"https"), (b":path", b"/a?b")),
        *((b"authorization", b"Basic eA=="), (b"cookie", b"a=b"), (b"x-a", b"c: d")),
    ]
    hidden = {name for name, _ in (f for f in block if isinstance(f, NeverIndexedHeaderTuple))}
    assert hidden == {b"authorization", b"cookie"}


# What the server did not process is asked again, at once and uncounted.


def ending_after(count: int) -> Any:
    """Answer so many requests of a connection, and refuse the others by GOAWAY, as nginx does."""

    async def odd(talk: Any, number: int) -> None:
        last = 2 * count - 1
        if number > last:
            return
        talk.machine.send_headers(number, [(":status", "200")])
        path = talk.server.requests[-1][":path"]
        if number == last:
            payload = last.to_bytes(4) + bytes(4)
            await talk.send(two.frame(7, payload))
        talk.machine.send_data(number, path[1:].encode() * 50, end_stream=True)

    return odd


@pytest.mark.parametrize("count", [1, 3, 10])
@pytest.mark.parametrize("at_once", [1, 4, 40])
async def test_what_a_goaway_accepts_is_answered_and_the_rest_asked_again(
    asking: Asking, count: int, at_once: int
) -> None:
    odd = ending_after(count)
    async with asking(dict.fromkeys(GOOD, odd)) as asked:
        await asked.assert_good(at_once=at_once)
        figures = asked.wire.statistics()
    needed = -(-len(LEAVES) // count)
    assert needed <= asked.server.connections
    assert figures.retried <= 5 * len(LEAVES)


@pytest.mark.parametrize("code", [ErrorCodes.REFUSED_STREAM])
@pytest.mark.parametrize("times", [1, 3])
async def test_a_refused_stream_is_asked_again_at_once(
    asking: Asking, code: int, times: int
) -> None:
    async def odd(talk: Any, number: int) -> None:
        if talk.server.paths.count("/") <= times:
            talk.machine.reset_stream(number, code)
            return
        talk.machine.send_headers(number, [(":status", "200")], end_stream=True)

    async with asking({"/": odd} | GOOD) as asked:
        answers = await asked.assert_good([""])
    assert answers[""].status == 200
    assert asked.server.paths.count("/") == times + 1


async def test_a_stream_that_is_always_refused_ends_as_a_fault(asking: Asking) -> None:
    async def odd(talk: Any, number: int) -> None:
        talk.machine.reset_stream(number, ErrorCodes.REFUSED_STREAM)

    async with asking({"/": odd} | GOOD) as asked:
        answers = await asked.assert_good([""])
    assert answers[""].reason is Reason.RESET
    assert answers[""].detail.endswith("refused the request: REFUSED_STREAM (HTTP/2)")
    assert asked.server.paths.count("/") < 10


@pytest.mark.parametrize("by", ["stream", "goaway"])
async def test_a_request_that_needs_http_1_1_is_asked_by_it(asking: Asking, by: str) -> None:
    async def odd(talk: Any, number: int) -> None:
        if by == "stream":
            talk.machine.reset_stream(number, ErrorCodes.HTTP_1_1_REQUIRED)
        else:
            code = ErrorCodes.HTTP_1_1_REQUIRED.to_bytes(4)
            await talk.send(two.frame(7, (number - 2 if number > 2 else 0).to_bytes(4) + code))

    one = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none"
    async with asking({"/": odd} | GOOD, one=one) as asked:
        assert await asked.body("leaf1") == b"leaf1" * 50
        assert await asked.body() == b"one"
        assert await asked.body("leaf2") == b"leaf2" * 50
    assert len(asked.server.one) == 1
    assert asked.server.one[0].startswith(b"GET / HTTP/1.1\r\n")


async def test_a_server_without_http_2_is_asked_over_the_connection_that_showed_it(
    asking: Asking, server_tls: ssl.SSLContext
) -> None:
    one = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none"

    async def greet(talk: Any) -> None:
        raise AssertionError("HTTP/2 was chosen")

    async with asking({}, one=one, greet=greet) as asked:
        server_tls.set_alpn_protocols(["http/1.1"])
        for _ in range(3):
            assert await asked.body() == b"one"
        figures = asked.wire.statistics()
    assert asked.server.connections == 1
    assert (figures.made, figures.reused) == (1, 2)


async def test_an_idle_connection_that_has_ended_is_not_used(asking: Asking) -> None:
    talks = []

    async def odd(talk: Any, number: int) -> None:
        talks.append(talk)
        talk.machine.send_headers(number, [(":status", "200")], end_stream=True)

    for ends in ("goaway", "close", "both"):
        async with asking({"/": odd}) as asked:
            await asked.one()
            await trio.testing.wait_all_tasks_blocked(0.01)
            if ends != "close":
                await talks[-1].send(two.frame(7, (1).to_bytes(4) + bytes(4)))
            if ends != "goaway":
                await talks[-1].stream.transport_stream.aclose()
                await until(lambda: asked.server.open == 0)
            await trio.testing.wait_all_tasks_blocked(0.01)
            await asked.body()
            figures = asked.wire.statistics()
        assert asked.server.connections == 2
        assert figures.retried == 0


async def test_a_connection_that_ends_as_it_is_used_again_loses_nothing(asking: Asking) -> None:
    async def odd(talk: Any, number: int) -> None:
        if number == 3:
            await talk.stream.transport_stream.aclose()
            raise trio.ClosedResourceError
        talk.machine.send_headers(number, [(":status", "200")], end_stream=True)

    async with asking({"/": odd}) as asked:
        for _ in range(4):
            await asked.body()
    assert asked.server.connections == 4


# One bad response is not the response of its neighbours.


def huge_head(size: int) -> Any:
    async def odd(talk: Any, number: int) -> None:
        # Not by the machine of the server, whose compression takes seconds for this.
        head = [(":status", "200"), ("x-large", "x" * size)]
        block = Encoder().encode(head, huffman=False)
        pieces = [block[start : start + 16_384] for start in range(0, len(block), 16_384)]
        frames = [
            two.frame(9 if place else 1, piece, 0, number) for place, piece in enumerate(pieces)
        ]
        await talk.send(*frames[:-1], two.frame(9, pieces[-1], 0x4, number))
        await talk.send(two.frame(0, b"", 0x1, number))

    return odd


async def bad_settings(talk: Any, number: int) -> None:
    """Break a rule that concerns the connection as a whole."""
    await talk.send(two.frame(4, b"abc"))


async def overlong(talk: Any, number: int) -> None:
    """Send a frame that is larger than allowed."""
    talk.machine.send_headers(number, [(":status", "200")])
    await talk.send(two.frame(0, bytes(20_000), 0, number))


async def garbage(talk: Any, number: int) -> None:
    """Send a header block that cannot be decompressed."""
    await talk.send(two.frame(1, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff", 0x4, number))


async def unasked(talk: Any, number: int) -> None:
    """Push a page that is not wanted."""
    block = Encoder().encode([(":method", "GET"), (":path", "/x")])
    await talk.send(two.frame(5, (2).to_bytes(4) + block, 0x4, number))


BAD = {
    "huge": huge_head(320_000),
    "settings": bad_settings,
    "overlong": overlong,
    "garbage": garbage,
    "push": unasked,
    "gone": two.hang_up,
    "cut": two.cut_after(b"short"),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("at_once", [2, 40])
async def test_a_page_that_breaks_the_connection_is_the_only_one_that_fails(
    asking: Asking, bad: str, at_once: int
) -> None:
    async with asking({"/bad": BAD[bad]} | GOOD) as asked:
        answers = await asked.assert_good(["bad"], at_once)
        await asked.assert_good(at_once=at_once)
        figures = asked.wire.statistics()
    fault = answers["bad"]
    assert isinstance(fault, Fault)
    assert fault.reason in (Reason.BAD_REPLY, Reason.RESET, Reason.INCOMPLETE)
    assert fault.detail.isprintable()
    assert figures.retried <= (ALONE_AFTER + 1) * at_once


@pytest.mark.parametrize("size", [70_000, 100_000, 320_000])
async def test_a_head_that_is_too_large_is_said_to_be(asking: Asking, size: int) -> None:
    async with asking({"/": huge_head(size)} | GOOD) as asked:
        answers = await asked.assert_good([""])
    assert answers[""].reason is Reason.BAD_REPLY
    assert "header" in answers[""].detail
    # Only what is beyond every bound ends the connection.
    assert (asked.server.connections == 1) is (size < BLOCK_BYTES)


@pytest.mark.parametrize(
    ("sent", "stated", "reason", "detail"),
    [
        (37, 9999, Reason.INCOMPLETE, "37 of 9999 bytes of the body came"),
        (0, 10, Reason.INCOMPLETE, "0 of 10 bytes of the body came"),
        (37, 10, Reason.BAD_REPLY, "the body has more than the 10 bytes of its Content-Length"),
    ],
)
async def test_a_wrong_length_concerns_its_own_page_only(
    asking: Asking, sent: int, stated: int, reason: Reason, detail: str
) -> None:
    async def odd(talk: Any, number: int) -> None:
        block = Encoder().encode([(":status", "200"), ("content-length", str(stated))])
        await talk.send(two.frame(1, block, 0x4, number))
        await talk.send(two.frame(0, b"x" * sent, 0x1, number))

    async with asking({"/": odd} | GOOD) as asked:
        answers = await asked.assert_good([""])
    assert (answers[""].reason, answers[""].detail) == (reason, detail)
    assert asked.server.connections == 1


@pytest.mark.parametrize("by", ["trailers", "head"])
async def test_a_body_that_ends_before_its_length_is_incomplete_however_it_ends(
    asking: Asking, by: str
) -> None:
    async def odd(talk: Any, number: int) -> None:
        block = Encoder().encode([(":status", "200"), ("content-length", "100")])
        await talk.send(two.frame(1, block, 0x5 if by == "head" else 0x4, number))
        if by == "trailers":
            await talk.send(two.frame(0, b"x" * 37, 0, number))
            await talk.send(two.frame(1, Encoder().encode([("x-sum", "1")]), 0x5, number))

    async with asking({"/": odd} | GOOD) as asked:
        answers = await asked.assert_good([""])
    came = 37 if by == "trailers" else 0
    assert answers[""].reason is Reason.INCOMPLETE
    assert answers[""].detail == f"{came} of 100 bytes of the body came"
    assert asked.server.connections == 1


async def test_a_goaway_that_is_no_goodbye_has_its_name(asking: Asking) -> None:
    async def odd(talk: Any, number: int) -> None:
        await talk.send(
            two.frame(7, number.to_bytes(4) + ErrorCodes.ENHANCE_YOUR_CALM.to_bytes(4))
        )
        await talk.stream.transport_stream.aclose()
        raise trio.ClosedResourceError

    async with asking({"/": odd} | GOOD) as asked:
        answers = await asked.assert_good([""])
    assert answers[""].reason is Reason.RESET
    assert answers[""].detail.endswith("ended the connection: ENHANCE_YOUR_CALM (HTTP/2)")


@pytest.mark.parametrize(
    "block",
    [
        *([], [(":status", "abc")], [(":status", "200"), (":status", "200")]),
        *([(":status", "200"), (":path", "/")], [(":status", "200"), ("a b", "c")]),
        *([(":status", "200"), ("a", "b\r\nc: d")], [(":status", "200"), ("a", "b\0")]),
        [(":status", "101")],
        [("a", "b"), (":status", "103")],
        [(":status", "200"), *[(f"x{number}", "y") for number in range(300)]],
    ],
)
async def test_a_head_that_means_nothing_concerns_its_own_page_only(
    asking: Asking, block: list[tuple[str, str]]
) -> None:
    async def odd(talk: Any, number: int) -> None:
        encoder = Encoder()
        encoder.header_table_size = 0
        await talk.send(two.frame(1, encoder.encode(block), 0x4, number))

    async with asking({"/": odd} | GOOD) as asked:
        answers = await asked.assert_good([""])
    assert answers[""].reason is Reason.BAD_REPLY
    assert answers[""].phase is Phase.WAIT


async def test_names_in_upper_case_are_read(asking: Asking) -> None:
    async def odd(talk: Any, number: int) -> None:
        encoder = Encoder()
        encoder.header_table_size = 0
        block = encoder.encode([(":status", "200"), ("Content-Type", "text/html")])
        await talk.send(two.frame(1, block, 0x5, number))

    async with asking({"/": odd}) as asked:
        answer = await asked.one()
    assert isinstance(answer, Response)
    assert answer.headers["content-type"] == "text/html"


def test_each_error_code_has_its_name() -> None:
    assert [code_name(code) for code in ErrorCodes] == [code.name for code in ErrorCodes]


@pytest.mark.parametrize(
    "code", [ErrorCodes.INTERNAL_ERROR, ErrorCodes.CANCEL, ErrorCodes.HTTP_1_1_REQUIRED, 0x77]
)
@pytest.mark.parametrize("begun", [False, True])
async def test_a_stream_that_is_reset_is_a_fault_that_names_the_error(
    asking: Asking, code: int, begun: bool
) -> None:
    async def odd(talk: Any, number: int) -> None:
        if begun:
            talk.machine.send_headers(number, [(":status", "200")])
            talk.machine.send_data(number, b"abc")
        talk.machine.reset_stream(number, code)

    one = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none"
    async with asking({"/": odd} | GOOD, one=one) as asked:
        answer = (await asked.assert_good([""]))[""]
    if code == ErrorCodes.HTTP_1_1_REQUIRED:
        assert answer.body == b"one"
        return
    assert answer.reason is Reason.RESET
    assert code_name(code) in answer.detail
    assert answer.detail.endswith("(HTTP/2)")


async def test_what_a_server_said_before_it_closed_is_read(asking: Asking) -> None:
    async def odd(talk: Any, number: int) -> None:
        if number > 1:
            return
        talk.machine.send_headers(number, [(":status", "200")])
        talk.machine.send_data(number, b"said", end_stream=True)
        await talk.send(two.frame(7, (1).to_bytes(4) + bytes(4)))
        await talk.stream.transport_stream.aclose()
        raise trio.ClosedResourceError

    async with asking({"/": odd}) as asked:
        origin = ("https", "127.0.0.1", asked.server.port)
        request = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        source, head, _ = await asked.wire.ask(origin, request, Progress("h.test"), 10**6)
        await until(lambda: asked.server.open == 0)
        # Nothing of this arrives at the server.
        for _ in range(3):
            assert await asked.body() == b"said"
        assert (head.status, await source.read()) == (200, b"said")
        asked.wire.release(source)


# Certificates of the client, and proxies.


@pytest.fixture
def files(authority: trustme.CA, tmp_path: Path) -> tuple[Path, Path]:
    """The files of the authority, and of a certificate of a client with its key."""
    own = authority.issue_cert("me@example.org")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    own.private_key_and_cert_chain_pem.write_to_path(tmp_path / "me.pem")
    return tmp_path / "ca.pem", tmp_path / "me.pem"


@pytest.mark.parametrize("kind", ["http", "socks5h"])
async def test_through_a_proxy_none_is_lost_either(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext, kind: str
) -> None:
    odd = ending_after(3)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(
            two.two_server(dict.fromkeys(GOOD, odd), server_tls)
        )
        url = await stack.enter_async_context(proxied(kind, server.port))
        http2 = Http2Wire(Wired(security=Security(client_tls), proxy=url))
        stack.push_async_callback(http2.aclose)
        fetch = over(WireAdapter(requests(), http2), timeout=20)
        asked = Asked(server, http2, fetch, "https://h.test/")
        await asked.assert_good()
    assert len(LEAVES) / 3 <= server.connections <= len(LEAVES) / 3 + 5


@asynccontextmanager
async def proxied(kind: str, port: int) -> AsyncIterator[str]:
    """A proxy that connects to one port of this machine, whatever it is asked for."""
    if kind == "http":

        async def through(request: Request, stream: trio.abc.Stream) -> None:
            await tunnel(stream, port)

        async with raw_server(through) as proxy:
            yield proxy.url
        return
    async with socks_server(port) as socks:
        yield f"socks5h://127.0.0.1:{socks.port}"


# Bounds.


def repeated(unit: Callable[[int], bytes], *, begun: bool = False, over: bool = False) -> Any:
    """Send frames without end: at once, after the head, or after the end of the response."""

    async def odd(talk: Any, number: int) -> None:
        if begun or over:
            talk.machine.send_headers(number, [(":status", "200")], end_stream=over)
        piece = unit(number) * 500
        while True:
            await talk.send(piece)

    return odd


def _setting(number: int) -> bytes:
    return two.frame(4, (4).to_bytes(2) + (70_000).to_bytes(4))


FLOODS = {
    "ping": repeated(lambda number: two.frame(6, bytes(8))),
    "settings": repeated(_setting),
    "window": repeated(lambda number: two.frame(8, (1).to_bytes(4))),
    "priority": repeated(lambda number: two.frame(2, bytes(5), 0, number)),
    "unknown": repeated(lambda number: two.frame(0xFA, b"x" * 100)),
    "goaway": repeated(lambda number: two.frame(7, (2**31 - 1).to_bytes(4) + bytes(4))),
    "empty data": repeated(lambda number: two.frame(0, b"", 0, number), begun=True),
    "padding": repeated(lambda number: two.frame(0, b"\x00", 0x8, number), begun=True),
    "small data": repeated(lambda number: two.frame(0, b"x", 0, number), begun=True),
    "interim": repeated(lambda number: two.frame(1, b"\x08\x03103", 0x4, number)),
    "continuation": repeated(lambda number: two.frame(9, b"\x00", 0, number)),
    "reset": repeated(lambda number: two.frame(3, bytes(4), 0, 2)),
    "late data": repeated(lambda number: two.frame(0, b"x", 0, number), over=True),
}


DEAR = {"padding", "small data"}
"""The floods that take two CPU seconds each."""


@pytest.mark.parametrize(
    "flood", [pytest.param(each, marks=[pytest.mark.slow] * (each in DEAR)) for each in FLOODS]
)
async def test_a_flood_of_frames_ends_at_a_bound(asking: Asking, flood: str) -> None:
    async def ticking() -> None:
        while True:
            await trio.lowlevel.checkpoint()

    limits = {"max_bytes": 50_000, "timeout": 15}
    async with asking({"/flood": FLOODS[flood]} | GOOD, limits=limits) as asked:
        answers = await asked.assert_good(["flood"])
        figures = asked.wire.statistics()
    answer = answers["flood"]
    if isinstance(answer, Response):
        assert answer.flaw is (None if flood == "late data" else Reason.TOO_LARGE)
    else:
        assert answer.reason in (Reason.BAD_REPLY, Reason.RESET, Reason.TOO_LARGE)
    assert figures.bytes_in < 20 * (50_000 + FRAMING_BYTES)


async def test_a_flood_on_an_idle_connection_holds_no_other_task(asking: Asking) -> None:
    flooding = trio.Event()

    async def odd(talk: Any, number: int) -> None:
        talk.machine.send_headers(number, [(":status", "200")], end_stream=True)
        await talk.flush()
        while True:
            await talk.send(two.frame(0, b"x", 0, number) * 500)
            flooding.set()

    async with asking({"/": odd} | GOOD) as asked:
        await asked.body()
        await flooding.wait()
        await asked.assert_good()
    assert asked.server.connections == 2


async def test_padding_alone_does_not_use_up_the_window(asking: Asking) -> None:
    async def odd(talk: Any, number: int) -> None:
        talk.machine.send_headers(number, [(":status", "200")])
        for left in range(WINDOW * 2, -1, -256):
            while talk.machine.local_flow_control_window(number) < 256:
                await talk.flush()
                talk.machine.receive_data(bytes(await talk.stream.receive_some()))
            if left:
                talk.machine.send_data(number, b"", pad_length=255)
        talk.machine.send_data(number, b"body", end_stream=True)

    async with asking({"/": odd}) as asked:
        assert await asked.body() == b"body"


async def test_a_block_that_unpacks_to_megabytes_ends_at_a_bound(asking: Asking) -> None:
    async def odd(talk: Any, number: int) -> None:
        encoder = Encoder()
        block = encoder.encode([(":status", "200"), ("x-bomb", "x" * 3_900)])
        # Each byte stands for the whole line.
        await talk.send(two.frame(1, block + b"\xbe" * 12_000, 0x5, number))

    async with asking({"/": odd} | GOOD) as asked:
        answers = await asked.assert_good([""])
    assert answers[""].reason is Reason.BAD_REPLY
    assert "header" in answers[""].detail


async def test_a_body_that_is_left_is_refused_and_its_connection_kept(asking: Asking) -> None:
    image = two.answer(bytes(30_000_000), headers=[("content-type", "image/png")])
    limits = {"bodies": False}
    async with asking({"/image": image} | GOOD, limits=limits) as asked:
        for _ in range(10):
            left = await asked.one("image")
            assert isinstance(left, Response)
            assert (left.body, left.flaw) == (b"", Reason.NOT_READ)
            assert await asked.body("leaf1") == b"leaf1" * 50
        figures = asked.wire.statistics()
    assert {code for _, code in asked.server.resets} == {ErrorCodes.CANCEL}
    assert len(asked.server.resets) == 10
    assert asked.server.connections == 1
    assert figures.bytes_in < 10 * (WINDOW + 20_000)


async def test_responses_that_nobody_reads_keep_no_other_from_coming(asking: Asking) -> None:
    large = two.answer(bytes(WINDOW * 3))
    async with asking({"/large": large} | GOOD) as asked:
        origin = ("https", "127.0.0.1", asked.server.port)
        held = []
        for _ in range(30):
            request = b"GET /large HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
            source, _, _ = await asked.wire.ask(origin, request, Progress("h.test"), 10**7)
            held.append(source)
        await asked.assert_good()
        for source in held:
            asked.wire.release(source)
        await asked.assert_good()
    assert asked.server.connections == 1


async def _all_of(source: Any) -> None:
    while await source.read():
        pass


async def test_a_server_that_ignores_the_window_is_left(asking: Asking) -> None:
    async def odd(talk: Any, number: int) -> None:
        talk.machine.send_headers(number, [(":status", "200")])
        await talk.send(*[two.frame(0, bytes(16_384), 0, number)] * (WINDOW // 16_384 + 1))

    async with asking({"/": odd} | GOOD) as asked:
        origin = ("https", "127.0.0.1", asked.server.port)
        request = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        source, _, _ = await asked.wire.ask(origin, request, Progress("h.test"), 10**7)
        await asked.assert_good()
        with pytest.raises(FetchError, match="more than the window allows") as caught:
            await _all_of(source)
        asked.wire.release(source)
    assert caught.value.fault.reason is Reason.BAD_REPLY
    assert asked.server.connections == 2


async def test_more_requests_than_a_connection_takes_open_another(asking: Asking) -> None:
    count = MAX_STREAMS + 20
    arrived = trio.Event()

    async def odd(talk: Any, number: int) -> None:
        if len(talk.server.requests) == count:
            arrived.set()

    async with asking({"/": odd}, limits={"timeout": 5}) as asked, trio.open_nursery() as nursery:
        for _ in range(count):
            nursery.start_soon(asked.fetch, Job(asked.server.url))
        with trio.fail_after(10):
            await arrived.wait()
        assert asked.server.connections == 2
        nursery.cancel_scope.cancel()


async def test_a_server_may_allow_one_request_at_a_time(asking: Asking) -> None:
    async def greet(talk: Any) -> None:
        talk.machine.local_settings.max_concurrent_streams = 1

    async with asking(GOOD, greet=greet) as asked:
        await asked.assert_good(at_once=4)
    assert asked.server.connections <= 8


# Cancellation, closing, and time.


@pytest.mark.parametrize("requests_at_once", [1, 3])
async def test_a_connection_that_ends_while_a_request_waits_for_its_delay_loses_nothing(
    asking: Asking, requests_at_once: int
) -> None:
    refused: list[str] = []

    async def odd(talk: Any, number: int) -> None:
        path = talk.server.requests[-1][":path"]
        if path not in refused:
            refused.append(path)
            talk.machine.reset_stream(number, ErrorCodes.REFUSED_STREAM)
            await talk.flush()
            # As servers do that wait for a first request, or have waited too long for another one.
            await talk.stream.transport_stream.aclose()
            raise trio.ClosedResourceError
        talk.machine.send_headers(number, [(":status", "200")], end_stream=True)

    paths = [f"odd{number}" for number in range(requests_at_once)]
    async with asking({f"/{path}": odd for path in paths}) as asked:
        load = HostLoad(Politeness(delay=0.05))
        load.delay = 0.05
        pace = Pace(load, lambda: None)
        answers: list[Response | Fault] = []

        async def ask(path: str) -> None:
            turn = Turn(load, pace)
            TURN.set(turn)
            turn.call()
            answers.append(await asked.one(path))

        async with trio.open_nursery() as nursery:
            for path in paths:
                nursery.start_soon(ask, path)
        figures = asked.wire.statistics()
    assert [getattr(answer, "status", answer) for answer in answers] == [200] * len(paths)
    assert figures.open == figures.idle


@pytest.mark.slow
async def test_a_request_cancelled_at_any_checkpoint_takes_no_neighbour_with_it(
    asking: Asking,
) -> None:
    large = bytes(range(256)) * 2_000
    site = {"/large": two.answer(large)} | GOOD
    cancelled = 0
    before = sockets()
    for checkpoint in range(1, 400):
        async with asking(site) as asked:
            ended = False

            async def victim(asked: Asked = asked, checkpoint: int = checkpoint) -> None:
                nonlocal ended
                ended = await cancelled_at(checkpoint, partial(asked.one, "large"))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(victim)
                for leaf in ("large", "leaf1", "leaf2", "large"):
                    nursery.start_soon(_assert_body, asked, leaf, large)
            await _assert_body(asked, "leaf3", large)
            assert asked.wire.statistics().retried == 0
        await until(lambda: sockets() == before)
        cancelled += ended
        if not ended and checkpoint > cancelled + 5:
            break
    assert cancelled >= 5


async def _assert_body(asked: Asked, leaf: str, large: bytes) -> None:
    assert await asked.body(leaf) == (large if leaf == "large" else leaf.encode() * 50)


async def test_closing_ends_the_requests_in_flight(asking: Asking) -> None:
    async with asking({"/mute": two.silence}) as asked, trio.open_nursery() as nursery:
        answers: list[Response | Fault] = []

        async def note() -> None:
            answers.append(await asked.one("mute"))

        for _ in range(3):
            nursery.start_soon(note)
        await until(lambda: len(asked.server.requests) == 3)
        await asked.wire.aclose()
    assert [getattr(answer, "reason", None) for answer in answers] == [Reason.RESET] * 3
    with pytest.raises(RuntimeError, match="is closed"):
        await asked.fetch(Job(asked.server.url))


async def test_closing_ends_the_requests_that_wait_for_a_connection(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    looked_up = trio.Event()
    closed = trio.Event()

    async def slowly(host: str, port: int) -> Sequence[str]:
        looked_up.set()
        await closed.wait()
        return ["127.0.0.1"]

    async with two.two_server(GOOD, server_tls) as server:
        wire = Wired(allow_private=["127.0.0.1"], security=Security(client_tls), resolve=slowly)
        http2 = Http2Wire(wire)
        fetch = over(WireAdapter(requests(), http2))
        answers: list[Response | Fault] = []

        async def note() -> None:
            answers.append(await fetch(Job(f"https://h.test:{server.port}/leaf1")))

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(note)
            await looked_up.wait()
            await http2.aclose()
            closed.set()
        await until(lambda: server.open == 0)
    assert [getattr(answer, "reason", None) for answer in answers] == [Reason.RESET] * 3


async def test_idle_connections_beyond_a_number_are_closed(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    async with two.two_server({"/": two.answer(b"two")}, server_tls) as server:
        wire = Wired(allow_private=["127.0.0.1"], security=Security(client_tls), resolve=home)
        http2 = Http2Wire(wire, max_idle=5)
        fetch = over(WireAdapter(requests(), http2))
        for number in range(10):
            answer = await fetch(Job(f"https://a{number}.h.test:{server.port}/"))
            assert isinstance(answer, Response)
        await until(lambda: server.open == 5)
        assert http2.statistics().idle == 5
        await fetch(Job(f"https://a9.h.test:{server.port}/"))
        assert server.connections == 10
        await http2.aclose()
        await until(lambda: server.open == 0)


async def test_requests_that_wait_for_a_connection_get_one_if_its_opener_is_cancelled(
    asking: Asking,
) -> None:
    for checkpoint in range(1, 12):
        async with asking(GOOD) as asked, trio.open_nursery() as nursery:
            nursery.start_soon(cancelled_at, checkpoint, partial(asked.one, "leaf1"))
            await trio.lowlevel.checkpoint()
            await asked.assert_good(at_once=4)


async def test_while_a_connection_has_room_no_request_waits_for_another_to_be_opened(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    looked_up: list[str] = []
    again = trio.Event()

    async def once(host: str, port: int) -> Sequence[str]:
        if looked_up:
            again.set()
            await trio.sleep_forever()
        looked_up.append(host)
        return ["127.0.0.1"]

    async with two.two_server(GOOD, server_tls) as server:
        wire = Wired(allow_private=["127.0.0.1"], security=Security(client_tls), resolve=once)
        http2 = Http2Wire(wire)
        fetch = over(WireAdapter(requests(), http2))
        origin = ("https", "h.test", server.port)
        request = b"GET /leaf1 HTTP/1.1\r\nHost: h.test\r\n\r\n"
        held, _, _ = await http2.ask(origin, request, Progress("h.test"), 10**7)
        async with trio.open_nursery() as nursery:
            alone = Progress("h.test")
            alone.repeats = ALONE_AFTER
            nursery.start_soon(http2.ask, origin, request, alone, 10**7)
            await again.wait()
            with trio.fail_after(10):
                answer = await fetch(Job(f"https://h.test:{server.port}/leaf2"))
            nursery.cancel_scope.cancel()
        http2.release(held)
        await http2.aclose()
        await until(lambda: server.open == 0)
    assert isinstance(answer, Response), answer
    assert answer.body == b"leaf2" * 50
