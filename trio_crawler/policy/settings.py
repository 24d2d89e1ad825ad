"""The settings of a crawl: how far it goes, in which order, how gently, and what it checks."""

# No `from __future__ import annotations` here: `typing.get_type_hints` would look the names up in
# `__module__`, which is set to another module.

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Protocol

import msgspec
from msgspec.structs import force_setattr, replace

from trio_crawler.arguments import (
    ArgumentError,
    check_flag,
    check_kind,
    check_number,
    check_whole,
    public,
)
from trio_crawler.model import Fault, Job, Reason
from trio_crawler.page.urls import host, host_name

CHECKED = frozenset({Reason.OTHER_SITE, Reason.NOT_INCLUDED, Reason.TOO_DEEP})
"""Why a URL is outside of the crawl and may be checked; what a user has excluded may not."""

DELAY, QUICK_DELAY = 0.5, 0.1
"""Seconds between two checks of one host, at first and after two good answers in a row."""


@public("trio_crawler")
class Limits(msgspec.Struct, frozen=True):
    """The bounds of a crawl; `math.inf` is no bound.

    `max_pages` counts failures, and pages with any status; a redirect and its target count as
    one. With `max_depth` the crawl goes level by level, so that a page's depth is its true
    distance from a seed. After `max_seconds` no URL is admitted and no request is started; the
    requests in flight finish. `max_redirects` bounds the redirects in a row, `max_tries` the
    attempts at one URL, and `max_links` the links that are followed from one page; of these all
    URLs together have at most 4 MiB. The timeout of a request and the bound on a body belong to
    the fetch: see `HttpFetch`.

    No URL is admitted while the URLs that wait, with their referrers and 100 bytes for each, have
    `max_waiting` bytes, and none of a new host after `max_hosts` were found (a host counts for
    each of its ports). Seeds are always admitted.

    Raises TypeError or ValueError, naming the limit, for an invalid value.

    >>> Limits(max_depth=2, max_pages=500, max_seconds=60.0).max_pages
    500
    """

    max_depth: float = math.inf
    max_pages: float = math.inf
    max_seconds: float = math.inf
    max_redirects: int = 10
    max_tries: int = 4
    max_links: int = 100_000
    max_waiting: float = 2**30
    max_hosts: float = 50_000

    def __post_init__(self) -> None:
        if self.max_depth != math.inf:
            check_whole("max_depth", self.max_depth)
        if self.max_pages != math.inf:
            check_whole("max_pages", self.max_pages, least=1)
        check_number("max_seconds", self.max_seconds, above=True)
        check_whole("max_redirects", self.max_redirects)
        check_whole("max_tries", self.max_tries, least=1)
        check_whole("max_links", self.max_links, least=1)
        check_number("max_waiting", self.max_waiting, least=1)
        check_number("max_hosts", self.max_hosts, least=1)


@public("trio_crawler")
class Order(Protocol):
    """Rank a job: any `(job) -> rank`.

    Among the jobs of one host that may start, the one with the least rank starts; among equal
    ranks the oldest. Ranks must compare with `<` and be hashable. The crawl calls it once for each
    job that is admitted. An order must not block. Each rank of the jobs that wait takes memory,
    at each host: some hundreds of ranks are well, and a million are dear.

    >>> def manuals_first(job: Job) -> tuple[bool, int]:
    ...     return "/manual/" not in job.url, job.depth
    >>> order: Order = manuals_first
    >>> crawler = Crawler(["https://e.org/"], order=order)
    >>> jobs = [Job("https://e.org/a", depth=1), Job("https://e.org/manual/b", depth=3)]
    >>> min(jobs, key=order).url
    'https://e.org/manual/b'
    """

    def __call__(self, job: Job, /) -> Any: ...


def breadth_first(job: Job) -> float:
    """Rank a `job` by the number of links from a seed: pages near a seed start before deep ones.

    >>> near, far = Job("https://e.org/", depth=1), Job("https://e.org/a/b", depth=4)
    >>> sorted([far, near], key=breadth_first) == [near, far]
    True
    """
    check_kind("job", job, Job, "a Job")
    return job.depth


def depth_first(job: Job) -> float:
    """Rank a deep `job` first: a crawl then follows one branch to its end.

    >>> near, far = Job("https://e.org/", depth=1), Job("https://e.org/a/b", depth=4)
    >>> sorted([near, far], key=depth_first) == [far, near]
    True
    """
    check_kind("job", job, Job, "a Job")
    return -job.depth


def by_sitemap(job: Job) -> tuple[float, int]:
    """Rank a `job` by its priority in a sitemap, highest first (0.5 if none), then by depth.

    Priorities are rounded to hundredths.

    >>> first, other = Job("https://e.org/new", priority=1.0), Job("https://e.org/a")
    >>> sorted([other, first], key=by_sitemap) == [first, other]
    True
    """
    check_kind("job", job, Job, "a Job")
    return (-0.5 if job.priority is None else round(-job.priority, 2)), job.depth


for _function in (breadth_first, depth_first, by_sitemap):
    _function.__module__ = "trio_crawler"


@public("trio_crawler")
class HostPoliteness(msgspec.Struct, frozen=True):
    """How gently a crawl treats one host, where that is not as it treats the others.

    At most `per_host` requests to it are in flight, and its `delay` is at least so many seconds;
    None is what the `Politeness` of the crawl says.

    Raises TypeError or ValueError, naming the argument, for an invalid value.

    >>> mirror = HostPoliteness(per_host=20, delay=0.0)
    >>> Politeness(per_host=2, hosts={"mirror.e.org": mirror}).per_host
    2
    """

    per_host: int | None = None
    delay: float | None = None

    def __post_init__(self) -> None:
        if self.per_host is not None:
            check_whole("per_host", self.per_host, least=1)
        if self.delay is not None:
            check_number("delay", self.delay, finite=True)


@public("trio_crawler")
class Politeness(msgspec.Struct, frozen=True):
    """How gently a crawl treats each host; a host is a name or an address, and a port.

    At most `per_host` requests to a host are in flight. The default of four leaves room for other
    visitors: a browser opens six connections to a host, and PHP-FPM answers five requests at once
    in its default configuration. Hosts at one address share that limit and the `delay`: they are
    one server. Where many unrelated sites share it, half as many requests may be in flight as
    there are registrable domains, up to 16, and the delay shrinks likewise. A crawl knows the
    addresses if its fetch does, as `HttpFetch`.

    `delay` is the least number of seconds between the starts of two requests; a longer crawl-delay
    in robots.txt takes its place. A request starts when its first byte is written; for a fetch
    that is not `HttpFetch`, when the fetch is called. With `adaptive` the limit of requests in
    flight begins at `per_host` and follows the latency: it grows by one for each round of answers
    that are as quick as before, up to 64, and is halved after a slow answer or a failure.

    `patience` is the number of seconds without a good answer after which a host that has answered
    before is given up. A host that never answered is given up after `Limits.max_tries`.

    With `robots`, robots.txt is obeyed; with `nofollow`, rel=nofollow, robots meta elements and
    X-Robots-Tag are obeyed. With `side_effects` links are followed even if they look as if they
    log out, delete or edit something; without, they are rejected (`Reason.SIDE_EFFECT`). None
    follows them only if the fetch sends no credentials: no cookies, no login, no certificate of
    the client. The seeds are always fetched.

    `agent` is the product token to look for in robots.txt, or a User-Agent that begins with it;
    None stands for the User-Agent of the fetch.

    `hosts` has, by the name of a host, what is different there, on all of its ports, also for the
    checks of links; robots.txt may still ask for a longer delay.

    Raises TypeError or ValueError, naming the argument, for an invalid value.

    >>> gentle = Politeness(per_host=1, delay=2.0, hosts={"e.org": HostPoliteness(delay=10.0)})
    >>> gentle.hosts["e.org"].delay
    10.0
    """

    per_host: int = 4
    delay: float = 0.0
    adaptive: bool = False
    patience: float = 360.0
    robots: bool = True
    nofollow: bool = True
    side_effects: bool | None = None
    agent: str | None = None
    hosts: Mapping[str, HostPoliteness] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        check_kind("hosts", self.hosts, Mapping, "each HostPoliteness by the name of its host")
        hosts: dict[str, HostPoliteness] = {}
        for name, own in self.hosts.items():
            check_kind(f"hosts[{name!r}]", own, HostPoliteness, "a HostPoliteness")
            hosts[host_name("hosts", name)] = own
        force_setattr(self, "hosts", hosts)
        check_whole("per_host", self.per_host, least=1)
        for name in ("delay", "patience"):
            check_number(name, getattr(self, name), finite=True)
        for name in ("adaptive", "robots", "nofollow"):
            check_flag(name, getattr(self, name))
        check_kind("side_effects", self.side_effects, bool | None, "True, False or None")
        if self.agent is not None:
            check_kind("agent", self.agent, str, "a str")

    def __hash__(self) -> int:
        # A dict has none.
        return hash((self.per_host, self.delay, self.robots, self.agent))


def at_host(politeness: Politeness, url: str, base: Politeness) -> Politeness:
    """Return the `base` with what is different at the host of a normalised URL."""
    if (own := politeness.hosts.get(host(url))) is None:
        return base
    per_host = base.per_host if own.per_host is None else own.per_host
    delay = base.delay if own.delay is None else own.delay
    return replace(base, per_host=per_host, delay=delay)


@public("trio_crawler.frontier")
class HostWait(StrEnum):
    """What the jobs of a host wait for; "" if no job waits.

    >>> HostWait("robots") is HostWait.ROBOTS, [wait.value for wait in HostWait]
    (True, ['', 'robots', 'probe', 'answer', 'rest', 'turn'])
    """

    NOTHING = ""
    ROBOTS = "robots"
    """The answer of its robots.txt."""
    PROBE = "probe"
    """The answer to a probe: a page that the host has served before."""
    ANSWER = "answer"
    """An answer: as many requests are in flight as may be."""
    REST = "rest"
    """The end of its delay, of a Retry-After, or of the rest after a failure."""
    TURN = "turn"
    """A free worker."""


@public("trio_crawler.frontier")
class HostStatistics(msgspec.Struct, frozen=True):
    """The state of one host at one moment, by http and https together.

    `name` is a name or an address, with its port. `waiting` is the number of jobs that wait for
    their turn, `waits_for` what the next of them waits for. `in_flight` is the number of requests
    without an answer yet, `limit` the most that may be in flight, `failures` the number of
    failures in a row. In seconds: `delay` is the least time between the starts of two requests,
    `rest` the time until the next one may start, `latency` the smoothed time that an answer takes.
    The politeness or robots.txt asks for the delay `asked`, which is 0 if URLs of the host are
    only checked, with at most the delay of checks; a longer delay was learned from answers with
    429 and 503, and `refused` counts these answers since it is. `given_up` has the reason for
    each scheme ("http", "https") that was given up.

    Since the crawl began: `pages` counts the answers to pages with any status but a redirect, 429
    and those of a server in trouble (5xx), and `bytes` the bytes of their bodies. `failed` counts
    all other requests but redirects: each try, and those for robots.txt too.

    >>> web = Web({"/": html("/a"), "/a": html()})
    >>> crawler = Crawler([web.url], fetch=web)
    >>> totals = trio.run(crawler.crawl)
    >>> host: HostStatistics = crawler.hosts["site.test"]
    >>> host.pages, host.limit, host.delay, host.given_up
    (2, 4, 0.0, {})
    """

    name: str
    waiting: int
    in_flight: int
    limit: int
    delay: float
    rest: float
    latency: float
    failures: int
    given_up: Mapping[str, Reason | Fault]
    pages: int = 0
    failed: int = 0
    bytes: int = 0
    waits_for: HostWait = HostWait.NOTHING
    asked: float = 0.0
    refused: int = 0


@public("trio_crawler")
class Checks(msgspec.Struct, frozen=True):
    """The links that a crawl checks besides the pages that it fetches.

    With `external` a URL that the scope keeps out of the crawl as `OTHER_SITE` or `NOT_INCLUDED`,
    or the depth as `TOO_DEEP`, is asked for once, by HEAD, and by GET where a server answers HEAD
    with an error; its redirects are followed, its links are not. An `EXCLUDED` URL is not asked
    for: a scope that answers False means that.

    With `assets` the images, style sheets, scripts and other parts of a page are asked for like
    pages, and style sheets and manifests are read for more of them. With `fragments` the places
    that `#fragments` name are looked up in their pages; an external page is then fetched whole,
    once, and so is one that a page of the crawl redirects to. With any of these, frames, refreshes
    and what `link` names are followed like links.

    A host that the crawl does not enter gets one request at a time, and the next one `delay`
    seconds later at the earliest. None stands for half a second, and for a tenth of a second after
    two good answers in a row that came within half a second each: until an answer is slower, or
    the host fails, and never again once it has refused a request. With `robots` its robots.txt is
    obeyed. By default it is not asked for: a check is what a reader does who clicks on the link,
    once and without going on, and most such hosts are named by one link only, so that the rules
    would double the requests.

    With `max_age` a refresh does not ask again for an external URL that an earlier walk found fine
    less than so many seconds ago: that it answered with a success (2xx), or redirected to one that
    did. Its outcome has the status of that walk, and no tries. All others are asked for again.

    At most `max_per_host` URLs of each host outside are checked, in one run, and none at more than
    ten of its ports. Others are rejected as `CHECK_BUDGET` and `TOO_MANY_PORTS`.

    Raises TypeError or ValueError, naming the argument, for an invalid value.

    >>> Checks(external=False).fragments, Checks.off().fragments
    (True, False)
    """

    external: bool = True
    assets: bool = True
    fragments: bool = True
    robots: bool = False
    delay: float | None = None
    max_age: float = 0.0
    max_per_host: float = math.inf

    def __post_init__(self) -> None:
        for name in ("external", "assets", "fragments", "robots"):
            check_flag(name, getattr(self, name))
        if self.delay is not None:
            check_number("delay", self.delay, finite=True)
        check_number("max_age", self.max_age)
        if self.max_per_host != math.inf:
            check_whole("max_per_host", self.max_per_host, least=1)
        for name in ("max_age", "max_per_host"):
            if getattr(self, name) not in (0, math.inf) and not self.external:
                raise ArgumentError(name, " needs external=True: it is about external URLs")

    @classmethod
    def off(cls) -> "Checks":
        """Return checks of nothing."""
        return cls(external=False, assets=False, fragments=False)

    @property
    def any(self) -> bool:
        """Whether anything is checked."""
        return self.external or self.assets or self.fragments

    @property
    def kinds(self) -> tuple[str, ...]:
        """The names of what is checked, sorted: they can be part of the meaning of a directory."""
        return tuple(name for name in ("assets", "external", "fragments") if getattr(self, name))
