"""Open a stream to an origin: a connected socket, or a tunnel of a proxy, with TLS for https."""

from __future__ import annotations

import math
import ssl
from collections.abc import Sequence
from contextlib import suppress

import trio

from trio_crawler.model import Phase, Reason
from trio_crawler.net.dial.dial import Dialer
from trio_crawler.net.dial.resolve import server_name
from trio_crawler.net.dial.stream import PlainStream, Stream
from trio_crawler.net.errors import FetchError, name_fault, socket_fault, speaks_no_tls
from trio_crawler.net.http1.connection import Connection, Origin
from trio_crawler.net.progress import Progress
from trio_crawler.net.proxy import socks, tunnel
from trio_crawler.net.proxy.choice import Proxies, Proxy
from trio_crawler.net.proxy.forward import ForwardedConnection
from trio_crawler.net.proxy.refusal import proxy_fault
from trio_crawler.net.tls.security import HTTP1, Security
from trio_crawler.net.tls.sessions import NotResumedError


class Connector:
    """Open streams to origins, at addresses that `dial` allows.

    An origin that has one of the `proxies` is reached through it, by `dial_proxy`. Then `dial`
    judges only a host that is an address: the proxy looks up names.
    """

    def __init__(
        self, dial: Dialer, security: Security, proxies: Proxies | None, dial_proxy: Dialer
    ) -> None:
        self.dial = dial
        self.dial_proxy = dial_proxy
        self.proxies = proxies
        self._security = security
        self._known: set[Proxy] = set()

    async def __call__(
        self, origin: Origin, progress: Progress, protocols: Sequence[str] = HTTP1
    ) -> Stream:
        """Return a stream to an origin; the caller closes it.

        `protocols` are offered to the server of an https origin (ALPN, RFC 7301); the stream has
        the chosen one as `protocol`. For an http origin with an HTTP proxy it is a stream to the
        proxy, for a `connection`. Raises FetchError.
        """
        try:
            # A server that fails on an earlier session gets a full handshake; so does a proxy.
            for _ in range(2):
                with suppress(NotResumedError):
                    return await self._opened(origin, progress, protocols)
            return await self._opened(origin, progress, protocols)
        except OSError as error:
            fault = socket_fault(error, progress)
            raise FetchError(fault.reason, fault.detail, fault.phase) from error

    async def look_up_early(self, origin: Origin, within: float) -> float:
        """Look up the host of an origin, unless a proxy does; see `Resolver.look_up_early`."""
        if self.proxies is not None and self.proxies(origin) is not None:
            await trio.lowlevel.checkpoint()
            return math.inf
        return await self.dial.look_up_early(origin[1], within)

    def addresses(self, origin: Origin) -> Sequence[str]:
        """Return the known addresses of an origin, none if a proxy looks its name up."""
        proxied = self.proxies is not None and self.proxies(origin) is not None
        return () if proxied else self.dial.known(origin[1])

    def connection(self, origin: Origin, stream: Stream) -> Connection:
        """Return a connection for HTTP/1.1 over a stream to an origin."""
        proxy = None if self.proxies is None else self.proxies(origin)
        if proxy is None or proxy.is_socks or origin[0] == "https":
            return Connection(origin, stream)
        return ForwardedConnection(origin, stream, proxy, self._known)

    async def _opened(
        self, origin: Origin, progress: Progress, protocols: Sequence[str]
    ) -> Stream:
        proxy = None if self.proxies is None else self.proxies(origin)
        if proxy is not None:
            return await self._stream_by(proxy, origin, progress, protocols)
        return await self._stream(origin, progress, protocols)

    async def _stream(
        self, origin: Origin, progress: Progress, protocols: Sequence[str]
    ) -> Stream:
        scheme, host, port = origin
        stream = PlainStream(await self.dial(host, port, progress))
        if scheme == "http":
            return stream
        progress.phase = Phase.TLS
        return await self._security.secure(stream, host, protocols, port)

    async def _stream_by(
        self, proxy: Proxy, origin: Origin, progress: Progress, protocols: Sequence[str]
    ) -> Stream:
        scheme, host, port = origin
        self.dial.check_literal(host, port)
        # Not set back by an error: a deadline that passes names what was waited for.
        progress.server = proxy.label
        stream = await self._stream_to(proxy, progress)
        site = server_name(host, port)
        through = f"{site} through {proxy.label}"
        if scheme == "https" or proxy.is_socks:
            connect = socks.connect if proxy.is_socks else tunnel.connect
            progress.server = through
            progress.phase = Phase.CONNECT
            try:
                await connect(stream, proxy, host, port)
            except BaseException:
                stream.close()
                raise
        progress.server = site
        if scheme == "http":
            return stream
        progress.phase = Phase.TLS
        try:
            return await self._security.secure(stream, host, protocols, port)
        except (ConnectionError, ssl.SSLEOFError):
            # The client cannot know which of the two has ended the connection.
            progress.server = through
            raise

    async def _stream_to(self, proxy: Proxy, progress: Progress) -> Stream:
        try:
            stream = PlainStream(await self.dial_proxy(proxy.host, proxy.port, progress))
        except FetchError as error:
            if error.fault.phase is not Phase.RESOLVE:
                raise
            raise _nameless(proxy, error) from error
        if proxy.scheme != "https":
            return stream
        progress.phase = Phase.TLS
        try:
            return await self._security.secure(stream, proxy.host, HTTP1, proxy.port)
        except OSError as error:
            if speaks_no_tls(error):
                raise proxy_fault(f"{proxy.label} does not speak TLS on this port") from error
            raise


def _nameless(proxy: Proxy, error: FetchError) -> FetchError:
    """Return the error for a proxy whose name cannot be looked up."""
    if isinstance(error.__cause__, OSError):
        fault = name_fault(error.__cause__, proxy.label)
        # It is the proxy that is not known, not the host of the URL.
        reason = Reason.DNS if fault.reason is Reason.NO_SUCH_HOST else fault.reason
        return FetchError(reason, fault.detail, Phase.RESOLVE)
    detail = f"{proxy.label} cannot be used: {error.fault.detail}"
    return FetchError(Reason.DNS, detail, Phase.RESOLVE)
