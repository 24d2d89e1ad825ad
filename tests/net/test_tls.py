"""HTTPS on loopback: whom the wire believes, and what it makes of connections that are cut."""

from __future__ import annotations

import datetime
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import pytest
import trio
from cases import for_each
from sites.over import Wired, over
from sites.raw import Request, Server, chunked, raw_server, reply, reset

from trio_crawler.model import Fault, Job, Phase, Reason, Response
from trio_crawler.net.tls import Security

trustme = pytest.importorskip("trustme")

PAGE = {"/": reply(body=b"secret")}
LONG_AGO = datetime.datetime(2001, 1, 1, tzinfo=datetime.UTC)
FAR_OFF = datetime.datetime(2200, 1, 1, tzinfo=datetime.UTC)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def server_context(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate.configure_cert(context)
    return context


@pytest.fixture
def server_tls(authority: trustme.CA) -> ssl.SSLContext:
    names = ("127.0.0.1", "::1", "h.test", "a.test", "b.test", "b\xfccher.test")
    return server_context(authority.issue_cert(*names))


@pytest.fixture
def client_tls(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def asked(server: Server, host: str = "127.0.0.1") -> str:
    return f"https://{host}:{server.port}/"


def wired(url: str, tls: ssl.SSLContext | None = None, **options: Any) -> Wired:
    """Make a wire for which every name leads to the server."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["::1" if ":" in host else "127.0.0.1"]

    security = Security(tls, **options)
    return Wired(seeds=[url], allow_private=["127.0.0.1"], security=security, resolve=resolve)


async def ask(wire: Wired, url: str, timeout_: float = 20.0) -> Response | Fault:
    return await over(wire, timeout=timeout_)(Job(url))


async def body(wire: Wired, url: str) -> bytes:
    answer = await ask(wire, url)
    assert isinstance(answer, Response), answer
    return answer.body


async def fault(url: str, tls: ssl.SSLContext | None = None, timeout_: float = 20.0) -> Fault:
    async with wired(url, tls) as wire:
        answer = await ask(wire, url, timeout_)
        assert wire.statistics().open == 0
        assert wire.statistics().made == 0
    assert isinstance(answer, Fault), answer
    assert answer.detail.isprintable()
    assert answer.phase is Phase.TLS
    return answer


@asynccontextmanager
async def tcp_server(
    handler: Callable[[trio.SocketStream], Awaitable[object]],
) -> AsyncIterator[str]:
    """Speak no TLS at all, or a little of it; give the URL."""
    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(partial(trio.serve_tcp, handler, 0, host="127.0.0.1"))
        yield f"https://127.0.0.1:{listener.socket.getsockname()[1]}/"
        nursery.cancel_scope.cancel()


# Whom the wire believes.


@pytest.mark.parametrize("default", [True, False], ids=["certifi", "another authority"])
async def test_a_certificate_nobody_vouches_for_is_refused(
    server_tls: ssl.SSLContext, default: bool
) -> None:
    other = None
    if not default:
        other = ssl.create_default_context()
        trustme.CA().configure_trust(other)
    async with raw_server(PAGE, tls=server_tls) as server:
        found = await fault(asked(server), other)
    assert found.reason is Reason.TLS
    assert found.detail.startswith(f"the certificate of 127.0.0.1:{server.port} cannot be trusted")
    assert server.requests == []


async def test_each_connection_has_a_handshake_of_its_own(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    resumed = []

    async def closes(request: Request, stream: Any) -> None:
        resumed.append(bool(stream.inner._ssl_object.session_reused))
        await stream.send_all(reply(200, {"Connection": "close"}, b"page"))
        await stream.inner.unwrap()

    server_tls.maximum_version = ssl.TLSVersion.TLSv1_2
    async with (
        raw_server(closes, tls=server_tls) as server,
        wired(asked(server), client_tls) as wire,
    ):
        for _ in range(12):
            assert await body(wire, asked(server)) == b"page"
    assert resumed == [False] * 12


async def test_a_certificate_that_signs_itself_is_refused(client_tls: ssl.SSLContext) -> None:
    # The authority's own certificate, as small devices serve it.
    own = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with own.cert_pem.tempfile() as certificate, own.private_key_pem.tempfile() as key:
        context.load_cert_chain(certificate, key)
    async with raw_server(PAGE, tls=context) as server:
        found = await fault(asked(server), client_tls)
    assert found.reason is Reason.TLS
    assert "self-signed" in found.detail
    assert server.requests == []


@pytest.mark.parametrize(
    ("dates", "sentence"),
    [
        ({"not_after": LONG_AGO}, "the certificate of 127.0.0.1:{} has expired"),
        ({"not_before": FAR_OFF, "not_after": FAR_OFF}, "certificate is not yet valid"),
    ],
)
async def test_a_certificate_out_of_its_time_is_refused(
    authority: trustme.CA, client_tls: ssl.SSLContext, dates: dict[str, Any], sentence: str
) -> None:
    context = server_context(authority.issue_cert("127.0.0.1", **dates))
    async with raw_server(PAGE, tls=context) as server:
        found = await fault(asked(server), client_tls)
    assert found.reason is Reason.TLS
    assert sentence.format(server.port) in found.detail
    assert server.requests == []


@for_each(
    "certified, host",
    [
        ("other.test", "127.0.0.1"),
        ("127.0.0.2", "127.0.0.1"),
        ("h.test", "sub.h.test"),
        ("*.h.test", "h.test"),
        ("*.h.test", "a.sub.h.test"),
        ("h.test", "h.test.evil.test"),
    ],
)
async def test_a_certificate_for_another_host_is_refused(
    authority: trustme.CA, client_tls: ssl.SSLContext, certified: str, host: str
) -> None:
    context = server_context(authority.issue_cert(certified))
    async with raw_server(PAGE, tls=context) as server:
        found = await fault(asked(server, host), client_tls)
    assert found.reason is Reason.TLS
    assert f"certificate is not valid for '{host}'" in found.detail
    assert server.requests == []


async def test_a_certificate_for_all_hosts_of_a_domain_is_believed(
    authority: trustme.CA, client_tls: ssl.SSLContext
) -> None:
    context = server_context(authority.issue_cert("*.h.test"))
    async with raw_server(PAGE, tls=context) as server, wired(asked(server), client_tls) as wire:
        assert await body(wire, asked(server, "a.h.test")) == b"secret"


async def test_an_insecure_host_is_believed_and_no_other(authority: trustme.CA) -> None:
    expired = server_context(authority.issue_cert("nowhere.test", not_after=LONG_AGO))
    async with (
        raw_server(PAGE, tls=expired) as server,
        wired(asked(server, "a.test"), insecure_hosts=["A.test"]) as wire,
    ):
        assert await body(wire, asked(server, "a.test")) == b"secret"
        assert len(server.requests) == 1
        for host in ("b.test", "sub.a.test", "test", "127.0.0.1"):
            answer = await ask(wire, asked(server, host))
            assert isinstance(answer, Fault)
            assert answer.reason is Reason.TLS
    assert len(server.requests) == 1


async def test_an_insecure_host_must_still_speak_tls() -> None:
    async def plain(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(reply(body=b"in the open"))

    async with tcp_server(plain) as url, wired(url, insecure_hosts=["127.0.0.1"]) as wire:
        answer = await ask(wire, url)
    assert isinstance(answer, Fault)
    assert answer.reason is Reason.TLS


# What the server is told.


@for_each(
    "host, name",
    [
        ("h.test", "h.test"),
        ("h.test.", "h.test"),
        ("xn--bcher-kva.test", "xn--bcher-kva.test"),
        ("127.0.0.1", None),
        ("[::1]", None),
    ],
)
async def test_the_server_is_told_the_name_it_is_asked_for(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext, host: str, name: str | None
) -> None:
    names: list[str | None] = []
    server_tls.sni_callback = lambda stream, said, context: names.append(said)
    listens = "::1" if ":" in host else "127.0.0.1"
    async with (
        raw_server(PAGE, tls=server_tls, host=listens) as server,
        wired(asked(server, host), client_tls) as wire,
    ):
        assert await body(wire, asked(server, host)) == b"secret"
    assert names == [name]
    assert server.requests[0].headers["host"] == f"{host}:{server.port}"


async def test_the_wire_says_that_it_speaks_http_1_1(authority: trustme.CA) -> None:
    context = server_context(authority.issue_cert("127.0.0.1"))
    context.set_alpn_protocols(["h2", "http/1.1"])
    spoken: list[str | None] = []

    async def handler(request: Request, stream: Any) -> None:
        spoken.append(stream.inner.selected_alpn_protocol())
        await stream.send_all(reply())

    async with (
        raw_server(handler, tls=context) as server,
        wired(asked(server), insecure_hosts=["127.0.0.1"]) as wire,
    ):
        await body(wire, asked(server))
    assert spoken == ["http/1.1"]


async def test_a_context_that_offers_http_2_elsewhere_is_asked_by_http_1_1(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    for context in (server_tls, client_tls):
        context.set_alpn_protocols(["h2", "http/1.1"])
    async with (
        raw_server(PAGE, tls=server_tls) as server,
        wired(asked(server), client_tls) as wire,
    ):
        assert await body(wire, asked(server)) == b"secret"


# Handshakes that come to nothing.


async def test_a_server_that_speaks_no_tls_is_a_tls_fault(client_tls: ssl.SSLContext) -> None:
    async def plain(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(reply(400))

    async with tcp_server(plain) as url:
        assert (await fault(url, client_tls)).reason is Reason.TLS


@for_each(
    "alert, told",
    [
        (112, "{} has no site of this name"),
        (70, "{} and the crawler have no version of TLS in common; "
             "it may be too old for TLS 1.2"),
        (80, "{} ends the handshake of TLS with an error of its own"),
        (42, "{} does not accept the certificate of the client, or wants one; "
             "name another with --client-cert"),
        (48, "{} does not know the authority of the client's certificate; "
             "name another with --client-cert"),
        (116, "{} wants a certificate of the client; name one with --client-cert"),
        # What is not told in words of ours is told in those of OpenSSL.
        (47, "no secure connection to {}: sslv3 alert illegal parameter"),
    ],
)  # fmt: skip
async def test_the_alert_of_a_server_is_told_as_a_sentence(
    client_tls: ssl.SSLContext, alert: int, told: str
) -> None:
    async def refuse(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(b"\x15\x03\x03\x00\x02\x02" + bytes([alert]))
        await stream.aclose()

    async with tcp_server(refuse) as url:
        found = await fault(url, client_tls)
    assert (found.reason, found.detail) == (Reason.TLS, told.format(url[8:-1]))


@pytest.mark.parametrize("answer", [b"", b"\x16\x03\x03", b"\x16\x03\x03\x00\x7a\x02"])
async def test_a_server_that_closes_in_the_handshake_is_a_reset(
    client_tls: ssl.SSLContext, answer: bytes
) -> None:
    async def close(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(answer)
        await stream.aclose()

    async with tcp_server(close) as url:
        assert (await fault(url, client_tls)).reason is Reason.RESET


async def test_a_server_that_breaks_off_the_handshake_is_a_reset(
    client_tls: ssl.SSLContext,
) -> None:
    async def cut(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await reset(Request(b"", "", "", {}), stream)

    async with tcp_server(cut) as url:
        assert (await fault(url, client_tls)).reason is Reason.RESET


@pytest.mark.parametrize("answer", [b"", b"\x16\x03\x03"])
async def test_a_handshake_that_hangs_ends_at_the_deadline(
    client_tls: ssl.SSLContext, answer: bytes
) -> None:
    left = trio.Event()

    async def hang(stream: trio.SocketStream) -> None:
        await stream.send_all(answer)
        async for _ in stream:
            pass
        left.set()

    async with tcp_server(hang) as url:
        found = await fault(url, client_tls, timeout_=0.2)
        with trio.fail_after(5):
            await left.wait()
    assert found.reason is Reason.CONNECT_TIMEOUT
    assert "securing the connection to 127.0.0.1" in found.detail


# Connections that are cut.


async def cut(request: Request, stream: Any) -> None:
    """End the connection without the closing word of TLS, as most servers do."""
    await stream.inner.transport_stream.aclose()


async def take_leave(request: Request, stream: Any) -> None:
    """Say the closing word, and wait for the client to go."""
    with suppress(trio.BrokenResourceError):
        await stream.inner.unwrap()
    await stream.aclose()


@for_each(
    "answer, well",
    [
        (b"HTTP/1.1 200 OK\r\n\r\nsecret", False),
        (reply(200, {"Content-Length": "9"}, b"secret"), False),
        (reply(200, {"Transfer-Encoding": "chunked"}, b"6\r\nsecret\r\n"), False),
        (reply(200, {"Content-Length": "6"}, b"secret"), True),
        (reply(200, {"Transfer-Encoding": "chunked"}, chunked(b"secret")), True),
    ],
    ids=["no length", "short", "no last chunk", "length", "chunked"],
)
@for_each("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_body_may_end_with_a_connection_that_is_cut_only_if_all_of_it_had_come(
    server_tls: ssl.SSLContext,
    client_tls: ssl.SSLContext,
    answer: bytes,
    well: bool,
    version: ssl.TLSVersion,
) -> None:
    server_tls.minimum_version = server_tls.maximum_version = version

    async def handler(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(answer)
        await cut(request, stream)

    async with (
        raw_server(handler, tls=server_tls) as server,
        wired(asked(server), client_tls) as wire,
    ):
        came = await ask(wire, asked(server))
        assert wire.statistics().open == wire.statistics().idle == int(well)
    if well:
        assert isinstance(came, Response)
        assert came.body == b"secret"
    else:
        assert isinstance(came, Fault)
        assert (came.reason, came.phase) == (Reason.INCOMPLETE, Phase.READ)


async def test_a_body_without_a_length_ends_with_the_closing_word(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    async def handler(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(b"HTTP/1.1 200 OK\r\n\r\nsecret")
        await take_leave(request, stream)

    async with (
        raw_server(handler, tls=server_tls) as server,
        wired(asked(server), client_tls) as wire,
    ):
        assert await body(wire, asked(server)) == b"secret"
        assert wire.statistics().open == 0


async def test_an_answer_cut_in_its_head_is_a_reset(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    async def handler(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Le")
        await cut(request, stream)

    async with (
        raw_server(handler, tls=server_tls) as server,
        wired(asked(server), client_tls) as wire,
    ):
        answer = await ask(wire, asked(server))
    assert isinstance(answer, Fault)
    assert (answer.reason, answer.phase) == (Reason.RESET, Phase.WAIT)


@for_each("then", [cut, take_leave, reset])
@for_each("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_kept_connection_that_dies_under_the_request_is_retried_once_on_a_new_one(
    server_tls: ssl.SSLContext,
    client_tls: ssl.SSLContext,
    then: Callable[[Request, trio.abc.Stream], Awaitable[None]],
    version: ssl.TLSVersion,
) -> None:
    server_tls.minimum_version = server_tls.maximum_version = version

    async def handler(request: Request, stream: trio.abc.Stream) -> None:
        if len(server.requests) == 2:
            await then(request, stream)
        else:
            await stream.send_all(reply(body=b"secret"))

    async with (
        raw_server(handler, tls=server_tls) as server,
        wired(asked(server), client_tls) as wire,
    ):
        for _ in range(2):
            assert await body(wire, asked(server)) == b"secret"
        assert wire.statistics().retried == 1
    assert (len(server.requests), server.connections) == (3, 2)


@pytest.mark.parametrize("together", [True, False], ids=["in one packet", "later"])
async def test_a_second_answer_is_never_the_answer_to_another_request(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext, together: bool
) -> None:
    async def handler(request: Request, stream: Any) -> None:
        transport = stream.inner.transport_stream
        transport.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, int(together))
        await stream.send_all(reply(body=request.target.encode()))
        await stream.send_all(reply(body=b"evil"))
        transport.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)

    async with raw_server(handler, tls=server_tls) as server:
        url = asked(server)
        async with wired(url, client_tls) as wire:
            for n in range(5):
                assert await body(wire, f"{url}{n}") == b"/%d" % n
                await trio.testing.wait_all_tasks_blocked()
            assert wire.statistics().made == 5


async def test_a_body_in_the_smallest_and_the_largest_records_comes_whole(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    large = bytes(range(256)) * 4000

    async def handler(request: Request, stream: trio.abc.Stream) -> None:
        for byte in reply(body=b"small"):
            await stream.send_all(bytes([byte]))
        await stream.send_all(b"")

    async with raw_server({"/": handler, "/large": reply(body=large)}, tls=server_tls) as server:
        url = asked(server)
        async with wired(url, client_tls) as wire:
            for _ in range(2):
                assert await body(wire, url) == b"small"
                assert await body(wire, url + "large") == large
            assert wire.statistics().made == 1


def test_a_context_is_read_only_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[object] = []
    create = ssl.create_default_context

    def counting(*arguments: Any, **named: Any) -> ssl.SSLContext:
        read.append(named)
        return create(*arguments, **named)

    monkeypatch.setattr(ssl, "create_default_context", counting)
    security = Security(insecure_hosts=["a.test"])
    assert security.context("a.test").verify_mode is ssl.CERT_NONE
    assert read == []
    verifying = security.context("b.test")
    assert security.context("c.test") is verifying
    assert verifying.verify_mode is ssl.CERT_REQUIRED
    assert verifying.check_hostname
    assert len(read) == 1
