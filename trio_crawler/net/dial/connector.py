"""Open a stream to an origin: look its name up, at most once a minute, and connect a socket.

For https there is TLS over it, and a proxy makes a tunnel.

The system's resolver is asked, in threads: it knows /etc/hosts, the search domains and every other
service of the system, which a resolver of our own would not. ▶ A thread that waits for a name
server takes 26 KiB, a descriptor and 70 us of CPU, and glibc waits 10 seconds for a server that is
silent. So there may be hundreds of threads, started when needed, and 250 silent names delay no
other.
"""

from __future__ import annotations

import errno
import math
import os
import resource
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from itertools import zip_longest
from typing import TypeAlias

import trio

from trio_crawler.in_trio import start_soon
from trio_crawler.model import Phase, Reason, Record
from trio_crawler.net.dial.addresses import (
    AddressPolicy,
    as_in_url,
    bare,
    parse_address,
    server_name,
)
from trio_crawler.net.dial.stream import PlainStream, Stream
from trio_crawler.net.errors import (
    FetchError,
    connect_fault,
    name_fault,
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

CACHE_SECONDS = 60.0
"""Seconds for which the addresses of a name are cached, and a failure of `look_up_early`."""

MAX_NAMES = 10_000
"""The most names that are cached; the oldest one is evicted first."""

MAX_THREADS = 300
"""The most lookups that run at once, if the process may have four times as many descriptors."""

LookUp: TypeAlias = Callable[[bytes], Sequence[str]]
Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""An async function of a host and a port that returns addresses, the preferred one first.

It raises FetchError in the phase RESOLVE.
"""


def look_up(name: bytes) -> Sequence[str]:
    """Return the addresses of a name from the system's resolver. Blocks. Raises OSError."""
    try:
        # Not AI_ADDRCONFIG: it would hide ::1 on a machine with no other IPv6 address. The name is
        # bytes, since the codec for `str` takes quadratic time.
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError:
        # Without a file descriptor glibc cannot read /etc/hosts, and reports an unknown name. In
        # that case this line raises the OSError with the true cause.
        socket.socket(socket.AF_UNIX).close()
        raise
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


class _Known(Record, frozen=True):
    """The cached result of a lookup, which holds until a time."""

    until: float
    addresses: Sequence[str] = ()
    error: OSError | None = None


class _Lookup:
    """A lookup in flight; if it is cancelled, it ends without a result."""

    def __init__(self) -> None:
        self.done = trio.Event()
        self.found: _Known | None = None


class Resolver:
    """Look up names in threads, and cache their addresses.

    A Resolver serves one Trio run. Concurrent calls for one name share one lookup; a failure is
    cached only by `look_up_early`. A host that is an address needs no thread. A lookup that was
    cancelled by every caller keeps its thread, one of `max_threads`, until the system gives up.
    The default is 300, or a quarter of the file descriptors that the process may have.
    """

    def __init__(
        self,
        look_up: LookUp = look_up,
        *,
        cache_seconds: float = CACHE_SECONDS,
        max_names: int = MAX_NAMES,
        max_threads: int | None = None,
    ) -> None:
        self._look_up = look_up
        self._cache_seconds = cache_seconds
        self._max_names = max_names
        self._cache: dict[str, _Known] = {}
        self._lookups: dict[str, _Lookup] = {}
        # The other descriptors are for connections.
        most = max(1, descriptors(4 * MAX_THREADS) // 4) if max_threads is None else max_threads
        self._limiter, self._early = trio.CapacityLimiter(most), trio.CapacityLimiter(most)
        self.max_threads = most

    def __repr__(self) -> str:
        return f"<Resolver: {len(self._cache)} names cached, {len(self._lookups)} lookups>"

    async def __call__(self, host: str, port: int, /) -> Sequence[str]:
        """Return the addresses of a host, without brackets, in the system's order.

        Raises FetchError if the host has none or they cannot be looked up.
        """
        if (known := self._known(host)) is None:
            known = await self._joined(host)
        else:
            await trio.lowlevel.checkpoint()
        if known.error is not None:
            fault = name_fault(known.error, server_name(host, port))
            raise FetchError(fault.reason, fault.detail, Phase.RESOLVE) from known.error
        return known.addresses

    async def look_up_early(self, host: str, within: float) -> float:
        """Look up a host unless its addresses are cached; cache a failure, too.

        Returns the seconds for which a call waits for no lookup, math.inf for an address. A
        failure that is cached is looked up anew. No answer `within` so many seconds is a failure.
        """
        known = self._known(host)
        if known is not None and known.error is None:
            await trio.lowlevel.checkpoint()
            return known.until - trio.current_time()
        error: OSError | None = socket.gaierror(
            socket.EAI_AGAIN, f"no answer in {within:g} seconds"
        )
        # The wait for a thread does not count.
        async with self._early:
            with trio.move_on_after(within):
                error = (await self._joined(host)).error
        # Any other error is one of this process, such as too few descriptors.
        if isinstance(error, socket.gaierror):
            # The traceback would keep the frames of the thread.
            self._store(host, (), error.with_traceback(None))
        return self._cache_seconds

    def known(self, host: str) -> Sequence[str]:
        """Return the addresses of a host that are cached, () if none are."""
        known = self._known(host)
        return () if known is None else known.addresses

    def _known(self, host: str) -> _Known | None:
        if (known := self._cache.get(host)) is not None:
            if trio.current_time() < known.until:
                return known
            del self._cache[host]
            return None
        return _Known(math.inf, (bare(host),)) if parse_address(host) else None

    async def _joined(self, host: str) -> _Known:
        """Wait for the lookup in flight; start one if there is none, or it was cancelled."""
        while lookup := self._lookups.get(host):
            await lookup.done.wait()
            if lookup.found is not None:
                return lookup.found
        lookup = self._lookups[host] = _Lookup()
        try:
            addresses = await trio.to_thread.run_sync(
                self._look_up, host.encode(), abandon_on_cancel=True, limiter=self._limiter
            )
            if not addresses:
                raise socket.gaierror(socket.EAI_NONAME, "no addresses")
            lookup.found = self._store(host, addresses)
        except OSError as error:
            lookup.found = _Known(0.0, error=error)
        finally:
            del self._lookups[host]
            lookup.done.set()
        return lookup.found

    def _store(self, host: str, addresses: Sequence[str], error: OSError | None = None) -> _Known:
        self._cache.pop(host, None)
        known = _Known(trio.current_time() + self._cache_seconds, addresses, error)
        self._cache[host] = known
        if len(self._cache) > self._max_names:
            del self._cache[next(iter(self._cache))]
        return known


def descriptors(most: int) -> int:
    """Return the number of file descriptors that this process may have, at most `most`."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return most if soft == resource.RLIM_INFINITY else min(most, soft)


STAGGER = 0.25
"""Seconds between the starts of two attempts (RFC 8305, 5, recommends 250 ms)."""

MAX_ADDRESSES = 16
"""The most addresses of one host that are tried; a name may have thousands."""

Connect: TypeAlias = Callable[[str, int], Awaitable[socket.socket]]


async def connect(address: str, port: int) -> socket.socket:
    """Return a socket, non-blocking and without Nagle's delay, connected to an address.

    The caller closes it. Raises OSError. `address` must not be a name: its lookup would block.
    """
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
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
    return [each for pair in zip_longest(first, other) for each in pair if each is not None]


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
        try:
            plain = PlainStream(await self.dial_proxy(proxy.host, proxy.port, progress))
        except FetchError as error:
            if error.fault.phase is not Phase.RESOLVE:
                raise
            # It is the proxy that is not known, not the host of the URL.
            detail = f"{proxy.label} cannot be used: {error.fault.detail}"
            raise FetchError(Reason.DNS, detail, Phase.RESOLVE) from error
        stream: Stream = plain
        if proxy.scheme == "https":
            progress.phase = Phase.TLS
            try:
                stream = await self._security.secure(plain, proxy.host, HTTP1, proxy.port)
            except OSError as error:
                if speaks_no_tls(error):
                    raise proxy_fault(f"{proxy.label} does not speak TLS on this port") from error
                raise
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
