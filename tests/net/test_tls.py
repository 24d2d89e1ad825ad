from __future__ import annotations

import datetime
import gc
import ssl

import pytest
import trio
from sites.raw import raw_server, reply
from sites.steps import cancelled_at, until

from trio_crawler.model import Fault, Job, Reason, Response
from trio_crawler.net.fetch import HttpFetch
from trio_crawler.net.pool import Pool
from trio_crawler.policy.limits import Limits

trustme = pytest.importorskip("trustme")


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def server_context(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate.configure_cert(context)
    return context


@pytest.fixture(scope="module")
def server_tls(authority: trustme.CA) -> ssl.SSLContext:
    return server_context(authority.issue_cert("127.0.0.1"))


@pytest.fixture(scope="module")
def client_tls(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


async def fault(url: str, tls: ssl.SSLContext | None = None) -> Fault:
    async with Pool(tls=tls) as pool:
        answer = await HttpFetch(pool)(Job(url))
        assert pool.statistics().open == 0
    assert isinstance(answer, Fault)
    return answer


async def test_https_is_spoken_over_a_kept_connection(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    site = {"/": reply(body=b"secret")}
    async with raw_server(site, tls=server_tls) as server, Pool(tls=client_tls) as pool:
        for _ in range(3):
            answer = await HttpFetch(pool)(Job(server.url))
            assert isinstance(answer, Response)
            assert answer.body == b"secret"
        assert pool.statistics().reused == 2


async def test_a_certificate_nobody_vouches_for_is_refused_before_anything_is_asked(
    server_tls: ssl.SSLContext,
) -> None:
    async with raw_server({}, tls=server_tls) as server:
        answer = await fault(server.url)
    assert answer.reason is Reason.TLS
    assert "certificate" in answer.detail
    assert server.requests == []


async def test_a_certificate_that_has_expired_is_named_as_such(
    authority: trustme.CA, client_tls: ssl.SSLContext
) -> None:
    past = datetime.datetime(2001, 1, 1, tzinfo=datetime.UTC)
    expired = server_context(authority.issue_cert("127.0.0.1", not_after=past))
    async with raw_server({}, tls=expired) as server:
        answer = await fault(server.url, client_tls)
    assert answer.reason is Reason.TLS
    assert answer.detail == f"the certificate of 127.0.0.1:{server.port} has expired"


async def test_a_certificate_for_another_name_is_refused(
    authority: trustme.CA, client_tls: ssl.SSLContext
) -> None:
    other = server_context(authority.issue_cert("other.test"))
    async with raw_server({}, tls=other) as server:
        answer = await fault(server.url, client_tls)
    assert answer.reason is Reason.TLS
    assert "not valid for" in answer.detail


async def test_a_server_that_speaks_no_tls_is_a_tls_fault(client_tls: ssl.SSLContext) -> None:
    async def plain(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(reply(400))

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, plain, 0)
        port = listeners[0].socket.getsockname()[1]
        answer = await fault(f"https://127.0.0.1:{port}/", client_tls)
        nursery.cancel_scope.cancel()
    assert answer.reason is Reason.TLS


async def test_a_server_that_closes_in_the_handshake_is_a_reset(
    client_tls: ssl.SSLContext,
) -> None:
    async def close(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, close, 0)
        port = listeners[0].socket.getsockname()[1]
        answer = await fault(f"https://127.0.0.1:{port}/", client_tls)
        nursery.cancel_scope.cancel()
    assert answer.reason is Reason.RESET


async def test_a_fetch_cancelled_anywhere_in_the_handshake_leaves_no_connection_behind(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    cancelled = 0
    async with raw_server({"/": reply(body=b"a")}, tls=server_tls) as server:
        # Without the collector only what was closed on purpose is closed.
        gc.disable()
        try:
            for checkpoint in range(1, 1000):
                async with Pool(tls=client_tls) as pool:
                    fetch = HttpFetch(pool, limits=Limits(timeout=20))
                    ended = await cancelled_at(checkpoint, lambda: fetch(Job(server.url)))  # noqa: B023
                    assert pool.statistics().open == pool.statistics().idle
                    await until(lambda: server.open == pool.statistics().open)
                await until(lambda: server.open == 0)
                cancelled += ended
                if not ended and checkpoint > cancelled + 5:
                    break
        finally:
            gc.enable()
    assert cancelled >= 5
