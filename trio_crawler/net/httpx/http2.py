"""Send requests by HTTP/2 and through proxies by httpx, and all others by the wire."""

from __future__ import annotations

from dataclasses import replace

import httpx

from trio_crawler.net.connection import Connection
from trio_crawler.net.fetch import WireAdapter, origin_of
from trio_crawler.net.head import Fields, Head
from trio_crawler.net.httpx.adapter import HttpxAdapter, ResponseBody
from trio_crawler.net.httpx.context import NoHttp2
from trio_crawler.net.httpx.proxies import Proxies, require_package
from trio_crawler.net.httpx.transports import MAX_IDLE_ORIGINS, OriginTransports
from trio_crawler.net.progress import Progress
from trio_crawler.net.request import Requests, Target
from trio_crawler.net.statistics import WireStatistics
from trio_crawler.net.tls import Security
from trio_crawler.net.wire import Wire


class Http2OrProxy:
    """A Network: httpx for servers with HTTP/2 and for proxies, else the wire.

    `proxy` is used for every request; with `trust_env`, the proxies of the usual environment
    variables are. Addresses are checked by the policy of the wire, except the addresses of names
    that a proxy looks up. If the first connection to a server shows that it does not support
    HTTP/2, that connection is closed, and the wire is used for that server. `aclose` closes the
    wire too.

    Raises ValueError for an invalid proxy, and for a missing package.
    """

    def __init__(
        self,
        requests: Requests,
        wire: Wire,
        security: Security,
        *,
        http2: bool = False,
        proxy: str | httpx.URL | None = None,
        trust_env: bool = False,
        max_idle_origins: int = MAX_IDLE_ORIGINS,
    ) -> None:
        if http2:
            require_package("http2", "h2", "HTTP/2", "http2")
        proxies = Proxies(proxy, trust_env=trust_env)
        self.wire = wire
        self._transports = OriginTransports(
            wire.dial, security, proxies, http2=http2, max_idle_origins=max_idle_origins
        )
        self._by_wire = WireAdapter(requests, wire)
        self._by_httpx = HttpxAdapter(requests, self._transports, reports=True)

    async def ask(
        self, url: str, progress: Progress, max_bytes: int, added: Fields | None = None
    ) -> tuple[Connection | ResponseBody, Head, bytes]:
        """Send a GET request; see `Network.ask`. Raises FetchError."""
        if self._transports.serves(origin_of(Target.of(url))):
            try:
                return await self._by_httpx.ask(url, progress, max_bytes, added)
            except NoHttp2:
                pass
        return await self._by_wire.ask(url, progress, max_bytes, added)

    async def release(self, source: Connection | ResponseBody) -> None:
        """Keep the connection if the body was read, else close it."""
        if isinstance(source, Connection):
            await self._by_wire.release(source)
        else:
            await self._by_httpx.release(source)

    def statistics(self) -> WireStatistics:
        """Return the counts of connections and bytes, with those of the wire."""
        wire = self._by_wire.statistics()
        counts, idle = self._transports.statistics()
        return replace(
            wire,
            open=wire.open + counts.open,
            idle=wire.idle + idle,
            made=wire.made + counts.made,
            reused=wire.reused + counts.reused,
            bytes_in=wire.bytes_in + counts.bytes_in,
            bytes_out=wire.bytes_out + counts.bytes_out,
        )

    async def aclose(self) -> None:
        """Close every connection, and the wire."""
        await self._transports.aclose()
        await self._by_wire.aclose()
