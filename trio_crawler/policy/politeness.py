"""Politeness: how gently a crawl treats each host."""

from collections.abc import Mapping
from dataclasses import dataclass

from trio_crawler.arguments import check_flag, check_kind, check_number, check_whole
from trio_crawler.model import Fault, Reason


@dataclass(frozen=True, slots=True)
class Politeness:
    """How gently a crawl treats each host; a host is a name or an address, and a port.

    At most `per_host` requests to a host are in flight. Four leave room for others: a browser
    opens six connections to a host for one visitor, and the smallest pool in wide use, that of
    PHP-FPM as it is delivered, answers five requests at once.

    `delay` is the least number of seconds between two starts; a crawl-delay in robots.txt makes it
    longer. With `adaptive` the limit begins at `per_host` and follows the time that answers take:
    one more with each round that is as quick as before, half as many after a slow answer or a
    failure, 64 at most.

    `patience` is how many seconds a host that has answered before may fail, without any good
    answer, until it is given up; a host that never answered is given up after `Limits.max_tries`.
    `robots` says whether robots.txt is obeyed, `nofollow` whether rel=nofollow, robots meta
    elements and X-Robots-Tag are. `agent` is the product token that robots.txt is read for, or a
    User-Agent that begins with it; None stands for that of the fetch.

    Raises TypeError and ValueError, naming it, for an argument that makes no sense.
    """

    __module__ = "trio_crawler"

    per_host: int = 4
    delay: float = 0.0
    adaptive: bool = False
    patience: float = 360.0
    robots: bool = True
    nofollow: bool = True
    agent: str | None = None

    def __post_init__(self) -> None:
        check_whole("per_host", self.per_host, least=1)
        for name in ("delay", "patience"):
            check_number(name, getattr(self, name), finite=True)
        for name in ("adaptive", "robots", "nofollow"):
            check_flag(name, getattr(self, name))
        if self.agent is not None:
            check_kind("agent", self.agent, str, "a str")


@dataclass(frozen=True, slots=True)
class HostStatistics:
    """One host at one moment: a name or an address, with its port, by http and https together.

    `waiting` jobs wait for their turn, `in_flight` requests have no answer yet, of `limit` at
    most. `delay` is the least time between two starts, `rest` the time until the next may start,
    `latency` the time that an answer takes, smoothed (all in seconds). `failures` came in a row.
    `given_up` has the reason, by scheme, why no more is requested.
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
