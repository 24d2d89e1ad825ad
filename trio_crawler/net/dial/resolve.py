"""Look up the addresses of a host, at most once a minute.

The system's resolver is asked, in threads: it knows /etc/hosts, the search domains and every other
service of the system, which a resolver of our own would not. ▶ A thread that waits for a name
server takes 26 KiB, a descriptor and 70 us of CPU, and glibc waits 10 seconds for a server that is
silent. So there may be hundreds of threads, started when needed, and 250 silent names delay no
other.
"""

from __future__ import annotations

import math
import resource
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import trio

from trio_crawler.model import Phase, Reason
from trio_crawler.net.dial.addresses import bare, parse_address
from trio_crawler.net.errors import FetchError, name_fault

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


@dataclass(slots=True, eq=False)
class _Lookup:
    """A lookup in flight; if it is cancelled, it ends with neither addresses nor an error."""

    done: trio.Event = field(default_factory=trio.Event)
    addresses: Sequence[str] = ()
    error: OSError | None = None


class _Known(NamedTuple):
    """The cached result of a lookup, which holds until a time."""

    until: float
    addresses: Sequence[str] = ()
    error: OSError | None = None


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
            known = await self._joined(host, _name(host, server_name(host, port)))
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
        try:
            name = _name(host, host)
        except FetchError:
            # A call raises the same at once.
            await trio.lowlevel.checkpoint()
            return math.inf
        error: OSError | None = socket.gaierror(
            socket.EAI_AGAIN, f"no answer in {within:g} seconds"
        )
        # The wait for a thread does not count.
        async with self._early:
            with trio.move_on_after(within):
                error = (await self._joined(host, name)).error
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

    async def _joined(self, host: str, name: bytes) -> _Known:
        """Wait for the lookup in flight; start one if there is none, or it was cancelled."""
        while lookup := self._lookups.get(host):
            await lookup.done.wait()
            if lookup.addresses or lookup.error is not None:
                return _Known(0.0, lookup.addresses, lookup.error)
        lookup = self._lookups[host] = _Lookup()
        try:
            found = await trio.to_thread.run_sync(
                self._look_up, name, abandon_on_cancel=True, limiter=self._limiter
            )
            if not found:
                raise socket.gaierror(socket.EAI_NONAME, "no addresses")
            lookup.addresses = found
            self._store(host, found)
        except OSError as error:
            lookup.error = error
        finally:
            del self._lookups[host]
            lookup.done.set()
        return _Known(0.0, lookup.addresses, lookup.error)

    def _store(self, host: str, addresses: Sequence[str], error: OSError | None = None) -> None:
        self._cache.pop(host, None)
        self._cache[host] = _Known(trio.current_time() + self._cache_seconds, addresses, error)
        if len(self._cache) > self._max_names:
            del self._cache[next(iter(self._cache))]


def server_name(host: str, port: int) -> str:
    """Return a server as `host:port` for messages; the ports 80 and 443 are left out."""
    name = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return name if port in (80, 443) else f"{name}:{port}"


def _name(host: str, server: str) -> bytes:
    """Return a host as bytes. Raises FetchError if it is not a valid name (RFC 1035, 2.3.4)."""
    labels = host.removesuffix(".").split(".")
    if not host.isascii() or not host.isprintable():
        why = "it is not in printable ASCII"
    elif not all(0 < len(label) < 64 for label in labels):
        why = "a part of it is empty or has over 63 characters"
    else:
        return host.encode("ascii")
    detail = f"the name of {server} cannot be looked up: {why}"
    raise FetchError(Reason.NO_SUCH_HOST, detail, Phase.RESOLVE)


def descriptors(most: int) -> int:
    """Return the number of file descriptors that this process may have, at most `most`."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return most if soft == resource.RLIM_INFINITY else min(most, soft)
