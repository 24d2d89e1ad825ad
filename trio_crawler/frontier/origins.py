"""The records of the hosts of one crawl, by their names."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from trio_crawler.frontier.origin import Host, Origin
from trio_crawler.frontier.queues import Queue
from trio_crawler.frontier.servers import Server
from trio_crawler.policy.checks import DELAY, QUICK_DELAY
from trio_crawler.policy.host_load import HostLoad
from trio_crawler.policy.host_state import HostState
from trio_crawler.policy.plan import Plan

# The addresses of a name that are compared with those of others.
_ADDRESSES = 4


class Origins:
    """The origins of a crawl; `by_name` has them by scheme, host and port, in the order found.

    A host whose URLs are only checked gets one request at a time, until a page of it is crawled.
    """

    def __init__(self, plan: Plan, make_queue: Callable[[], Queue]) -> None:
        self.by_name: dict[str, Origin] = {}
        self._politeness, self._checks = plan.politeness, plan.checks
        self._make_queue = make_queue
        # The first host at each address. ▶ An address takes 100 bytes.
        self._servers: dict[int, Host] = {}

    def known(self, url: str) -> Origin | None:
        """Return the record of the origin of a normalised URL; None if there is none."""
        return self.by_name.get(url[: url.index("/", 8)])

    def origin(self, url: str) -> Origin:
        """Return the record of the origin of a normalised URL, a new one if needed."""
        name = url[: url.index("/", 8)]
        origin = self.by_name.get(name)
        return self._new(name) if origin is None else origin

    def host(self, name: str) -> Origin | None:
        """Return an origin of the host with this name and port; None if there is none."""
        http = self.by_name.get("http://" + name)
        return self.by_name.get("https://" + name) if http is None else http

    def hosts(self) -> Iterator[Origin]:
        """Yield one origin of each host known now, in the order in which the hosts were found."""
        done = set[Host]()
        # A copy: hosts may be found between two steps of a reader.
        for origin in list(self.by_name.values()):
            if origin.other_scheme is None:
                yield origin
            elif origin.host not in done:
                done.add(origin.host)
                yield origin

    def enter(self, origin: Origin) -> None:
        """Record that pages of the host of an origin are crawled, not only checked."""
        both = (origin, origin.other_scheme or origin)
        load, politeness = origin.host.load, self._politeness
        load.brake()
        if load.delay == load.politeness.delay:
            # It has not asked for a longer one.
            load.delay = politeness.delay
        load.quick = politeness.delay
        load.limit, load.politeness = politeness.per_host, politeness
        for each in both:
            each.crawled, each.obeys = True, self._politeness.robots

    def share(self, host: Host, addresses: Sequence[str], seconds: float) -> Host | None:
        """Record the addresses of a host; return the one that it shares a server with from now on.

        Where a proxy looks a name up (no address, for ever) all ports of the name are one server.
        """
        if host.server is not None or not (addresses or seconds == math.inf):
            return None
        keys = [hash(_network(each)) for each in addresses[:_ADDRESSES]] or [hash(host.hostname)]
        known = next((self._servers[key] for key in keys if key in self._servers), None)
        if known is None or known is host:
            self._servers.update(dict.fromkeys(keys, host))
            return None
        server, joins = known.server, [host]
        if server is None:
            server, joins = Server(), [known, host]
        for each in joins:
            each.server = server
            server.join(each.hostname, each.load)
        return known

    def _new(self, name: str) -> Origin:
        _, _, authority = name.partition("://")
        other, politeness, checks = self.host(authority), self._politeness, self._checks
        quick = politeness.delay
        if checks.external:
            delay = DELAY if checks.delay is None else checks.delay
            quick = max(QUICK_DELAY if checks.delay is None else delay, quick)
            delay = max(delay, politeness.delay)
            politeness = replace(politeness, per_host=1, delay=delay, adaptive=False)
        load = HostLoad(politeness, quick) if other is None else other.host.load
        host = Host(name, load) if other is None else other.host
        origin = Origin(name, host, self._make_queue(), HostState(politeness, load))
        origin.crawled = not checks.external if other is None else other.crawled
        origin.obeys = self._politeness.robots and (origin.crawled or checks.robots)
        if other is not None:
            origin.other_scheme, other.other_scheme = other, origin
        self.by_name[name] = origin
        return origin


def _network(address: str) -> str:
    """Return what addresses of one machine have in common: of IPv6 the first 64 bits."""
    return str(ipaddress.IPv6Address(address).packed[:8]) if ":" in address else address
