"""Relay: httpx's own transport for what the wire does not speak, HTTP/2 and proxies."""

from __future__ import annotations

import ssl
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial
from importlib.util import find_spec
from typing import Any, cast
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx
import trio

from trio_crawler.model import Phase, Reason
from trio_crawler.net import bridge
from trio_crawler.net.connection import Origin
from trio_crawler.net.dial import Dialer
from trio_crawler.net.faults import Faulty, fault_of
from trio_crawler.net.progress import Progress
from trio_crawler.net.tls import Security
from trio_crawler.net.wire import Wire, WireStatistics

MOST_ROUTES = 100
"""Origins that are kept connected while nothing is asked of them."""

_PROXIED = ("http", "https", "all")
_KEEPALIVE = 30.0
_CLOSING = 1.0


class Relay(httpx.AsyncBaseTransport):
    """Send requests by HTTP/2 if the server speaks it, and through proxies; else by `wire`.

    Each origin has a pool of its own, without a bound, so that nothing queues in it. `proxy` is
    for everything; where none is given and `trust_env` is true, the proxies of the usual
    environment variables are used. Addresses are judged as the wire's are, but for names that a
    proxy looks up. `aclose` closes the wire too.

    Raises ValueError for a proxy that cannot be meant, and for packages that are missing.
    """

    def __init__(
        self, wire: Wire, security: Security, *, http2: bool, proxy: str | None, trust_env: bool
    ) -> None:
        if http2:
            _need("h2", "HTTP/2", "http2")
        self._wire = wire
        self._security = security
        self._http2 = http2
        self._by_environment = trust_env and not proxy
        self._proxies = {"all": proxy} if proxy else _of_environment() if trust_env else {}
        for url in self._proxies.values():
            _check_proxy(url)
        self._routes: OrderedDict[Origin, _Route] = OrderedDict()

    def statistics(self) -> WireStatistics:
        """Count what goes by the wire."""
        return self._wire.statistics()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; the response's body is still to be read."""
        origin = bridge.origin_of(request)
        proxy = self._proxy_for(origin)
        if proxy is None and not (self._http2 and origin[0] == "https"):
            return await self._wire.handle_async_request(request)
        await self._close_spoilt(origin)
        if origin not in self._routes:
            await self._close_surplus()
        route = self._route(origin, proxy)
        if proxy is None:
            return await route.send(request)
        self._wire.dial.check_literal(origin[1])
        return await _through(proxy, route, request)

    async def aclose(self) -> None:
        """Close every connection, the wire's too."""
        routes = list(self._routes.values())
        self._routes.clear()
        await _close(routes)
        await self._wire.aclose()

    def _proxy_for(self, origin: Origin) -> str | None:
        scheme, host, port = origin
        if self._by_environment and proxy_bypass(f"{host}:{port}"):
            return None
        return self._proxies.get(scheme) or self._proxies.get("all")

    def _route(self, origin: Origin, proxy: str | None) -> _Route:
        if origin not in self._routes:
            self._routes[origin] = _Route(partial(self._transport, origin, proxy))
        self._routes.move_to_end(origin)
        return self._routes[origin]

    def _transport(self, origin: Origin, proxy: str | None) -> httpx.AsyncHTTPTransport:
        transport = httpx.AsyncHTTPTransport(
            verify=self._security.context(origin[1]),
            http2=self._http2,
            proxy=proxy,
            trust_env=False,
            limits=httpx.Limits(keepalive_expiry=_KEEPALIVE),
        )
        if proxy is None:
            # httpx has no parameter for what httpcore calls the network backend.
            transport._pool._network_backend = _Backend(self._wire.dial)
        return transport

    async def _close_spoilt(self, origin: Origin) -> None:
        route = self._routes.get(origin)
        if route is not None and route.spoilt and not route.under_way:
            await _close([self._routes.pop(origin)])

    async def _close_surplus(self) -> None:
        idle = [origin for origin, route in self._routes.items() if not route.under_way]
        surplus = idle[: max(0, len(self._routes) + 1 - MOST_ROUTES)]
        await _close([self._routes.pop(origin) for origin in surplus])


async def _through(proxy: str, route: _Route, request: httpx.Request) -> httpx.Response:
    """Send by a proxy, which is to blame when there is no connection."""
    url = httpx.URL(proxy)
    if request.url.scheme == "http" and url.scheme.startswith("http"):
        # RFC 9112, 3.2.2: a proxy is told the whole URL.
        target = request.extensions.get("target", request.url.raw_path)
        whole = b"http://%b%b" % (request.headers["host"].encode(), target)
        request.extensions = {**request.extensions, "target": whole}
    try:
        return await route.send(request)
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        fault = fault_of(error, f"the proxy {url.host}:{url.port}", None)
        if fault.reason is Reason.TLS:
            raise
        raise Faulty(fault.reason, fault.detail, Phase.CONNECT) from error


class _Route:
    """Hold the transport of one origin, and count the requests under way on it."""

    def __init__(self, make: Callable[[], httpx.AsyncHTTPTransport]) -> None:
        self._make = make
        self.transport = make()
        self.under_way = 0
        self.spoilt = False
        # The first request runs alone: cancelled while httpcore sets HTTP/2 up, it would take
        # all that wait for the same connection with it, by a ValueError.
        self._first: trio.Lock | None = trio.Lock()

    async def send(self, request: httpx.Request) -> httpx.Response:
        self.under_way += 1
        try:
            response = await self._sent(request)
        except BaseException as error:
            self.under_way -= 1
            # A cancellation while httpcore sets up HTTP/2 makes later requests fail.
            self.spoilt = self.spoilt or not isinstance(error, Exception)
            raise
        response.stream = _Stream(cast(httpx.AsyncByteStream, response.stream), self)
        return response

    async def _sent(self, request: httpx.Request) -> httpx.Response:
        if self._first is None:
            return await self.transport.handle_async_request(request)
        async with self._first:
            if self.spoilt:
                spoilt, self.transport, self.spoilt = self.transport, self._make(), False
                await spoilt.aclose()
            response = await self.transport.handle_async_request(request)
            self._first = None
        return response


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
        await self._stream.aclose()


class _Backend(httpcore.AsyncNetworkBackend):
    """Connect to checked addresses only, and to exactly those."""

    def __init__(self, dial: Dialer) -> None:
        self._dial = dial
        self._backend = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore has it so
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        addresses = await self._dial.addresses(host, port, Progress(host))
        for address in addresses[:-1]:
            try:
                return _Tcp(await self._backend.connect_tcp(address, port, timeout))
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return _Tcp(await self._backend.connect_tcp(addresses[-1], port, timeout))

    async def sleep(self, seconds: float) -> None:
        await trio.sleep(seconds)


class _Tcp(httpcore.AsyncNetworkStream):
    """Pass everything on, and close what httpcore forgets when TLS is cancelled."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        return await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore has it so
    ) -> httpcore.AsyncNetworkStream:
        try:
            return await self._stream.start_tls(ssl_context, server_hostname, timeout)
        except BaseException:
            with trio.move_on_after(_CLOSING, shield=True):
                await self._stream.aclose()
            raise

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


async def _close(routes: Iterable[_Route]) -> None:
    with trio.move_on_after(_CLOSING, shield=True):
        for route in routes:
            await route.transport.aclose()


def _of_environment() -> dict[str, str]:
    """Return the proxies that the environment names; http:// may be left out, as in curl."""
    named = {scheme: url for scheme, url in getproxies().items() if scheme in _PROXIED}
    return {scheme: url if "://" in url else f"http://{url}" for scheme, url in named.items()}


def _check_proxy(url: str) -> None:
    try:
        scheme = httpx.Proxy(url).url.scheme
    except (ValueError, httpx.InvalidURL):
        # The URL may hold a password, so it is not shown.
        raise ValueError("a proxy has to be a URL such as http://127.0.0.1:3128") from None
    if scheme.startswith("socks"):
        _need("socksio", "a SOCKS proxy", "socks")


def _need(package: str, what: str, extra: str) -> None:
    if find_spec(package) is None:
        raise ValueError(
            f"{what} needs the package {package}: pip install 'trio-crawler[{extra}]'"
        )
