"""Look up the addresses of a host, at most once a minute."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import trio

from trio_crawler.model import Phase, Reason
from trio_crawler.net.addresses import bare, parse_address
from trio_crawler.net.errors import FetchError, name_fault

CACHE_SECONDS = 60.0
"""Seconds for which the addresses of a name are cached."""

MAX_NAMES = 10_000
"""The most names that are cached; the oldest one is evicted first."""

MAX_THREADS = 32
"""The most lookups that run at once."""

LookUp: TypeAlias = Callable[[bytes], Sequence[str]]


class Resolve(Protocol):
    """An async function of a host and a port that returns addresses, the preferred one first.

    It raises FetchError in the phase RESOLVE.
    """

    def __call__(self, host: str, port: int, /) -> Awaitable[Sequence[str]]: ...


def look_up(name: bytes) -> Sequence[str]:
    """Return the addresses of a name from the system's resolver. Blocks. Raises OSError."""
    try:
        # Not AI_ADDRCONFIG: it would hide ::1 on a machine with no other IPv6 address. The name is
        # bytes, since the codec for `str` takes quadratic time.
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError:
        # Without a file descriptor glibc cannot read /etc/hosts, and reports an unknown name. In
        # that case this line raises the OSError with the true cause.
        socket.socket(getattr(socket, "AF_UNIX", socket.AF_INET)).close()
        raise
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


@dataclass(slots=True, eq=False)
class _Lookup:
    """A lookup in flight; if it is cancelled, it ends with neither addresses nor an error."""

    done: trio.Event = field(default_factory=trio.Event)
    addresses: Sequence[str] = ()
    error: OSError | None = None


class Resolver:
    """Look up names in threads, and cache their addresses.

    A Resolver serves one Trio run. Concurrent calls for one name share one lookup; failures are
    not cached. A host that is an address needs no thread. A lookup that was cancelled by every
    caller keeps its thread, one of `max_threads`, until the system gives up.
    """

    def __init__(
        self,
        look_up: LookUp = look_up,
        *,
        cache_seconds: float = CACHE_SECONDS,
        max_names: int = MAX_NAMES,
        max_threads: int = MAX_THREADS,
    ) -> None:
        self._look_up = look_up
        self._cache_seconds = cache_seconds
        self._max_names = max_names
        self._cache: dict[str, tuple[float, Sequence[str]]] = {}
        self._lookups: dict[str, _Lookup] = {}
        self._limiter = trio.CapacityLimiter(max_threads)

    def __repr__(self) -> str:
        return f"<Resolver: {len(self._cache)} names cached, {len(self._lookups)} lookups>"

    async def __call__(self, host: str, port: int, /) -> Sequence[str]:
        """Return the addresses of a host, without brackets, in the system's order.

        Raises FetchError if the host has none or they cannot be looked up.
        """
        if (known := self._known(host)) is not None:
            await trio.lowlevel.checkpoint()
            return known
        lookup = await self._joined(host, _name(host, server_name(host, port)))
        if lookup.error is not None:
            raise _fetch_error(lookup.error, server_name(host, port)) from lookup.error
        return lookup.addresses

    def _known(self, host: str) -> Sequence[str] | None:
        if host in self._cache:
            until, addresses = self._cache[host]
            if trio.current_time() < until:
                return addresses
            del self._cache[host]
            return None
        return (bare(host),) if parse_address(host) else None

    async def _joined(self, host: str, name: bytes) -> _Lookup:
        """Wait for the lookup in flight; start one if there is none, or it was cancelled."""
        while lookup := self._lookups.get(host):
            await lookup.done.wait()
            if lookup.addresses or lookup.error is not None:
                return lookup
        lookup = self._lookups[host] = _Lookup()
        try:
            lookup.addresses = await self._ask(name)
            self._store(host, lookup.addresses)
        except OSError as error:
            lookup.error = error
        finally:
            del self._lookups[host]
            lookup.done.set()
        return lookup

    async def _ask(self, name: bytes) -> Sequence[str]:
        addresses = await trio.to_thread.run_sync(
            self._look_up, name, abandon_on_cancel=True, limiter=self._limiter
        )
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "no addresses")
        return addresses

    def _store(self, host: str, addresses: Sequence[str]) -> None:
        self._cache[host] = (trio.current_time() + self._cache_seconds, addresses)
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
    raise FetchError(Reason.DNS, detail, Phase.RESOLVE)


def _fetch_error(error: OSError, server: str) -> FetchError:
    fault = name_fault(error, server)
    return FetchError(fault.reason, fault.detail, Phase.RESOLVE)
