"""Resolve: the addresses of a host, asked of the system once a minute at most."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import trio

from trio_crawler.model import Phase, Reason
from trio_crawler.net.addresses import bare, parse_address
from trio_crawler.net.errors import Faulty, name_fault

KEPT = 60.0
"""Seconds for which the addresses of a name are kept."""

MOST_NAMES = 10_000
MOST_THREADS = 32

LookUp: TypeAlias = Callable[[bytes], Sequence[str]]


class Resolve(Protocol):
    """Return the addresses of a host, the preferred one first.

    Raises Faulty in the phase RESOLVE. Any async function of a host and a port will do.
    """

    def __call__(self, host: str, port: int, /) -> Awaitable[Sequence[str]]: ...


def look_up(name: bytes) -> Sequence[str]:
    """Ask the system for the addresses of a name, and block until it knows. Raises OSError."""
    try:
        # Not AI_ADDRCONFIG: it would hide ::1 on a machine whose only IPv6 address that is. Bytes,
        # for the host is as it goes over the wire: the codec for `str` takes quadratic time.
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError:
        # Without a descriptor glibc cannot read /etc/hosts, and says that there is no such name.
        socket.socket(socket.AF_UNIX).close()
        raise
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


@dataclass(slots=True, eq=False)
class _Flight:
    """One lookup and who waits for it; neither addresses nor error if it was cancelled."""

    landed: trio.Event = field(default_factory=trio.Event)
    addresses: Sequence[str] = ()
    error: OSError | None = None


class Resolver:
    """Look names up in threads of its own, 32 at most, and keep what they gave for a minute.

    Serves one Trio run. A host that is an address already takes no thread. Many who ask for one
    name at once cause one lookup; failures are not kept. A lookup that nobody waits for any more
    keeps its thread, out of the 32, until the system gives up.
    """

    def __init__(self, look_up: LookUp = look_up) -> None:
        self._look_up = look_up
        self._kept: dict[str, tuple[float, Sequence[str]]] = {}
        self._flights: dict[str, _Flight] = {}
        self._limiter: trio.CapacityLimiter | None = None

    def __repr__(self) -> str:
        return f"<Resolver: {len(self._kept)} names kept, {len(self._flights)} being looked up>"

    async def __call__(self, host: str, port: int, /) -> Sequence[str]:
        """Return the addresses of a host, without brackets, in the system's order.

        Raises Faulty if there are none or they cannot be had.
        """
        if (known := self._known(host)) is not None:
            await trio.lowlevel.checkpoint()
            return known
        flight = await self._flown(host, _name(host, peer(host, port)))
        if flight.error is not None:
            raise _faulty(flight.error, peer(host, port)) from flight.error
        return flight.addresses

    def _known(self, host: str) -> Sequence[str] | None:
        if host in self._kept:
            until, addresses = self._kept[host]
            if trio.current_time() < until:
                return addresses
            del self._kept[host]
            return None
        return (bare(host),) if parse_address(host) else None

    async def _flown(self, host: str, name: bytes) -> _Flight:
        """Join the lookup that is under way; start one if there is none, or it is given up."""
        while flight := self._flights.get(host):
            await flight.landed.wait()
            if flight.addresses or flight.error is not None:
                return flight
        flight = self._flights[host] = _Flight()
        try:
            flight.addresses = await self._ask(name)
            self._keep(host, flight.addresses)
        except OSError as error:
            flight.error = error
        finally:
            del self._flights[host]
            flight.landed.set()
        return flight

    async def _ask(self, name: bytes) -> Sequence[str]:
        self._limiter = self._limiter or trio.CapacityLimiter(MOST_THREADS)
        addresses = await trio.to_thread.run_sync(
            self._look_up, name, abandon_on_cancel=True, limiter=self._limiter
        )
        if not addresses:
            raise socket.gaierror(socket.EAI_NODATA, "no addresses")
        return addresses

    def _keep(self, host: str, addresses: Sequence[str]) -> None:
        self._kept[host] = (trio.current_time() + KEPT, addresses)
        if len(self._kept) > MOST_NAMES:
            del self._kept[next(iter(self._kept))]


def peer(host: str, port: int) -> str:
    """Name a host for a sentence, with the port unless it is that of http or https."""
    name = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return name if port in (80, 443) else f"{name}:{port}"


def _name(host: str, peer: str) -> bytes:
    """Return a name as it is asked for, once it is sure to be one (RFC 1035, 2.3.4)."""
    labels = host.removesuffix(".").split(".")
    if not host.isascii() or not host.isprintable():
        why = "it is not in printable ASCII"
    elif not all(0 < len(label) < 64 for label in labels):
        why = "a part of it is empty or has over 63 characters"
    else:
        return host.encode("ascii")
    raise Faulty(Reason.DNS, f"the name of {peer} cannot be looked up: {why}", Phase.RESOLVE)


def _faulty(error: OSError, peer: str) -> Faulty:
    fault = name_fault(error, peer)
    return Faulty(fault.reason, fault.detail, Phase.RESOLVE)
