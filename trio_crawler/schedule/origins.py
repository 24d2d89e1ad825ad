"""The origins of one crawl: their records by name, and what their failures mean."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import trio
from msgspec.structs import replace

from trio_crawler.model import Answer, Attempt, Fault, Purpose, Reason, Response
from trio_crawler.policy.answers import (
    REFUSALS,
    TRANSIENT,
    is_doubtful_by_head,
    is_silent,
    tries_of_host,
)
from trio_crawler.policy.host_load import HostLoad
from trio_crawler.policy.plan import Plan
from trio_crawler.policy.robots import KnownRules, LongFiles
from trio_crawler.policy.settings import DELAY, QUICK_DELAY, HostStatistics, at_host
from trio_crawler.schedule.host_state import Event, FailureContext, HostState, State
from trio_crawler.schedule.origin import Host, Origin, Server
from trio_crawler.schedule.queues import Queue

# The addresses of a name that are compared with those of others.
_ADDRESSES = 4
_WITH_IPV4 = tuple(ipaddress.IPv6Address(each).packed[:12] for each in ("::ffff:0:0", "64:ff9b::"))


class Origins:
    """The origins of a crawl; `by_name` has them by scheme, host and port, in the order found.

    A host whose URLs are only checked gets one request at a time, until a page of it is crawled.
    """

    def __init__(self, plan: Plan, make_queue: Callable[[], Queue]) -> None:
        self.by_name: dict[str, Origin] = {}
        self._politeness, self._checks = plan.politeness, plan.checks
        self._make_queue = make_queue
        delay, self._quick = DELAY, QUICK_DELAY
        if self._checks.delay is not None:
            delay = self._quick = self._checks.delay
        delay = max(delay, self._politeness.delay)
        self._of_checks = replace(self._politeness, per_host=1, delay=delay, adaptive=False)
        own = self._politeness.delay
        self._quick = max(self._quick, own) if self._checks.external else own
        self._long_files = LongFiles()
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

    def hosts(self) -> Collection[Origin]:
        """Return the first origin of each host, in the order in which the hosts were found."""
        first: dict[Host, Origin] = {}
        for origin in self.by_name.values():
            first.setdefault(origin.host, origin)
        return first.values()

    def enter(self, origin: Origin) -> None:
        """Record that pages of the host of an origin are crawled, not only checked."""
        both = (origin, origin.other_scheme or origin)
        load = origin.host.load
        politeness = at_host(self._politeness, origin.name + "/", self._politeness)
        load.brake()
        if load.delay == load.politeness.delay:
            # It has not asked for a longer one, but may have asked for a shorter one.
            asked = load.quick if load.quick > self._quick else 0.0
            load.delay = max(politeness.delay, asked)
        load.quick = politeness.delay
        load.limit, load.politeness = politeness.per_host, politeness
        for each in both:
            each.crawled, each.obeys = True, politeness.robots

    def share(self, host: Host, addresses: Sequence[str], seconds: float) -> Host | None:
        """Record the addresses of a host; return the one that it shares a server with from now on.

        Where a proxy looks a name up (no address, for ever) all ports of the name are one server.
        """
        if host.server is not None or not (addresses or seconds == math.inf):
            return None
        keys = [hash(_network(each)) for each in addresses[:_ADDRESSES]] or [hash(host.hostname)]
        found = (self._servers.get(key, host) for key in keys)
        known = next((each for each in found if each is not host), host)
        for key in keys:
            self._servers.setdefault(key, known)
        if known is host:
            return None
        server, joins = known.server, [host]
        if server is None:
            server, joins = Server(), [known, host]
        for each in joins:
            each.server = server
            server.join(each.hostname, each.load)
        return known

    def store_rules(self, origin: Origin, known: KnownRules) -> None:
        """Store the rules of an origin's robots.txt; of the long files only the last are kept."""
        rules, dropped = self._long_files.add(origin.name, known.rules)
        origin.robots = known if rules is known.rules else replace(known, rules=rules)
        if self._politeness.robots:
            load = origin.host.load
            if load.ask(rules.delay) and load.in_flight:
                # The other scheme has requests in flight that may have started just now.
                load.last = max(load.last, known.since)
        for name in dropped:
            self.by_name[name].robots = None

    def restore_rules(self, origin: Origin, known: KnownRules, now: float) -> None:
        """Store the rules that an earlier run read; a delay of the host begins now.

        That run may have asked the host just before it ended.
        """
        origin.state.answered = True
        self.store_rules(origin, known)
        if origin.host.load.delay:
            origin.host.load.last = now

    def _new(self, name: str) -> Origin:
        _, _, authority = name.partition("://")
        other, politeness, checks = self.host(authority), self._politeness, self._checks
        if checks.external:
            politeness = self._of_checks
        quick: float | None = self._quick
        if self._politeness.hosts:
            before, politeness = politeness, at_host(self._politeness, name + "/", politeness)
            quick = quick if politeness.delay == before.delay else None
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
    """Return what addresses of one machine have in common: of IPv6 the first 64 bits.

    An IPv4 address within an IPv6 one counts (RFC 4291, 2.5.5.2; RFC 6052, 2.1).
    """
    if ":" not in address:
        return address
    packed = ipaddress.IPv6Address(address).packed
    return str(ipaddress.IPv4Address(packed[12:]) if packed[:12] in _WITH_IPV4 else packed[:8])


# Seconds for which any lookup holds, or a host whose lookup holds no longer would never start.
_LEAST = 1.0


class Names:
    """The hosts that wait until their names are looked up; no worker waits with them.

    `urls` is the channel of the URLs whose hosts are to be looked up: one URL for each lookup.
    Pass the origin of each of them to `found`, once.

    A host waits before its first job. It waits again when its lookup is too old and it has nothing
    in flight, and at the end of its rest after a lookup that failed: each try has a lookup of its
    own.
    """

    def __init__(self) -> None:
        self._sender, self.urls = trio.open_memory_channel[str](math.inf)
        self._sought = set[Host]()

    def awaits(self, origin: Origin, now: float) -> bool:
        """Whether an origin waits, whose last lookup holds no longer.

        A lookup that is due is asked for.
        """
        host = origin.host
        if host in self._sought:
            return True
        if host.load.in_flight or now < origin.state.free:
            return False
        self._sought.add(host)
        self._sender.send_nowait(origin.name + "/")
        return True

    def found(self, origin: Origin, now: float, seconds: float) -> None:
        """Record that the lookup of an origin has ended; its result holds for so many seconds."""
        origin.host.named = now + max(seconds, _LEAST)
        self._sought.remove(origin.host)


class HostsByName(Mapping[str, HostStatistics]):
    """The statistics of the hosts of a crawl, by name."""

    def __init__(
        self,
        host: Callable[[str], Origin | None],
        hosts: Callable[[], Collection[Origin]],
        now: Callable[[], float],
    ) -> None:
        self._host, self._hosts, self._now = host, hosts, now

    def __getitem__(self, name: str) -> HostStatistics:
        origin = self._host(name)
        if origin is None:
            raise KeyError(name)
        return origin.statistics(self._now())

    def __iter__(self) -> Iterator[str]:
        return (origin.host.name for origin in self._hosts())

    def __len__(self) -> int:
        return len(self._hosts())

    def __repr__(self) -> str:
        return f"<the statistics of {len(self)} hosts>"


# More tries for a robots.txt with 429 or 5xx: its server is there, and may recover.
_EXTRA_ROBOTS_TRIES = 2


class Failures:
    """Judge the answers that may mean that a host is in trouble.

    `last_good` is the time of the last good answer of any host, of `good_host`, and `other_good`
    that of the last good answer of any other host. `few_left` is whether nothing is left of the
    crawl but a few URLs of hosts in trouble.
    """

    def __init__(self, plan: Plan, few_left: Callable[[], bool]) -> None:
        self._plan = plan
        self._tries = plan.limits.max_tries
        self._few_left = few_left
        self.last_good = self.other_good = -math.inf
        self.good_host: Host | None = None
        # The time of the last fault of a host that had answered before.
        self._last_loss = -math.inf

    def good(self, host: Host, now: float) -> None:
        """Record a good answer of a host."""
        if self.good_host is not host:
            self.good_host, self.other_good = host, self.last_good
        self.last_good = now

    def page(self, origin: Origin, attempt: Attempt, now: float) -> bool:
        """Record a page or a sitemap that failed; return whether the host only limits the rate."""
        answer, seconds = attempt.answer, attempt.seconds
        refused = isinstance(answer, Response) and answer.status in REFUSALS
        if refused and origin.state.refused(attempt.job.url, seconds, now):
            return True
        context = self._context(origin, answer, now)
        tries = self._host_tries(origin, answer)
        if attempt.job.purpose is Purpose.CHECK and is_doubtful_by_head(answer):
            # A host that may only not know HEAD must not be given up before it was asked by GET.
            tries = max(tries, 2)
        origin.state.page_bad(now - seconds, now, tries, context)
        _give_up_if_lost(origin, answer, Reason.HOST_GIVEN_UP)
        return False

    def miss(self, origin: Origin, answer: Answer, now: float, *, probe: bool = False) -> None:
        """Record a robots.txt or a probe that failed."""
        event = Event.PROBE_BAD if probe else Event.ROBOTS_BAD
        reason = Reason.HOST_GIVEN_UP if origin.state.answered else Reason.ROBOTS_UNAVAILABLE
        tries, context = self._robots_tries(origin, answer), self._context(origin, answer, now)
        origin.state.miss(event, now, tries, context)
        _give_up_if_lost(origin, answer, reason)

    def _host_tries(self, origin: Origin, answer: Answer) -> int:
        # The last good answer is enough: in a crawl of many hosts, a port that is closed delays
        # only itself.
        last = self.good_host
        up = last is not None and last.hostname == origin.host.hostname
        return tries_of_host(answer, self._tries, neighbour_up=up)

    def _robots_tries(self, origin: Origin, answer: Answer) -> int:
        if isinstance(answer, Response):
            return self._tries + _EXTRA_ROBOTS_TRIES
        if answer.reason is Reason.TIMEOUT:
            return min(self._tries, 2)
        return self._host_tries(origin, answer) if answer.reason in TRANSIENT else 1

    def _context(self, origin: Origin, answer: Answer, now: float) -> FailureContext:
        if origin.state.answered and isinstance(answer, Fault):
            self._last_loss = now
        jitter = self._plan.chance(origin.name, origin.state.failures)
        # If a host that answered before has failed since the last good answer of any host, our own
        # network may be down.
        network_down = self._last_loss > self.last_good
        others_well = -math.inf
        if self._few_left():
            others_well = self.other_good if self.good_host is origin.host else self.last_good
        return FailureContext(jitter, network_down, is_silent(answer), others_well)


def _give_up_if_lost(origin: Origin, answer: Answer, reason: Reason) -> None:
    if origin.state.state is State.GIVEN_UP and origin.given_up is None:
        # If the host never answered, this fault becomes the outcome of all its URLs.
        silent = not origin.state.answered
        origin.given_up = answer if silent and isinstance(answer, Fault) else reason
