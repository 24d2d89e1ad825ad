"""Every call on a socket fails once, in every way: a fetch ends in an outcome, nothing is left.

The calls of a fetch are counted, then the fetch is done again as often, the 1st, 2nd, ... n-th
call failing each time, as the torture tests of curl do it.
"""

from __future__ import annotations

import errno
import gc
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
import trio
from sites.left import descriptors
from sites.over import Wired, over
from sites.raw import Request, Server, chunked, raw_server, redirect, reply, tunnel
from sites.socks import socks_server
from sites.steps import until

from trio_crawler.model import Fault, Job, Phase, Reason, Response
from trio_crawler.net.dial import connector
from trio_crawler.net.tls import Security

pytestmark = pytest.mark.slow

trustme = pytest.importorskip("trustme")

NUMBERS = [
    errno.ECONNREFUSED,
    errno.ECONNRESET,
    errno.ETIMEDOUT,
    errno.EHOSTUNREACH,
    errno.EPIPE,
    errno.EPERM,
    errno.EMFILE,
    errno.ENOBUFS,
    errno.ENOMEM,
    errno.EIO,
    errno.EBADF,
]
CALLS = [
    *("socket", "setblocking", "setsockopt", "connect", "getsockopt"),
    *("send", "recv", "close"),
]
SITE = {
    "/": reply(body=b"alive"),
    "/large": reply(body=b"x" * 300_000),
    "/chunked": reply(200, {"Transfer-Encoding": "chunked"}, chunked(*[b"x" * 30_000] * 4)),
    "/close": b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 100_000,
    "/redirect": redirect("/b"),
    "/cut": reply(200, {"Content-Length": "10"}, b"short"),
}
CUT = "5 of 10 bytes of the body came"


@pytest.fixture(autouse=True)
def uncollected() -> Iterator[None]:
    """Keep the collector off: only what is closed on purpose is closed."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Injector:
    """Stand in for the module `socket` where connections are made; fail at one call.

    What the system would return is returned, what it would raise is raised.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.fail_at = ("", 0)
        self.number = 0
        self.module = SimpleNamespace(**{**vars(socket), "socket": self._socket})

    def due(self, call: str) -> bool:
        self.calls.append(call)
        return (call, self.calls.count(call)) == self.fail_at

    def error(self) -> OSError:
        return OSError(self.number, os.strerror(self.number))

    def _socket(self, *arguments: Any) -> socket.socket:
        if self.due("socket"):
            raise self.error()
        return _Socket(self, *arguments)

    @contextmanager
    def failing(self, call: str, place: int, number: int) -> Iterator[None]:
        """Fail with the error `number` when `call` comes for the n-th time."""
        self.calls, self.fail_at, self.number = [], (call, place), number
        yield
        self.fail_at = ("", 0)


class _Socket(socket.socket):
    """Fail when it is the turn of a call."""

    __slots__ = ("_injector",)

    def __init__(self, injector: Injector, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._injector = injector

    def _go(self, call: str) -> None:
        if self._injector.due(call):
            raise self._injector.error()

    def setblocking(self, flag: bool) -> None:
        self._go("setblocking")
        super().setblocking(flag)

    def setsockopt(self, *arguments: Any) -> None:
        self._go("setsockopt")
        super().setsockopt(*arguments)

    def connect_ex(self, address: Any) -> int:
        if self._injector.due("connect"):
            return self._injector.number
        # Some systems connect to themselves at once; others look at it as under way.
        return super().connect_ex(address) or errno.EINPROGRESS

    def getsockopt(self, *arguments: Any) -> Any:
        # What has happened to the connection is returned, not raised.
        if self._injector.due("getsockopt"):
            return self._injector.number
        return super().getsockopt(*arguments)

    def send(self, data: Any, flags: int = 0) -> int:
        self._go("send")
        return super().send(data, flags)

    def recv(self, size: int, flags: int = 0) -> bytes:
        self._go("recv")
        return super().recv(size, flags)

    def close(self) -> None:
        failing = self.fileno() >= 0 and self._injector.due("close")
        super().close()
        if failing:
            raise self._injector.error()


@pytest.fixture
def injector(monkeypatch: pytest.MonkeyPatch) -> Injector:
    made = Injector()
    monkeypatch.setattr(connector, "socket", made.module)
    return made


async def ask(wire: Wired, url: str) -> Response | Fault:
    with trio.fail_after(20):
        return await over(wire, timeout=10)(Job(url))


async def tortured(
    injector: Injector,
    server: Server,
    make: Callable[[], Wired],
    work: Callable[[Wired], Awaitable[Sequence[object]]],
    number: int,
) -> dict[str, list[object]]:
    """Fail at each call in turn, each time on a new wire; tell what came of each."""
    injector.calls = []
    async with make() as wire:
        await work(wire)
    await until(lambda: server.open == 0)
    files = len(descriptors())
    seen: dict[str, list[object]] = {}
    for call in dict.fromkeys(injector.calls):
        for place in count(1):
            async with make() as wire:
                with injector.failing(call, place, number):
                    outcomes = await work(wire)
                    failed = injector.calls.count(call) >= place
                await all_is_well(server, wire, outcomes)
            # A proxy in between closes its ends a moment later.
            await until(lambda: (server.open, len(descriptors())) == (0, files))
            if not failed:
                break
            seen.setdefault(call, []).extend(outcomes)
    return seen


async def all_is_well(server: Server, wire: Wired, outcomes: Sequence[object]) -> None:
    for outcome in outcomes:
        assert isinstance(outcome, Response | Fault), outcome
        assert not isinstance(outcome, Fault) or outcome.detail.isprintable()
    kept = wire.statistics().open
    assert kept == wire.statistics().idle
    await until(lambda: server.open == kept)
    last = await ask(wire, server.url)
    assert isinstance(last, Response), last
    assert last.body == b"alive"


def whole_crawl(url: str) -> Callable[[Wired], Awaitable[list[object]]]:
    """Ask for every page one after the other."""

    async def work(wire: Wired) -> list[object]:
        return [await ask(wire, url + path[1:]) for path in SITE]

    return work


@pytest.mark.parametrize("number", NUMBERS, ids=errno.errorcode.get)
async def test_whatever_a_socket_fails_with_the_fetch_ends_in_an_outcome(
    injector: Injector, number: int
) -> None:
    async with raw_server(SITE) as server:
        work = whole_crawl(server.url)
        seen = await tortured(injector, server, lambda: Wired(seeds=[server.url]), work, number)
    assert set(seen) == set(CALLS)
    # What fails in closing costs nothing.
    for answer in seen["close"]:
        assert isinstance(answer, Response) or answer.detail == CUT


@pytest.mark.parametrize("number", NUMBERS[1:5], ids=errno.errorcode.get)
async def test_whatever_a_socket_under_tls_fails_with_the_fetch_ends_in_an_outcome(
    injector: Injector, number: int
) -> None:
    authority, client_tls = trustme.CA(), ssl.create_default_context()
    server_tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(server_tls)
    authority.configure_trust(client_tls)

    async with raw_server(SITE, tls=server_tls) as server:

        def make() -> Wired:
            return Wired(seeds=[server.url], security=Security(client_tls))

        seen = await tortured(injector, server, make, whole_crawl(server.url), number)
    faults = [answer for call in seen for answer in seen[call] if isinstance(answer, Fault)]
    # The system's errors are not taken for those of TLS.
    assert {fault.reason for fault in faults if fault.phase is not Phase.READ} <= {
        *(Reason.RESET, Reason.CONNECTION_REFUSED, Reason.UNREACHABLE),
        *(Reason.CONNECT_TIMEOUT, Reason.NO_SOCKETS),
    }


async def forward(request: Request, stream: trio.abc.Stream) -> None:
    """Answer for the site, as a proxy that is asked for a whole URL."""
    path = "/" + request.target.split("/", 3)[3]
    await stream.send_all(SITE[path])
    if path in ("/close", "/cut"):
        await stream.aclose()


@pytest.mark.parametrize("number", NUMBERS[:4], ids=errno.errorcode.get)
@pytest.mark.parametrize("kind", ["forward", "connect", "socks", "https proxy"])
async def test_whatever_a_socket_to_a_proxy_fails_with_the_fetch_ends_in_an_outcome(
    injector: Injector, kind: str, number: int
) -> None:
    authority, client_tls = trustme.CA(), ssl.create_default_context()
    server_tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(server_tls)
    authority.configure_trust(client_tls)
    is_tls = kind in ("connect", "https proxy")

    async def connect(request: Request, stream: trio.abc.Stream) -> None:
        await tunnel(stream, server.port)

    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        site = forward if kind == "forward" else SITE
        server = await enter(raw_server(site, tls=server_tls if is_tls else None))
        if kind == "forward":
            proxy = server.url
        elif kind == "socks":
            proxy = f"socks5://127.0.0.1:{(await enter(socks_server(server.port))).port}"
        else:
            tls = server_tls if kind == "https proxy" else None
            proxy = (await enter(raw_server(connect, tls=tls))).url

        def make() -> Wired:
            return Wired(seeds=[server.url], security=Security(client_tls), proxy=proxy)

        seen = await tortured(injector, server, make, whole_crawl(server.url), number)
    assert {"socket", "connect", "send", "recv"} <= set(seen)
    faults = [answer for call in seen for answer in seen[call] if isinstance(answer, Fault)]
    early = [fault for fault in faults if fault.phase is not Phase.READ]
    assert {fault.reason for fault in early} <= {
        *(Reason.RESET, Reason.CONNECTION_REFUSED, Reason.UNREACHABLE),
        *(Reason.CONNECT_TIMEOUT, Reason.NO_SOCKETS),
    }
    # What fails before the proxy has made the connection is told of the proxy.
    name = f"the proxy 127.0.0.1:{proxy.rstrip('/').rpartition(':')[2]}"
    for fault in early:
        if fault.phase is Phase.CONNECT and fault.reason is not Reason.NO_SOCKETS:
            assert name in fault.detail


@pytest.mark.parametrize("number", NUMBERS, ids=errno.errorcode.get)
async def test_of_several_addresses_one_may_fail_in_any_way(
    injector: Injector, number: int
) -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.2", "127.0.0.1"]

    async with raw_server(SITE) as server:
        url = f"http://h.test:{server.port}/"

        def make() -> Wired:
            return Wired(seeds=[server.url, url], resolve=resolve)

        async def work(wire: Wired) -> list[object]:
            return [await ask(wire, url)]

        seen = await tortured(injector, server, make, work, number)
    assert {"socket", "connect", "close", "send"} <= set(seen)


@pytest.mark.parametrize(
    ("call", "number", "reason", "phase"),
    [
        ("socket", errno.EMFILE, Reason.NO_SOCKETS, Phase.CONNECT),
        ("socket", errno.ENOBUFS, Reason.UNREACHABLE, Phase.CONNECT),
        ("socket", errno.EPERM, Reason.UNREACHABLE, Phase.CONNECT),
        ("connect", errno.ECONNREFUSED, Reason.CONNECTION_REFUSED, Phase.CONNECT),
        ("connect", errno.EHOSTUNREACH, Reason.UNREACHABLE, Phase.CONNECT),
        ("connect", errno.EIO, Reason.UNREACHABLE, Phase.CONNECT),
        ("getsockopt", errno.ETIMEDOUT, Reason.CONNECT_TIMEOUT, Phase.CONNECT),
        ("getsockopt", errno.ECONNRESET, Reason.RESET, Phase.CONNECT),
        ("send", errno.EPIPE, Reason.RESET, Phase.SEND),
        ("send", errno.ENOBUFS, Reason.RESET, Phase.SEND),
        ("recv", errno.ECONNRESET, Reason.RESET, Phase.WAIT),
        ("recv", errno.ETIMEDOUT, Reason.RESET, Phase.WAIT),
        ("recv", errno.EIO, Reason.RESET, Phase.WAIT),
    ],
)
async def test_the_fault_says_what_failed_and_when(
    injector: Injector, call: str, number: int, reason: Reason, phase: Phase
) -> None:
    async with raw_server(SITE) as server, Wired(seeds=[server.url]) as wire:
        with injector.failing(call, 1, number):
            fault = await ask(wire, server.url)
    assert isinstance(fault, Fault)
    assert (fault.reason, fault.phase) == (reason, phase)
    assert fault.reason is Reason.NO_SOCKETS or str(server.port) in fault.detail


@pytest.mark.parametrize("call", ["send", "recv"])
async def test_a_kept_connection_that_fails_is_replaced_at_once(
    injector: Injector, call: str
) -> None:
    async with raw_server(SITE) as server, Wired(seeds=[server.url]) as wire:
        await ask(wire, server.url)
        with injector.failing(call, 1, errno.ECONNRESET):
            assert isinstance(await ask(wire, server.url), Response)
        assert (wire.statistics().retried, wire.statistics().made) == (1, 2)
