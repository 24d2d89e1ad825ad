"""One httpx transport for each origin, for HTTP/2 and proxies."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import ExitStack
from functools import partial
from typing import Any, cast

import httpx
import trio

from trio_crawler.model import Phase
from trio_crawler.net.addresses import AddressPolicy
from trio_crawler.net.connection import Origin
from trio_crawler.net.dial import Dialer
from trio_crawler.net.httpx.adapter import CLOSE_TIMEOUT
from trio_crawler.net.httpx.backend import Backend
from trio_crawler.net.httpx.context import REQUEST_CONTEXT, ConnectionCounts, NoHttp2
from trio_crawler.net.httpx.private import (
    count_connections,
    reset_http2_stream,
    set_network_backend,
)
from trio_crawler.net.httpx.proxies import Proxies
from trio_crawler.net.tls import Security
from trio_crawler.net.transport import origin_of

MAX_IDLE_ORIGINS = 100
"""The most origins that stay connected without a request in flight."""

MAX_WITHOUT_HTTP2 = 10_000
"""The most origins that are recorded as being without HTTP/2."""

_KEEPALIVE = 30.0
_EVERYWHERE = ("0.0.0.0/0", "::/0")


class OriginTransports(httpx.AsyncBaseTransport):
    """Send requests by HTTP/2 to servers that support it, and through proxies.

    Each origin has its own connection pool, without a bound, so that no request queues in it.
    Connections through a proxy are not reused: httpcore would read bytes after a response as the
    next response. Raises NoHttp2, before a request is sent, for a server that does not support
    HTTP/2 and is reached without a proxy.
    """

    def __init__(
        self,
        dial: Dialer,
        security: Security,
        proxies: Proxies,
        *,
        http2: bool,
        max_idle_origins: int = MAX_IDLE_ORIGINS,
    ) -> None:
        self._dial = dial
        self._dial_proxy = Dialer(AddressPolicy((), _EVERYWHERE))
        self._security = security
        self._proxies = proxies
        self._http2 = http2
        self._max_idle_origins = max_idle_origins
        self._counts = ConnectionCounts()
        # In the order of their last use.
        self._transports: OrderedDict[Origin, _OriginTransport] = OrderedDict()
        self._without_http2: dict[Origin, None] = {}

    def serves(self, origin: Origin) -> bool:
        """Whether to send requests to an origin by this transport, as far as is known."""
        if self._proxies(origin) is not None:
            return True
        return self._http2 and origin[0] == "https" and origin not in self._without_http2

    def statistics(self) -> tuple[ConnectionCounts, int]:
        """Return the counts, and the number of open connections that are idle."""
        transports = self._transports.values()
        idle = [each.transport for each in transports if not each.in_flight]
        return self._counts, sum(map(count_connections, idle))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; return its response with an unread body."""
        origin = origin_of(request)
        proxy = self._proxies(origin)
        if proxy is not None:
            self._dial.check_literal(origin[1], origin[2])
            _target_whole_url(httpx.URL(proxy), request)
        await self._close_unusable(origin)
        if origin not in self._transports:
            await self._close_surplus()
        transport = self._transport(origin, proxy)
        try:
            return await transport.send(request)
        except NoHttp2:
            self._remember(origin, transport)
            raise

    async def aclose(self) -> None:
        """Close every connection."""
        transports = list(self._transports.values())
        self._transports.clear()
        await _close(transports)

    def _transport(self, origin: Origin, proxy: str | None) -> _OriginTransport:
        if origin not in self._transports:
            alone = self._http2 and origin[0] == "https"
            make = partial(self._made, origin, proxy)
            self._transports[origin] = _OriginTransport(make, self._counts, alone=alone)
        self._transports.move_to_end(origin)
        return self._transports[origin]

    def _made(self, origin: Origin, proxy: str | None) -> httpx.AsyncHTTPTransport:
        transport = httpx.AsyncHTTPTransport(
            verify=self._security.context(origin[1]),
            http2=self._http2,
            proxy=None if proxy is None else self._proxy(proxy),
            trust_env=False,
            limits=httpx.Limits(
                max_keepalive_connections=None if proxy is None else 0,
                keepalive_expiry=_KEEPALIVE,
            ),
        )
        dial = self._dial if proxy is None else self._dial_proxy
        url = None if proxy is None else httpx.URL(proxy)
        set_network_backend(transport, Backend(dial, self._counts, url))
        return transport

    def _proxy(self, proxy: str) -> httpx.Proxy:
        """Return a proxy with the context that verifies its certificate, if it has one."""
        url = httpx.URL(proxy)
        if url.scheme != "https":
            return httpx.Proxy(url)
        host = url.raw_host.decode("ascii")
        return httpx.Proxy(url, ssl_context=self._security.context(host))

    def _remember(self, origin: Origin, transport: _OriginTransport) -> None:
        self._without_http2[origin] = None
        if len(self._without_http2) > MAX_WITHOUT_HTTP2:
            del self._without_http2[next(iter(self._without_http2))]
        # It has no open connection, so it need not be closed.
        if not transport.in_flight and self._transports.get(origin) is transport:
            del self._transports[origin]

    async def _close_unusable(self, origin: Origin) -> None:
        transport = self._transports.get(origin)
        if transport is not None and transport.unusable and not transport.in_flight:
            await _close([self._transports.pop(origin)])

    async def _close_surplus(self) -> None:
        idle = [origin for origin, each in self._transports.items() if not each.in_flight]
        surplus = idle[: max(0, len(self._transports) + 1 - self._max_idle_origins)]
        await _close([self._transports.pop(origin) for origin in surplus])


def _target_whole_url(proxy: httpx.URL, request: httpx.Request) -> None:
    """Set the whole URL as the target (RFC 9112, 3.2.2), unless the proxy makes a tunnel."""
    if request.url.scheme == "http" and proxy.scheme.startswith("http"):
        target = request.extensions.get("target", request.url.raw_path)
        whole = b"http://%b%b" % (request.headers["host"].encode(), target)
        request.extensions = {**request.extensions, "target": whole}


class _OriginTransport:
    """The transport of one origin, and the number of its requests in flight.

    With `alone` all other requests wait until the first one has set up HTTP/2. Otherwise, if that
    one is cancelled, httpcore raises ValueError in all requests that wait for the connection.
    """

    def __init__(
        self,
        make: Callable[[], httpx.AsyncHTTPTransport],
        counts: ConnectionCounts,
        *,
        alone: bool,
    ) -> None:
        self._make = make
        self._counts = counts
        self.transport = make()
        self.in_flight = 0
        self.unusable = False
        self._no_http2 = False
        self._setting_up: trio.Lock | None = trio.Lock() if alone else None

    async def send(self, request: httpx.Request) -> httpx.Response:
        self.in_flight += 1
        try:
            response = await self._sent(request)
        except BaseException as error:
            self.in_flight -= 1
            # A cancellation while httpcore sets up HTTP/2 makes later requests fail.
            self.unusable = self.unusable or not isinstance(error, Exception)
            raise
        context = REQUEST_CONTEXT.get()
        self._counts.reused += context is not None and not context.connected
        response.stream = _BodyStream(cast(httpx.AsyncByteStream, response.stream), self)
        return response

    async def _sent(self, request: httpx.Request) -> httpx.Response:
        lock = self._setting_up
        if lock is None:
            return await self.transport.handle_async_request(request)
        if context := REQUEST_CONTEXT.get():
            context.progress.phase = Phase.CONNECT
        await lock.acquire()
        with ExitStack() as held:
            held.callback(lock.release)
            if self._no_http2:
                raise NoHttp2
            if self._setting_up is not None:
                await self._renew()
                self._release_when_set_up(held, request)
            else:
                held.close()
            try:
                return await self.transport.handle_async_request(request)
            except NoHttp2:
                self._no_http2 = True
                raise

    async def _renew(self) -> None:
        if self.unusable:
            old, self.transport, self.unusable = self.transport, self._make(), False
            await old.aclose()

    def _release_when_set_up(self, held: ExitStack, request: httpx.Request) -> None:
        """Release the lock as soon as a connection sends this request."""
        outer = request.extensions.get("trace")

        async def trace(event: str, details: Any) -> None:  # noqa: ASYNC124 - httpcore awaits it
            if event.endswith("send_request_headers.started") and not _is_connect(details):
                self._setting_up = None
                held.close()
            if outer is not None:
                await outer(event, details)

        request.extensions = {**request.extensions, "trace": trace}


def _is_connect(details: Any) -> bool:
    """Whether httpcore sends its own request for a tunnel to a proxy."""
    return bool(details["request"].method == b"CONNECT")


class _BodyStream(httpx.AsyncByteStream):
    """The stream of a body; its request counts as in flight until it is closed."""

    def __init__(self, stream: httpx.AsyncByteStream, transport: _OriginTransport) -> None:
        self._stream = stream
        self._transport: _OriginTransport | None = transport

    def __aiter__(self) -> AsyncIterator[bytes]:
        return aiter(self._stream)

    async def aclose(self) -> None:
        if self._transport is not None:
            self._transport.in_flight -= 1
            self._transport = None
        try:
            await reset_http2_stream(self._stream)
        finally:
            await self._stream.aclose()  # noqa: ASYNC102 - it shields itself where it waits


async def _close(transports: Iterable[_OriginTransport]) -> None:
    with trio.move_on_after(CLOSE_TIMEOUT, shield=True):
        for each in transports:
            await each.transport.aclose()
