"""Sessions of TLS are resumed where a server closes its connections, and nowhere else."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
import trio
from sites.over import over
from sites.raw import raw_server, reply

from trio_crawler.model import Job, Response
from trio_crawler.net.http1.wire import Wire
from trio_crawler.net.tls import sessions as module
from trio_crawler.net.tls.security import Security
from trio_crawler.net.tls.sessions import MAX_AGE, MAX_SESSIONS, Sessions

pytest.importorskip("trustme")

CLOSING = reply(200, {"Connection": "close"}, b"page")
MANY = module._WORTH + 2

VERSIONS = pytest.mark.parametrize(
    "version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"]
)


class Site:
    """A server that closes each connection, and records whether it resumed its session."""

    def __init__(self, authority: Any, version: ssl.TLSVersion | None = None) -> None:
        self.tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.tls.minimum_version = self.tls.maximum_version = version or ssl.TLSVersion.TLSv1_3
        self._authority = authority
        self.certify()
        self.resumed: list[bool] = []

    def certify(self, **how: Any) -> None:
        """Show another certificate from now on."""
        names = ("127.0.0.1", "a.test", "b.test")
        self._authority.issue_cert(*names, **how).configure_cert(self.tls)

    async def __call__(self, request: Any, stream: Any) -> None:
        self.resumed.append(bool(stream.inner._ssl_object.session_reused))
        await stream.send_all(CLOSING)
        await stream.inner.unwrap()


async def resolve(host: str, port: int) -> Sequence[str]:
    return ["127.0.0.1"]


def wired(security: Security) -> Wire:
    return Wire(allow_private=["127.0.0.1"], security=security, resolve=resolve)


async def ask(wire: Wire, port: int, times: int = 1, host: str = "127.0.0.1") -> list[Any]:
    fetch = over(wire, timeout=20)
    return [await fetch(Job(f"https://{host}:{port}/")) for _ in range(times)]


@VERSIONS
async def test_a_server_that_closes_each_connection_resumes_sessions(
    version: ssl.TLSVersion, authority: Any, client_tls: ssl.SSLContext
) -> None:
    site = Site(authority, version)
    async with raw_server(site, tls=site.tls) as server, wired(Security(client_tls)) as wire:
        answers = await ask(wire, server.port, MANY + 5)
    assert all(isinstance(answer, Response) for answer in answers)
    # The first ones might be connections that are kept; then each one resumes.
    assert site.resumed == [False] * module._WORTH + [True] * (MANY + 5 - module._WORTH)


async def test_a_session_is_never_resumed_at_another_host_port_or_context(
    authority: Any, client_tls: ssl.SSLContext
) -> None:
    one, two = Site(authority), Site(authority)
    # With the same context the second server could resume what the first one has given.
    two.tls = one.tls
    security = Security(client_tls, ["b.test"])
    async with (
        raw_server(one, tls=one.tls) as server,
        raw_server(two, tls=two.tls) as other,
        wired(security) as wire,
    ):
        await ask(wire, server.port, MANY)
        assert one.resumed[-1] is True
        await ask(wire, other.port)
        assert two.resumed == [False]
        # Any certificate of this one is accepted, by a context of its own.
        await ask(wire, server.port, MANY, "b.test")
        await ask(wire, server.port, 1, "a.test")
        assert one.resumed[MANY] is False
        assert one.resumed[-2:] == [True, False]
        async with wired(Security(client_tls)) as stranger:
            await ask(stranger, server.port)
        assert one.resumed[-1] is False


async def test_a_session_is_resumed_for_an_hour(
    authority: Any, client_tls: ssl.SSLContext, autojump_clock: trio.testing.MockClock
) -> None:
    autojump_clock.autojump_threshold = float("inf")
    site = Site(authority)
    async with raw_server(site, tls=site.tls) as server, wired(Security(client_tls)) as wire:
        await ask(wire, server.port, MANY)
        began = trio.current_time()
        assert site.resumed[-1] is True
        # A resumed session is as old as the one that it comes from.
        for _ in range(3):
            autojump_clock.jump(MAX_AGE / 3 - 1)
            await ask(wire, server.port)
        assert site.resumed[-3:] == [True] * 3
        autojump_clock.jump(4)
        assert trio.current_time() - began > MAX_AGE
        site.certify(not_after=datetime(2001, 1, 1, tzinfo=UTC))
        [answer] = await ask(wire, server.port)
    assert answer.detail == f"the certificate of 127.0.0.1:{server.port} has expired"


async def test_a_server_that_forgets_its_sessions_does_a_full_handshake(
    authority: Any, client_tls: ssl.SSLContext
) -> None:
    first, second = Site(authority), Site(authority)
    async with wired(Security(client_tls)) as wire:
        async with raw_server(first, tls=first.tls) as server:
            port = server.port
            await ask(wire, port, MANY)
        listener = await _again(second, port)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(listener)
            [answer] = await ask(wire, port)
            nursery.cancel_scope.cancel()
    assert first.resumed[-1] is True
    assert isinstance(answer, Response)
    assert second.resumed == [False]


async def _again(site: Site, port: int) -> Any:
    """Listen on a port that another server has left."""
    [listener] = await trio.open_tcp_listeners(port, host="127.0.0.1")

    async def serve(plain: trio.SocketStream) -> None:
        stream = trio.SSLStream(plain, site.tls, server_side=True, https_compatible=True)
        await stream.receive_some()
        site.resumed.append(bool(stream._ssl_object.session_reused))
        await stream.send_all(CLOSING)
        await stream.aclose()

    async def run() -> None:
        await trio.serve_listeners(serve, [listener])

    return run


@pytest.mark.parametrize("at_once", [1, 8])
async def test_a_server_that_fails_on_a_session_is_asked_again_at_once(
    authority: Any, client_tls: ssl.SSLContext, at_once: int
) -> None:
    site = Site(authority)
    broken: list[int] = []

    async def serve(plain: trio.SocketStream) -> None:
        stream = trio.SSLStream(plain, site.tls, server_side=True, https_compatible=True)
        try:
            await stream.do_handshake()
        except trio.BrokenResourceError:
            return
        if stream._ssl_object.session_reused:
            broken.append(1)
        await stream.receive_some()
        await stream.send_all(CLOSING)
        await stream.aclose()

    async def accept(plain: trio.SocketStream) -> None:
        hello = bytes(await plain.receive_some())
        if PRE_SHARED_KEY in extensions(hello):
            broken.append(0)
            await plain.send_all(b"\x15\x03\x03\x00\x02\x02\x50")
            await plain.aclose()
            return
        await serve(_Begun(plain, hello))

    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, accept, listeners)
        port = listeners[0].socket.getsockname()[1]
        async with wired(Security(client_tls)) as wire:
            answers: list[Any] = []

            async def work() -> None:
                answers.extend(await ask(wire, port, MANY + 2))

            async with trio.open_nursery() as workers:
                for _ in range(at_once):
                    workers.start_soon(work)
        nursery.cancel_scope.cancel()
    assert 1 <= len(broken) <= at_once
    assert set(broken) == {0}
    assert all(isinstance(answer, Response) for answer in answers), answers


PRE_SHARED_KEY = 41


def extensions(hello: bytes) -> list[int]:
    """Return the types of the extensions of a ClientHello (RFC 8446, 4.1.2)."""
    # The record, the message, the version and the random bytes; then three lists.
    at = 5 + 4 + 2 + 32
    for size in (1, 2, 1):
        at += size + int.from_bytes(hello[at : at + size])
    at += 2
    found = []
    while at < len(hello):
        found.append(int.from_bytes(hello[at : at + 2]))
        at += 4 + int.from_bytes(hello[at + 2 : at + 4])
    return found


class _Begun(trio.abc.Stream):
    """A stream of which some bytes are read already."""

    def __init__(self, inner: trio.SocketStream, data: bytes) -> None:
        self._inner = inner
        self._data = data

    async def send_all(self, data: Any) -> None:
        await self._inner.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._inner.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        data, self._data = self._data, b""
        return data or bytes(await self._inner.receive_some(max_bytes))

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Machine:
    """A connection with a session, as far as it is looked at."""

    def __init__(self, *, ticket: bool = True, name: bytes = b"1", version: str = "TLSv1.3"):
        self.session: Any = self
        self.has_ticket, self.id, self.timeout = ticket, name, 7200
        self.version = lambda: version


def test_at_most_1000_sessions_are_kept() -> None:
    kept = Sessions()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    keys = [(context, f"h{number}.test", 443) for number in range(400)]
    for key in keys:
        for _ in range(module._WORTH):
            kept.take(key, 0)
        for _ in range(3):
            kept.give(key, _Machine(), 0.0)  # type: ignore[arg-type]
        assert len(kept) <= MAX_SESSIONS
    assert len(kept) > MAX_SESSIONS - 8
    # The servers of the oldest connections are forgotten.
    assert kept.take(keys[0], 0) is None
    assert kept.take(keys[-1], 0) is not None
    for number in range(3000):
        kept.take((context, f"i{number}.test", 443), 0)
    assert len(kept) == 0
    assert len(kept._servers) <= MAX_SESSIONS


@pytest.mark.parametrize(
    ("machine", "is_kept"),
    [
        (_Machine(), True),
        (_Machine(ticket=False), False),
        (_Machine(ticket=False, version="TLSv1.2"), True),
        (_Machine(ticket=False, name=b"", version="TLSv1.2"), False),
    ],
)
def test_only_what_can_be_resumed_is_kept(machine: Any, is_kept: bool) -> None:
    kept = Sessions()
    key = (ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), "h.test", 443)
    for _ in range(module._WORTH):
        kept.take(key, 0)
    kept.give(key, machine, 0.0)
    assert len(kept) == is_kept


def test_a_few_connections_are_closed_without_looking_at_their_sessions() -> None:
    class Closed:
        @property
        def session(self) -> None:
            raise AssertionError("this takes 0.13 ms")

    kept = Sessions()
    key = (ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), "h.test", 443)
    for _ in range(module._WORTH - 1):
        kept.take(key, 0)
        kept.give(key, Closed(), 0.0)  # type: ignore[arg-type]
