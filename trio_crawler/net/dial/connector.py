"""Open a stream to an origin: a connected socket, or a tunnel of a proxy, with TLS for https."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from itertools import chain, zip_longest
from typing import TypeAlias

import trio

from trio_crawler.in_trio import start_soon
from trio_crawler.model import Phase, Reason
from trio_crawler.net.dial.addresses import AddressPolicy, as_in_url, parse_address
from trio_crawler.net.dial.resolve import Resolve, Resolver, server_name
from trio_crawler.net.dial.stream import PlainStream, Stream
from trio_crawler.net.errors import (
    FetchError,
    connect_fault,
    socket_error,
    speaks_no_tls,
)
from trio_crawler.net.http1.connection import Connection, Origin
from trio_crawler.net.proxy import (
    ForwardedConnection,
    Proxies,
    Proxy,
    proxy_fault,
    socks_tunnel,
    tunnel,
)
from trio_crawler.net.tls import HTTP1, Security
from trio_crawler.net.turn import Progress

STAGGER = 0.25
"""Seconds between the starts of two attempts (RFC 8305, 5, recommends 250 ms)."""

MAX_ADDRESSES = 16
"""The most addresses of one host that are tried; a name may have thousands."""

Connect: TypeAlias = Callable[[str, int], Awaitable[socket.socket]]


async def connect(address: str, port: int) -> socket.socket:
    """Return a socket, non-blocking and without Nagle's delay, connected to an address.

    The caller closes it. Raises OSError. `address` must not be a name: its lookup would block.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        number = sock.connect_ex((address, port))
        if number == errno.EINPROGRESS:
            await trio.lowlevel.wait_writable(sock)
            number = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        else:
            await trio.lowlevel.checkpoint()
        if number:
            raise OSError(number, os.strerror(number))
    except BaseException:
        sock.close()
        raise
    return sock


class Dialer:
    """Connect to hosts; every address is checked by the policy before it is connected to.

    If a host has several addresses, the first one that accepts is used (RFC 8305). The next
    attempt starts `stagger` seconds after the one before, or as soon as an attempt fails. `kind`
    precedes the name of a host in messages ("the proxy ", for example).
    """

    def __init__(
        self,
        policy: AddressPolicy,
        resolve: Resolve | None = None,
        *,
        stagger: float = STAGGER,
        connect: Connect = connect,
        kind: str = "",
    ) -> None:
        self._policy = policy
        self.resolve = resolve or Resolver()
        self._stagger = stagger
        self._connect = connect
        self._kind = kind

    async def __call__(self, host: str, port: int, progress: Progress) -> socket.socket:
        """Return a connected, non-blocking socket; the caller closes it.

        `host` is a name or an address, in brackets or not. Raises FetchError, and OSError for an
        error that is not due to the network.
        """
        progress.phase = Phase.RESOLVE
        found = await self.resolve(host, port)
        progress.phase = Phase.CONNECT
        addresses = _interleaved(self._allowed(host, port, found))[:MAX_ADDRESSES]
        if len(addresses) > 1:
            sock, errors = await _race(addresses, port, self._connect, self._stagger)
            if sock is not None:
                return sock
        else:
            try:
                return await self._connect(addresses[0], port)
            except OSError as error:
                errors = [error]
        fault = connect_fault(errors, self._kind + server_name(host, port))
        if fault is None:
            # None of them is an error of the network.
            raise errors[0]
        more = self._policy.withheld(host)
        detail = f"{fault.detail}; {more}" if more else fault.detail
        raise FetchError(fault.reason, detail, Phase.CONNECT)

    def check_literal(self, host: str, port: int) -> None:
        """Raise FetchError(BLOCKED_ADDRESS) for a host that is an address and is blocked.

        An address may be spelled as in no normalised URL, such as 127.1: a proxy would know it.
        """
        with suppress(ValueError):
            host = as_in_url(host)
        if parse_address(host) is not None:
            self._allowed(host, port, [host])

    def _allowed(self, host: str, port: int, found: Sequence[str]) -> list[str]:
        self._policy.record(host, found)
        reasons = {address: self._policy.block_reason(host, port, address) for address in found}
        allowed = [address for address in found if reasons[address] is None]
        if not allowed:
            detail = next(filter(None, reasons.values()), f"{host} has no address")
            raise FetchError(Reason.BLOCKED_ADDRESS, detail, Phase.CONNECT)
        return allowed


async def _race(
    addresses: Sequence[str], port: int, connect: Connect, stagger: float
) -> tuple[socket.socket | None, list[OSError]]:
    """Start attempts one after the other until one succeeds; close all others."""
    winner: list[socket.socket] = []
    errors: list[OSError] = []
    failed = trio.Event()

    async def attempt(address: str) -> None:
        try:
            sock = await connect(address, port)
        except OSError as error:
            errors.append(error)
            failed.set()
            return
        if winner:
            # Another attempt succeeded at the same moment.
            sock.close()
        else:
            winner.append(sock)
            nursery.cancel_scope.cancel()

    try:
        async with trio.open_nursery() as nursery:
            for address in addresses:
                failed = trio.Event()
                start_soon(nursery, attempt, address)
                with trio.move_on_after(stagger):
                    await failed.wait()
    except BaseException:
        for sock in winner:
            sock.close()
        raise
    return (winner[0] if winner else None), errors


def _interleaved(addresses: Sequence[str]) -> list[str]:
    """Return addresses with alternating families, that of the first one first (RFC 8305, 4)."""
    is_v6 = ":" in addresses[0]
    first = [address for address in addresses if (":" in address) is is_v6]
    other = [address for address in addresses if (":" in address) is not is_v6]
    alternating = chain.from_iterable(zip_longest(first, other))
    return [address for address in alternating if address is not None]


class Connector:
    """Open streams to origins, at addresses that `dial` allows.

    An origin that has one of the `proxies` is reached through it, by `dial_proxy`. Then `dial`
    judges only a host that is an address: the proxy looks up names.
    """

    def __init__(
        self, dial: Dialer, security: Security, proxies: Proxies, dial_proxy: Dialer
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
            proxy = self.proxies(origin)
            if proxy is not None:
                return await self._stream_by(proxy, origin, progress, protocols)
            scheme, host, port = origin
            stream = PlainStream(await self.dial(host, port, progress))
            if scheme == "http":
                return stream
            progress.phase = Phase.TLS
            return await self._security.secure(stream, host, protocols, port)
        except OSError as error:
            raise socket_error(error, progress) from error

    def resolver(self, origin: Origin) -> Resolver | None:
        """Return what looks up the name of an origin; None for a proxy or another function."""
        resolve = self.dial.resolve
        proxied = self.proxies(origin) is not None
        return resolve if isinstance(resolve, Resolver) and not proxied else None

    def connection(self, origin: Origin, stream: Stream) -> Connection:
        """Return a connection for HTTP/1.1 over a stream to an origin."""
        proxy = self.proxies(origin)
        if proxy is None or proxy.is_socks or origin[0] == "https":
            return Connection(origin, stream)
        return ForwardedConnection(origin, stream, proxy, self._known)

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
            connect = socks_tunnel if proxy.is_socks else tunnel
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
            # It is the proxy that is not known, not the host of the URL.
            detail = f"{proxy.label} cannot be used: {error.fault.detail}"
            raise FetchError(Reason.DNS, detail, Phase.RESOLVE) from error
        if proxy.scheme != "https":
            return stream
        progress.phase = Phase.TLS
        try:
            return await self._security.secure(stream, proxy.host, HTTP1, proxy.port)
        except OSError as error:
            if speaks_no_tls(error):
                raise proxy_fault(f"{proxy.label} does not speak TLS on this port") from error
            raise
