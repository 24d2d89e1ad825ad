"""What the servers of a broad web see of a crawler: its requests, and those they should not."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from sites.broad import PER_HOST, ROBOTS, BroadWeb, File, Kind, Reply, parts


class Violation(NamedTuple):
    """A request that should not have come, at a `moment`: by so much (requests, or seconds)."""

    what: str
    url: str
    moment: float
    amount: float


@dataclass(slots=True)
class _Seen:
    """What one name, with its port, has seen."""

    pages: int = 0
    in_flight: int = 0
    last: float = -math.inf
    delay: float = 0.0
    asked: float = -math.inf
    held: float = -math.inf


@dataclass
class Watch:
    """Judge the requests to a web. The caller says when each one starts and ends.

    A request that starts less than `slack` seconds too early is no violation, nor is one that
    starts so soon after an answer with Retry-After or with a crawl-delay that it may have been
    under way. `first` has the moment of the first request to each name, `linked` the moment at
    which a page first led there.
    """

    web: BroadWeb
    slack: float = 1e-6
    per_host: int = PER_HOST
    requests: int = 0
    in_flight: int = 0
    peak: int = 0
    violations: list[Violation] = field(default_factory=list)
    first: dict[str, float] = field(default_factory=dict)
    linked: dict[str, float] = field(default_factory=dict)
    robots: Counter[str] = field(default_factory=Counter)
    _seen: dict[str, _Seen] = field(default_factory=dict)

    def start(self, url: str, now: float) -> int:
        """Record that a request starts; return how many pages its name was asked for before."""
        _, name, path = parts(url)
        seen = self._seen.setdefault(name, _Seen())
        self.first.setdefault(name, now)
        self.requests += 1
        self.in_flight += 1
        seen.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        self._judge(seen, name, path, url, now)
        seen.last = now
        before = seen.pages
        if path == ROBOTS:
            self.robots[url] += 1
        else:
            seen.pages += 1
        return before

    def end(self, url: str) -> None:
        """Record that a request has got its answer, or was given up."""
        self.in_flight -= 1
        self._seen[parts(url)[1]].in_flight -= 1

    def answer(self, url: str, reply: Reply, now: float) -> None:
        """Record what a request is answered with, before its end."""
        _, name, path = parts(url)
        seen, host = self._seen[name], self.web.host(name)
        if reply.rest:
            seen.held, seen.asked = max(seen.held, now + reply.rest), now
        if path == ROBOTS and reply.status == 200 and not seen.delay:
            seen.delay, seen.asked = host.delay, now
        for lead in reply.leads:
            self.linked.setdefault(parts(lead)[1], now)

    def waits(self) -> list[float]:
        """Return how long each name waited for its first request, sorted."""
        return sorted(now - self.linked.get(name, 0.0) for name, now in self.first.items())

    def count(self) -> Counter[str]:
        """Return the number of violations of each sort."""
        return Counter(violation.what for violation in self.violations)

    def forget(self) -> None:
        """Forget what was asked of the crawler: another one begins, after a long time."""
        for seen in self._seen.values():
            seen.delay, seen.held = 0.0, -math.inf

    def _judge(self, seen: _Seen, name: str, path: str, url: str, now: float) -> None:
        if seen.in_flight > self.per_host:
            self._note("more at once", url, now, seen.in_flight)
        host = self.web.host(name)
        known = now > seen.asked + self.slack
        # The robots.txt that a redirect of another origin leads to says nothing of this one, which
        # is asked again for its own sake.
        hop = path == ROBOTS and (host.secure or host.twin)
        if known and not hop and seen.last + seen.delay > now + self.slack:
            self._note("crawl-delay", url, now, seen.last + seen.delay - now)
        if known and seen.held > now + self.slack:
            self._note("Retry-After", url, now, seen.held - now)
        if path.startswith("/private/") or "?" in path:
            self._note("disallowed", url, now, 1)
        closed = host.file in (File.BROKEN, File.CLOSED) and host.kind is not Kind.MOVED
        if closed and path != ROBOTS:
            self._note("disallowed", url, now, 1)

    def _note(self, what: str, url: str, now: float, amount: float) -> None:
        self.violations.append(Violation(what, url, now, amount))
