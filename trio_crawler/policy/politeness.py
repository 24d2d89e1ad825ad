"""Politeness: how gently a crawl treats each host."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from trio_crawler.arguments import check_flag, check_kind, check_number, check_whole
from trio_crawler.model import Fault, Reason


@dataclass(frozen=True, slots=True)
class Politeness:
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

    Raises TypeError or ValueError, naming the argument, for an invalid value.
    """

    __module__ = "trio_crawler"

    per_host: int = 4
    delay: float = 0.0
    adaptive: bool = False
    patience: float = 360.0
    robots: bool = True
    nofollow: bool = True
    side_effects: bool | None = None
    agent: str | None = None

    def __post_init__(self) -> None:
        check_whole("per_host", self.per_host, least=1)
        for name in ("delay", "patience"):
            check_number(name, getattr(self, name), finite=True)
        for name in ("adaptive", "robots", "nofollow"):
            check_flag(name, getattr(self, name))
        check_kind("side_effects", self.side_effects, bool | None, "True, False or None")
        if self.agent is not None:
            check_kind("agent", self.agent, str, "a str")


class HostWait(StrEnum):
    """What the jobs of a host wait for; "" if no job waits."""

    __module__ = "trio_crawler.frontier"

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


@dataclass(frozen=True, slots=True)
class HostStatistics:
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
    """

    __module__ = "trio_crawler.frontier"

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
