"""A web of thousands of hosts of all sizes and speeds, with everything that goes wrong.

web = BroadWeb(seed=1, hosts=150)
reply = web.reply("http://h7.broad.test/p/3", asked=0)

What a URL answers is a function of the seed, of the URL, and of how many pages its host was asked
for before: nothing is stored but one short record for each host. So what a crawl must find is
known beforehand (`wanted`), and so is the least time that it takes (`bound`).

A host of rank r has LARGEST / r ** 1.25 pages. The pages of a host are a tree, ten links each, and
say the same but for their numbers; pages of other hosts are linked to here and there, and every
host can be reached from the seeds by pages that can be had.
"""

from __future__ import annotations

import math
import random
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple, TypeVar
from zlib import crc32

PER_HOST = 4
"""The requests in flight at one host that the bounds are computed for."""

STEEPNESS = 1.25
LARGEST = 20_000 / 3_000
"""The pages of the largest host, for each host of the web."""
SEEDS = 200 / 3_000
LINKS = 10
FASTEST, SLOWEST = 0.005, 2.0
MOST_SECONDS, MOST_DELAYED = 40.0, 60.0
"""The most seconds that a host needs by itself, by its latency and by its crawl-delay."""
SERVED = 3
"""The pages that a host of the kind STOPS answers."""
EVERY = 10
"""A busy host refuses one of so many requests."""
FAILING_DNS, SILENT_DNS = 3.0, 10.0
"""Seconds until the lookup of a name fails. A resolver that hears nothing gives up after ten."""
NUMBERS = (0, 15_000, 0, 200_000, 0, 1_000_000, 10_000)
"""What the numbers of the pages begin with; it depends on the rank of the host."""

_Share = TypeVar("_Share")


class Kind(StrEnum):
    """What happens to a request to a host."""

    WELL = "well"
    BUSY = "busy"
    """One of ten requests is refused, by 429 or 503 with Retry-After."""
    DOWN = "down"
    """Each page is a 503, for ever."""
    SILENT = "silent"
    """It takes connections, and never answers."""
    STOPS = "stops"
    """It answers three pages, and nothing after them."""
    MOVED = "moved"
    """Each page redirects to another host."""
    REFUSED = "refused"
    NXDOMAIN = "nxdomain"
    FAILING_DNS = "failing dns"
    SILENT_DNS = "silent dns"
    GARBAGE = "garbage"
    """It redirects to https, where no TLS is spoken."""


class File(StrEnum):
    """What a host has for a robots.txt."""

    MISSING = "missing"
    OPEN = "open"
    RULES = "rules"
    DELAY = "crawl-delay"
    BROKEN = "5xx"
    MOVED = "redirect"
    CLOSED = "disallow all"


DEAD = (Kind.REFUSED, Kind.NXDOMAIN, Kind.FAILING_DNS, Kind.SILENT_DNS, Kind.GARBAGE)
HANGING = (Kind.SILENT, Kind.STOPS)
_OTHERS = {Kind.BUSY: 0.027, Kind.DOWN: 0.003, Kind.MOVED: 0.03}
_FILES = {
    File.MISSING: 0.5,
    File.RULES: 0.2,
    File.DELAY: 0.05,
    File.BROKEN: 0.04,
    File.MOVED: 0.03,
    File.CLOSED: 0.02,
}
_SECURE, _TWINS = 0.04, 0.05
_OPEN = b"User-agent: *\nDisallow:\n"


@dataclass(frozen=True, slots=True)
class Host:
    """One host: `pages` of them, whose numbers begin with `first`; the times are in seconds.

    `rest` is its Retry-After. With `secure` its pages are https, and http redirects there. With
    `twin` it has another name, `www.` before its own, which redirects to it. `target` is another
    host, to which it redirects if it or its robots.txt has moved.
    """

    number: int
    name: str
    kind: Kind
    file: File
    pages: int
    first: int
    latency: float
    delay: float
    rest: int
    secure: bool
    twin: bool
    target: int

    @property
    def is_served(self) -> bool:
        """Whether a crawler that obeys robots.txt can have the pages of this host."""
        allowed = self.file not in (File.BROKEN, File.CLOSED)
        return allowed and self.kind in (Kind.WELL, Kind.BUSY)

    def least(self, per_host: int = PER_HOST) -> float:
        """Return the seconds that this host takes if it never waits for a worker."""
        refused = (self.pages - 1) // (EVERY - 1) if self.kind is Kind.BUSY else 0
        asked = (self.pages + refused) * self.latency / per_host
        return self.latency + max(asked, refused * self.rest, self.pages * self.delay)


class Reply(NamedTuple):
    """What a server sends, after so many `seconds`; it is silent if they are infinite.

    `rest` is the Retry-After, 0 for none; `leads` are the links to other hosts.
    """

    status: int
    fields: tuple[tuple[str, str], ...]
    body: bytes
    seconds: float
    rest: int = 0
    leads: tuple[str, ...] = ()


class FailingLookup(NamedTuple):
    """A lookup that fails after so many `seconds`, with this `number` of a `socket.gaierror`."""

    seconds: float
    number: int


_LOOKUPS = {
    Kind.NXDOMAIN: FailingLookup(0.02, socket.EAI_NONAME),
    Kind.FAILING_DNS: FailingLookup(FAILING_DNS, socket.EAI_AGAIN),
    Kind.SILENT_DNS: FailingLookup(SILENT_DNS, socket.EAI_AGAIN),
}


class Bound(NamedTuple):
    """The seconds that no crawl can do without: of the slowest host, and of all the work."""

    slowest: float
    work: float

    def seconds(self, workers: int) -> float:
        """Return the least time of a crawl with so many workers."""
        return max(self.slowest, self.work / workers)


class BroadWeb:
    """The hosts of a web, and what each of their URLs answers.

    `dead` hosts cannot be reached, `hanging` ones do not answer, or stop to: these are shares of
    all. `scale` is a factor of all seconds but those of Retry-After and of the system's resolver.
    `largest` is the number of pages of the largest host. `ports` has the port for each scheme, if
    it is not the default.
    """

    def __init__(
        self,
        *,
        seed: int = 1,
        hosts: int = 3_000,
        dead: float = 0.03,
        hanging: float = 0.02,
        scale: float = 1.0,
        largest: int | None = None,
        ports: Mapping[str, int] | None = None,
    ) -> None:
        self.seed = seed
        self.scale = scale
        self._ports = {scheme: f":{port}" for scheme, port in (ports or {}).items()}
        chance = random.Random(f"{seed} {hosts}")
        kinds = {
            **dict.fromkeys(DEAD, dead / len(DEAD)),
            **dict.fromkeys(HANGING, hanging / len(HANGING)),
            **_OTHERS,
        }
        largest = round(LARGEST * hosts) if largest is None else largest
        ranks = list(range(1, hosts + 1))
        chance.shuffle(ranks)
        # The largest hosts are well in every web: else webs of two seeds would not be alike.
        great = max(3, hosts // 300)
        drawn_kinds = _drawn(kinds, Kind.WELL, hosts, chance)
        drawn_files = _drawn(_FILES, File.OPEN, hosts, chance)
        made = []
        for number, rank in enumerate(ranks):
            kind, file = drawn_kinds[number], drawn_files[number]
            if rank <= great:
                kind, file = Kind.WELL, file if file in _MILD else File.OPEN
            made.append(self._host(number, rank, kind, file, largest, chance))
        sources = [host.number for host in made if _is_source(host)]
        if not sources:
            raise ValueError(f"a web of {hosts} hosts has none that links to the others")
        self.hosts = tuple(replace(host, target=chance.choice(sources)) for host in made)
        self._by_name = {host.name: host for host in self.hosts}
        # The hosts that are linked to from a page, so that each can be reached.
        self._outward: dict[tuple[int, int], list[int]] = {}
        self.seeds = tuple(map(self.home, self._grown(sources, chance)))

    def __repr__(self) -> str:
        return f"<BroadWeb: seed {self.seed}, {len(self.hosts)} hosts>"

    def _host(
        self, number: int, rank: int, kind: Kind, file: File, largest: int, chance: random.Random
    ) -> Host:
        pages = max(1, round(largest / rank**STEEPNESS))
        delay, rest = float(chance.randint(1, 10)), chance.randint(1, 3)
        if file is File.DELAY:
            pages = min(pages, int(MOST_DELAYED / delay) - 1)
        if kind is Kind.BUSY:
            pages = min(pages, int(MOST_SECONDS / rest) * (EVERY - 1))
        latency = FASTEST * (SLOWEST / FASTEST) ** chance.random()
        latency = min(latency, MOST_SECONDS * PER_HOST / pages)
        secure, twin = chance.random() < _SECURE, chance.random() < _TWINS
        return Host(
            number=number,
            name=f"h{number}.broad.test",
            kind=kind,
            file=file,
            pages=max(1, pages),
            first=NUMBERS[rank % len(NUMBERS)],
            latency=latency * self.scale,
            delay=delay * self.scale if file is File.DELAY else 0.0,
            rest=rest,
            secure=secure or kind is Kind.GARBAGE,
            twin=twin,
            target=-1,
        )

    def _grown(self, sources: Sequence[int], chance: random.Random) -> list[int]:
        """Link to each host from a page of an earlier one; return the hosts that are seeds."""
        able = set(sources)
        order = [host.number for host in self.hosts]
        chance.shuffle(order)
        first = next(place for place, number in enumerate(order) if number in able)
        order[0], order[first] = order[first], order[0]
        seeds = max(2, round(SEEDS * len(order)))
        earlier = [number for number in order[:seeds] if number in able]
        for number in order[seeds:]:
            parent = chance.choice(earlier)
            page = int(self.hosts[parent].pages * chance.random() ** 3)
            self._outward.setdefault((parent, page), []).append(number)
            if number in able:
                earlier.append(number)
        return order[:seeds]

    def origin(self, host: Host, scheme: str | None = None) -> str:
        """Return the scheme, name and port of a host: those of its pages, or of `scheme`."""
        scheme = scheme or ("https" if host.secure else "http")
        return f"{scheme}://{host.name}{self._ports.get(scheme, '')}"

    def home(self, number: int) -> str:
        """Return the URL of the first page of a host, as others link to it: http, or its twin."""
        host = self.hosts[number]
        http = self.origin(host, "http")
        if host.twin and crc32(f"{self.seed} {number}".encode()) % 2:
            http = http.replace("://", "://www.", 1)
        return f"{http}/"

    def path(self, host: Host, page: int) -> str:
        """Return the path of a page of a host."""
        return f"/p/{host.first + page}" if page else "/"

    def host(self, name: str) -> Host:
        """Return the host of a name, with or without a port and `www.`. Raises KeyError."""
        return self._by_name[name.partition(":")[0].removeprefix("www.")]

    def wanted(self) -> Iterator[str]:
        """Yield the URL of each page that can be had."""
        for host in self.hosts:
            if host.is_served:
                origin = self.origin(host)
                yield from (origin + self.path(host, page) for page in range(host.pages))

    def is_wanted(self, url: str) -> bool:
        """Whether a URL is that of a page that can be had."""
        scheme, name, path = parts(url)
        host = self.host(name)
        whole = self.origin(host) == f"{scheme}://{name}" and host.is_served
        return whole and self._page(host, path) is not None

    def bound(self, per_host: int = PER_HOST) -> Bound:
        """Return what a crawl of all the pages that can be had takes at least."""
        served = [host for host in self.hosts if host.is_served]
        work = sum((1 + host.pages) * host.latency for host in served)
        return Bound(max(host.least(per_host) for host in served), work)

    def failing_lookup(self, name: str) -> FailingLookup | None:
        """Return how the lookup of a name fails; None if it succeeds."""
        return _LOOKUPS.get(self.host(name).kind)

    def reply(self, url: str, asked: int) -> Reply:
        """Return what a URL answers when its host was asked for so many pages before."""
        scheme, name, path = parts(url)
        host = self.host(name)
        silent = host.kind is Kind.SILENT or (host.kind is Kind.STOPS and asked >= SERVED)
        if silent:
            return Reply(0, (), b"", math.inf)
        if name.startswith("www."):
            return _moved(f"{scheme}://{name.removeprefix('www.')}{path}", host)
        if host.secure and scheme == "http":
            return _moved(self.origin(host) + path, host)
        if host.kind is Kind.MOVED:
            moved = self.origin(self.hosts[host.target])
            return _moved(moved + (path if path == ROBOTS else "/"), host)
        if path == ROBOTS:
            return self._robots(host)
        if path.startswith(MOVED_ROBOTS):
            return _text(_OPEN, host)
        page = self._page(host, path.replace("/private/", "/p/", 1))
        if page is None:
            return Reply(404, (("Content-Type", "text/plain"),), b"not here", host.latency)
        if host.kind is Kind.DOWN:
            return Reply(503, (("Content-Type", "text/plain"),), b"down", host.latency)
        if host.kind is Kind.BUSY and asked % EVERY == EVERY - 1:
            status = 429 if host.number % 2 else 503
            fields = (("Retry-After", str(host.rest)),)
            return Reply(status, fields, b"", host.latency, host.rest)
        html, leads = (("Content-Type", "text/html; charset=utf-8"),), self._others(host, page)
        return Reply(200, html, self._body(host, page, leads), host.latency, leads=leads)

    def _page(self, host: Host, path: str) -> int | None:
        """Return the number of a page; None if the host has no page with this path."""
        if path == "/":
            return 0
        digits = path.removeprefix("/p/")
        if digits == path or not digits.isdecimal():
            return None
        page = int(digits) - host.first
        return page if 0 < page < host.pages and self.path(host, page) == path else None

    def _robots(self, host: Host) -> Reply:
        if host.file is File.MOVED and host.number % 2:
            target = self.origin(self.hosts[host.target])
            return _moved(f"{target}{MOVED_ROBOTS}{host.number}.txt", host)
        match host.file:
            case File.MISSING:
                return Reply(404, (("Content-Type", "text/plain"),), b"none", host.latency)
            case File.BROKEN:
                return Reply(500 + host.number % 4, (), b"", host.latency)
            case File.MOVED:
                return _moved(f"{self.origin(host)}{MOVED_ROBOTS}main.txt", host)
            case File.CLOSED:
                return _text(b"User-agent: *\nDisallow: /\n", host)
            case File.RULES:
                return _text(b"User-agent: *\nDisallow: /private/\nDisallow: /*?\n", host)
            case File.DELAY:
                return _text(b"User-agent: *\nCrawl-delay: %g\n" % host.delay, host)
        return _text(_OPEN, host)

    def _body(self, host: Host, page: int, leads: Sequence[str]) -> bytes:
        number = host.first + page
        near = *range(LINKS * page + 1, LINKS * page + LINKS + 1), page - 1, page + 1, 0
        links = [self.path(host, other) for other in near if 0 <= other < host.pages]
        if host.file is File.RULES and page % LINKS == 3:
            links += [f"/private/{number}", f"/?sort={number}"]
        links += leads
        text = f"<p>Item {number} Price {number * 7 % 9973}</p>"
        anchors = "".join(f'<li><a href="{link}">{link}</a>' for link in links)
        return f"<!doctype html><title>Item {number}</title>{text}<ul>{anchors}</ul>".encode()

    def _others(self, host: Host, page: int) -> tuple[str, ...]:
        """Return the links of a page to other hosts."""
        numbers = self._outward.get((host.number, page), [])
        drawn = crc32(f"{self.seed} {host.number} {page}".encode())
        if drawn % 5 == 0:
            numbers = [*numbers, drawn // 5 % len(self.hosts)]
        return tuple(map(self.home, numbers))


ROBOTS = "/robots.txt"
MOVED_ROBOTS = "/robots/"
_MILD = (File.MISSING, File.OPEN, File.RULES)


def parts(url: str) -> tuple[str, str, str]:
    """Return the scheme, the name with the port, and the path of an absolute URL."""
    scheme, _, rest = url.partition("://")
    name, slash, path = rest.partition("/")
    return scheme, name, slash + path


def _drawn(
    shares: Mapping[_Share, float], rest: _Share, hosts: int, chance: random.Random
) -> list[_Share]:
    """Return a value for each host: each its share of them, at least one, and else `rest`."""
    found = [value for value, share in shares.items() for _ in range(_count(share, hosts))]
    found = [*found, *[rest] * (hosts - len(found))]
    chance.shuffle(found)
    return found


def _count(share: float, hosts: int) -> int:
    return max(1, round(share * hosts)) if share else 0


def _is_source(host: Host) -> bool:
    """Whether other hosts may be found by the links of this one: soon, and in every crawl."""
    return host.kind is Kind.WELL and host.file in _MILD


def _moved(target: str, host: Host) -> Reply:
    return Reply(301, (("Location", target),), b"", host.latency)


def _text(body: bytes, host: Host) -> Reply:
    return Reply(200, (("Content-Type", "text/plain"),), body, host.latency)
