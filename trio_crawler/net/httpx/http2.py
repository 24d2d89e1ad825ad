"""Relay: HTTP/2 and proxies by httpx's own transport, all else by the wire."""

from __future__ import annotations

from dataclasses import replace

import httpx

from trio_crawler.net import transport as bridge
from trio_crawler.net.connection import Connection
from trio_crawler.net.direct import Direct, origin_of
from trio_crawler.net.head import Fields, Head
from trio_crawler.net.httpx.adapter import Answer, Outside
from trio_crawler.net.httpx.context import OneOnlyError
from trio_crawler.net.httpx.proxies import Proxies, need
from trio_crawler.net.httpx.transports import Routes
from trio_crawler.net.progress import Progress
from trio_crawler.net.request import Requests, Target
from trio_crawler.net.tls import Security
from trio_crawler.net.wire import Wire, WireStatistics


class Relay(httpx.AsyncBaseTransport):
    """Send requests by HTTP/2 if the server speaks it, and through proxies; else by `wire`.

    `proxy` is for everything; where none is given and `trust_env` is true, the proxies of the
    usual environment variables are used. Addresses are judged as the wire's are, but for names
    that a proxy looks up. A connection that was made only to find a server without HTTP/2 is
    closed, and the server asked by the wire from then on. `aclose` closes the wire too.

    Raises ValueError for a proxy that cannot be meant, and for packages that are missing.
    """

    def __init__(
        self, wire: Wire, security: Security, *, http2: bool, proxy: str | None, trust_env: bool
    ) -> None:
        if http2:
            need("h2", "HTTP/2", "http2")
        self.wire = wire
        proxies = Proxies(proxy, trust_env=trust_env)
        self.routes = Routes(wire.dial, security, proxies, http2=http2)

    def statistics(self) -> WireStatistics:
        """Count at this moment, the wire's included."""
        wire = self.wire.statistics()
        meter, idle = self.routes.statistics()
        return replace(
            wire,
            open=wire.open + meter.open,
            idle=wire.idle + idle,
            made=wire.made + meter.made,
            reused=wire.reused + meter.reused,
            bytes_in=wire.bytes_in + meter.bytes_in,
            bytes_out=wire.bytes_out + meter.bytes_out,
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; the response's body is still to be read."""
        if self.routes.serves(bridge.origin_of(request)):
            try:
                return await self.routes.handle_async_request(request)
            except OneOnlyError:
                pass
        return await self.wire.handle_async_request(request)

    async def aclose(self) -> None:
        """Close every connection, the wire's too."""
        await self.routes.aclose()
        await self.wire.aclose()


class Relayed:
    """Ask for URLs through a relay; what goes by its wire takes no detour through httpx.

    The head is given at once, the body by `read`, then `release`.
    """

    def __init__(self, requests: Requests, relay: Relay) -> None:
        self._routes = relay.routes
        self._direct = Direct(requests, relay.wire)
        self._outside = Outside(requests, relay.routes)

    async def ask(
        self, url: str, progress: Progress, most: int, added: Fields | None = None
    ) -> tuple[Connection | Answer, Head, bytes]:
        """Ask for a URL with GET, with the `added` fields; tell what was sent. Raises Faulty."""
        if self._routes.serves(origin_of(Target.of(url))):
            try:
                return await self._outside.ask(url, progress, most, added)
            except OneOnlyError:
                pass
        return await self._direct.ask(url, progress, most, added)

    async def release(self, answer: Connection | Answer) -> None:
        """Keep the connection if its body was read, else close it."""
        if isinstance(answer, Connection):
            await self._direct.release(answer)
        else:
            await self._outside.release(answer)
