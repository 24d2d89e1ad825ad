"""Routes: httpx's own transport, one for each origin that is asked by HTTP/2 or by a proxy."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import ExitStack
from functools import partial
from typing import Any, cast

import httpx
import trio

from trio_crawler.model import Phase
from trio_crawler.net import transport as bridge
from trio_crawler.net.addresses import AddressPolicy
from trio_crawler.net.connection import Origin
from trio_crawler.net.dial import Dialer
from trio_crawler.net.httpx.adapter import CLOSING
from trio_crawler.net.httpx.context import ASKING, Meter, OneOnlyError
from trio_crawler.net.httpx.private import reset
from trio_crawler.net.httpx.proxies import Proxies
from trio_crawler.net.tls import Security

MOST_ROUTES = 100
"""Origins that are kept connected while nothing is asked of them."""

MOST_ONE_ONLY = 10_000
"""Origins without HTTP/2 that are remembered."""

_KEEPALIVE = 30.0
_EVERYWHERE = ("0.0.0.0/0", "::/0")


class Routes(httpx.AsyncBaseTransport):
    """Send requests by HTTP/2 to those that speak it, and through proxies.

    Each origin has a pool of its own, without a bound, so that nothing queues in it. Through a
    proxy no connection is kept: httpcore would take what came behind an answer for the next one.
    Raises OneOnlyError, before it has asked, where a server without a proxy has no HTTP/2.
    """

    def __init__(self, dial: Dialer, security: Security, proxies: Proxies, *, http2: bool) -> None:
        self._dial = dial
        self._dial_proxy = Dialer(AddressPolicy((), _EVERYWHERE))
        self._security = security
        self._proxies = proxies
        self._http2 = http2
        self._meter = Meter()
        self._routes: OrderedDict[Origin, _Route] = OrderedDict()
        self._one_only: dict[Origin, None] = {}

    def serves(self, origin: Origin) -> bool:
        """Tell whether an origin is asked this way, as far as is known."""
        if self._proxies(origin) is not None:
            return True
        return self._http2 and origin[0] == "https" and origin not in self._one_only

    def statistics(self) -> tuple[Meter, int]:
        """Count, and say how many of the open connections are idle."""
        idle = [route.transport for route in self._routes.values() if not route.under_way]
        return self._meter, sum(len(_pool(transport).connections) for transport in idle)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; the response's body is still to be read."""
        origin = bridge.origin_of(request)
        proxy = self._proxies(origin)
        if proxy is not None:
            self._dial.check_literal(origin[1])
            _tell_all(httpx.URL(proxy), request)
        await self._close_spoilt(origin)
        if origin not in self._routes:
            await self._close_surplus()
        route = self._route(origin, proxy)
        try:
            return await route.send(request)
        except OneOnlyError:
            self._remember(origin, route)
            raise

    async def aclose(self) -> None:
        """Close every connection."""
        routes = list(self._routes.values())
        self._routes.clear()
        await _close(routes)

    def _route(self, origin: Origin, proxy: str | None) -> _Route:
        if origin not in self._routes:
            alone = self._http2 and origin[0] == "https"
            make = partial(self._transport, origin, proxy)
            self._routes[origin] = _Route(make, self._meter, alone=alone)
        self._routes.move_to_end(origin)
        return self._routes[origin]

    def _transport(self, origin: Origin, proxy: str | None) -> httpx.AsyncHTTPTransport:
        # Imported when asked for: httpcore takes 60 ms.
        from trio_crawler.net.httpx.backend import Backend

        transport = httpx.AsyncHTTPTransport(
            verify=self._security.context(origin[1]),
            http2=self._http2,
            proxy=proxy,
            trust_env=False,
            limits=httpx.Limits(
                max_keepalive_connections=None if proxy is None else 0,
                keepalive_expiry=_KEEPALIVE,
            ),
        )
        dial = self._dial if proxy is None else self._dial_proxy
        url = None if proxy is None else httpx.URL(proxy)
        # httpx has no parameter for what httpcore calls the network backend.
        _pool(transport)._network_backend = Backend(dial, self._meter, url)
        return transport

    def _remember(self, origin: Origin, route: _Route) -> None:
        self._one_only[origin] = None
        if len(self._one_only) > MOST_ONE_ONLY:
            del self._one_only[next(iter(self._one_only))]
        # Nothing in it is open.
        if not route.under_way and self._routes.get(origin) is route:
            del self._routes[origin]

    async def _close_spoilt(self, origin: Origin) -> None:
        route = self._routes.get(origin)
        if route is not None and route.spoilt and not route.under_way:
            await _close([self._routes.pop(origin)])

    async def _close_surplus(self) -> None:
        idle = [origin for origin, route in self._routes.items() if not route.under_way]
        surplus = idle[: max(0, len(self._routes) + 1 - MOST_ROUTES)]
        await _close([self._routes.pop(origin) for origin in surplus])


def _tell_all(proxy: httpx.URL, request: httpx.Request) -> None:
    """Ask a proxy for the whole URL (RFC 9112, 3.2.2), unless it is to tunnel."""
    if request.url.scheme == "http" and proxy.scheme.startswith("http"):
        target = request.extensions.get("target", request.url.raw_path)
        whole = b"http://%b%b" % (request.headers["host"].encode(), target)
        request.extensions = {**request.extensions, "target": whole}


class _Route:
    """Hold the transport of one origin, and count the requests under way on it.

    With `alone` the first request sets HTTP/2 up alone: cancelled while httpcore does that, it
    would take all that wait for the same connection with it, by a ValueError.
    """

    def __init__(
        self, make: Callable[[], httpx.AsyncHTTPTransport], meter: Meter, *, alone: bool
    ) -> None:
        self._make = make
        self._meter = meter
        self.transport = make()
        self.under_way = 0
        self.spoilt = False
        self._one_only = False
        self._setting_up: trio.Lock | None = trio.Lock() if alone else None

    async def send(self, request: httpx.Request) -> httpx.Response:
        self.under_way += 1
        try:
            response = await self._sent(request)
        except BaseException as error:
            self.under_way -= 1
            # A cancellation while httpcore sets up HTTP/2 makes later requests fail.
            self.spoilt = self.spoilt or not isinstance(error, Exception)
            raise
        asking = ASKING.get()
        self._meter.reused += asking is not None and not asking.connected
        response.stream = _Stream(cast(httpx.AsyncByteStream, response.stream), self)
        return response

    async def _sent(self, request: httpx.Request) -> httpx.Response:
        lock = self._setting_up
        if lock is None:
            return await self.transport.handle_async_request(request)
        if asking := ASKING.get():
            asking.progress.phase = Phase.CONNECT
        await lock.acquire()
        with ExitStack() as turn:
            turn.callback(lock.release)
            if self._one_only:
                raise OneOnlyError
            if self._setting_up is not None:
                await self._renew()
                self._end_when_set_up(turn, request)
            else:
                turn.close()
            try:
                return await self.transport.handle_async_request(request)
            except OneOnlyError:
                self._one_only = True
                raise

    async def _renew(self) -> None:
        if self.spoilt:
            spoilt, self.transport, self.spoilt = self.transport, self._make(), False
            await spoilt.aclose()

    def _end_when_set_up(self, turn: ExitStack, request: httpx.Request) -> None:
        """Let the others go as soon as a connection takes this request."""
        told = request.extensions.get("trace")

        async def trace(event: str, details: Any) -> None:  # noqa: ASYNC124 - httpcore awaits it
            if event.endswith("send_request_headers.started") and not _is_connect(details):
                self._setting_up = None
                turn.close()
            if told is not None:
                await told(event, details)

        request.extensions = {**request.extensions, "trace": trace}


def _is_connect(details: Any) -> bool:
    """Tell whether what httpcore sends is its own request to a proxy for a tunnel."""
    return bool(details["request"].method == b"CONNECT")


class _Stream(httpx.AsyncByteStream):
    """Pass a body on, and count its request out when it is closed."""

    def __init__(self, stream: httpx.AsyncByteStream, route: _Route) -> None:
        self._stream = stream
        self._route: _Route | None = route

    def __aiter__(self) -> AsyncIterator[bytes]:
        return aiter(self._stream)

    async def aclose(self) -> None:
        if self._route is not None:
            self._route.under_way -= 1
            self._route = None
        try:
            await reset(self._stream)
        finally:
            await self._stream.aclose()  # noqa: ASYNC102 - it shields itself where it waits


def _pool(transport: httpx.AsyncHTTPTransport) -> Any:
    """Return httpcore's pool, of which httpx makes no use that we could borrow."""
    return transport._pool


async def _close(routes: Iterable[_Route]) -> None:
    with trio.move_on_after(CLOSING, shield=True):
        for route in routes:
            await route.transport.aclose()
