"""Politeness: how gently a crawl treats each host."""

from __future__ import annotations

import math
from dataclasses import dataclass

from trio_crawler.model import Fault, Reason


@dataclass(frozen=True, slots=True)
class Politeness:
    """Say how gently a crawl treats each host; a host is a name or an address, and a port.

    `per_host` is how many requests to it are in flight at most. Four leave room for others: a
    browser opens six connections to a host for one visitor, and the smallest pool in wide use,
    that of PHP-FPM as it is delivered, answers five requests at once.

    `delay` is the least time from one start to the next, in seconds; a crawl-delay in robots.txt
    makes it longer. With `adaptive` the limit begins at `per_host` and follows the time that
    answers take: one more with each round that is as quick as ever, half as many after a slow one
    or a failure, 64 at most.

    `patience` (seconds) is how long a host that has answered before may fail, without any good
    answer, until it is given up; one that never answered is given up after `Limits.max_tries`.
    `robots` and `nofollow` say whether robots.txt, and what pages, headers and links say of not
    following, are obeyed. `agent` is the product token that robots.txt is read for, or a
    User-Agent that begins with it; None takes that of the fetch.

    Raises ValueError, naming it, for a figure that cannot be meant.
    """

    per_host: int = 4
    delay: float = 0.0
    adaptive: bool = False
    patience: float = 360.0
    robots: bool = True
    nofollow: bool = True
    agent: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.per_host < math.inf:
            raise ValueError(f"per_host must be 1 or more, not {self.per_host}")
        for name in ("delay", "patience"):
            figure = getattr(self, name)
            if not 0 <= figure < math.inf:
                raise ValueError(f"{name} must be 0 or more seconds, not {figure}")


@dataclass(frozen=True, slots=True)
class HostStatistics:
    """Tell of one host at one moment, as far as it is asked by `scheme`.

    `waiting` URLs wait for their turn, `flying` requests are under way, of `limit` at most.
    `delay` is the least time between starts, `rest` the seconds until the next may start,
    `latency` what an answer takes, smoothed (all in seconds). `failures` came in a row;
    `given_up` says why it is not asked any more.
    """

    scheme: str
    host: str
    waiting: int
    flying: int
    limit: int
    delay: float
    rest: float
    latency: float
    failures: int
    given_up: Reason | Fault | None
