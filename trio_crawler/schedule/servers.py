"""The servers behind the names: all hosts at one address share what one host may have.

Otherwise a page with a thousand names of one machine, or with a thousand of its ports, would make
a crawl open a connection for each of them.
"""

from __future__ import annotations

from math import inf
from typing import Any

from trio_crawler.policy.host_load import HostLoad
from trio_crawler.policy.scope import registrable

MOST = 16
"""Requests in flight at a server that unrelated sites share, such as a large shared host.

Half as many as it has registrable domains, but at least as many as one host may have.
"""

# Hosts at a server whose domains are not looked at. ▶ The list of suffixes takes 0.15 s.
_FEW = 8


class Server:
    """The load of the hosts at one address, which are two at least.

    `in_flight` is the number of requests in flight, `latest` the load of the host with a delay
    whose request was the last to be chosen. Of the origins that could start a job, `placed` are
    those that have a place in the heap: with the requests in flight no more than the limit, or one
    if there is a delay. The others are `waiting`, in the order in which their turn comes. The
    limit is the greatest of those of its hosts; each has its own besides.
    """

    __slots__ = (
        "_domains",
        "_most",
        "_names",
        "filling",
        "in_flight",
        "latest",
        "placed",
        "waiting",
    )

    def __init__(self) -> None:
        self.in_flight = 0
        self.latest: HostLoad | None = None
        self.placed = set[Any]()
        self.waiting: dict[Any, None] = {}
        # Whether the scheduler is placing those that wait.
        self.filling = False
        self._most = 1
        self._domains = set[str]()
        self._names: list[str] | None = []

    def join(self, name: str, load: HostLoad) -> None:
        """Add a host with this name, without its port, and load."""
        self.in_flight += load.in_flight
        if load.delay and (self.latest is None or load.last > self.latest.last):
            self.latest = load
        if self._names is not None:
            self._names.append(name)
            if len(self._names) > _FEW or self._domains:
                self._domains.update(map(registrable, self._names))
                self._names = [] if len(self._domains) < 2 * MOST else None

    def limit(self, load: HostLoad) -> int:
        """Return the most requests that may be in flight when a host with this load is next."""
        adaptive, own = load.politeness.adaptive, load.politeness.per_host
        self._most = max(self._most, own)
        return max(int(load.limit) if adaptive else own, self._most, self._shared)

    @property
    def _shared(self) -> int:
        return min(MOST, len(self._domains) // 2)

    def admit(self, origin: Any, load: HostLoad, now: float, *, kept: bool) -> float | None:
        """Return when an origin that has a place from now on may start; None if it is to wait.

        One that is `kept`, in its place or in a run, waits for none of the others.
        """
        queued = self.waiting and not (self.filling or kept)
        free = None if queued else self.free(load, now)
        if free is None:
            self.waiting[origin] = None
        else:
            self.placed.add(origin)
        return free

    def free(self, load: HostLoad, now: float) -> float | None:
        """Return when a host with this load may start a job; None if it waits for others."""
        latest, limit, own = self.latest, self.limit(load), load.politeness.per_host
        delay = min(load.delay, load.politeness.delay)
        if self.in_flight + len(self.placed) >= limit or (delay and self.placed):
            return None
        if not delay or latest is None:
            return now
        # The delay is that of one host, for each that it may have.
        free = latest.last + delay * own / max(own, self._shared)
        if latest.taken <= now or self._shared > own:
            # On a large server as many may connect at once as may be in flight.
            return free
        # It was chosen, and has not started yet.
        return max(free, latest.taken) if latest.taken < inf else None
