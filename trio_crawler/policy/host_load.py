"""The load of a host: its requests in flight, and the time between two of them.

The clock is an argument.
"""

from __future__ import annotations

import math

from trio_crawler.policy.learned_rate import LearnedRate
from trio_crawler.policy.politeness import Politeness

MAX_LIMIT = 64
"""Requests in flight at one host that an adaptive limit can reach."""

# A host is busy if its latency exceeds _SLOWER times its best latency, plus _NOISE seconds.
_SLOWER, _NOISE = 2.0, 0.02
_SMOOTHING = 0.2
_FOREVER = 1 << 60
# One object for all hosts: each other one would take 24 bytes.
_NEVER = -math.inf


class HostLoad:
    """The load of one host, by http and https together.

    `in_flight` is the number of requests in flight, `limit` the most that may be; it grows and
    shrinks if the politeness is adaptive. `delay` is the least number of seconds between two
    starts, `last` the time of the last start, `held` the time until which Retry-After asked to
    wait, `taken` the time until which a request that has not started yet has the turn. `latency`
    is smoothed, in seconds, and `slowest` is that of the slowest good answer. `learned` is the
    rate that the host allows, if it refuses requests; the limit and the delay follow it. After two
    good answers in a row that are not slower than the delay of the politeness, `quick` takes its
    place; but not once the host has refused a request.
    """

    __slots__ = (
        "_best",
        "_row",
        "_shrunk",
        "delay",
        "held",
        "in_flight",
        "last",
        "latency",
        "learned",
        "limit",
        "politeness",
        "quick",
        "slowest",
        "taken",
    )

    def __init__(self, politeness: Politeness, quick: float | None = None) -> None:
        self.in_flight = 0
        self.limit: float = politeness.per_host
        self.delay = politeness.delay
        self.quick = self.delay if quick is None else quick
        self._row = 0
        self.held = self.last = self.taken = self._shrunk = _NEVER
        self.latency = self.slowest = 0.0
        self._best = math.inf
        self.politeness = politeness
        self.learned: LearnedRate | None = None

    def record(self, seconds: float, now: float) -> None:
        """Record the seconds that a good answer took, and adapt an adaptive limit."""
        self.latency += _SMOOTHING * (seconds - self.latency) if self.latency else seconds
        self._best = min(self._best, self.latency)
        if seconds > self.slowest:
            self.slowest = seconds
        if self.politeness.adaptive:
            if self.latency <= _SLOWER * self._best + _NOISE:
                self.limit = min(self.limit + 1 / self.limit, MAX_LIMIT)
            elif now - seconds >= self._shrunk:
                self.shrink(now)
        if self.learned is not None:
            self.learned.accept(self, now - seconds, now)
        if self.quick < self.politeness.delay:
            if seconds > self.politeness.delay:
                self.brake()
            elif self._row > 0 and self.learned is None and self.delay == self.politeness.delay:
                self.delay = self.quick
            else:
                self._row += 1

    def brake(self) -> None:
        """Record that the host was slow, failed or refused: its delay is the whole one again."""
        self._row = min(self._row, 0)
        if self.delay == self.quick < self.politeness.delay:
            self.delay = self.politeness.delay

    def refuse(self, url: str, seconds: float, now: float, good: float) -> bool:
        """Record an answer with 429 or 503; return whether it shows a limit of the rate.

        It came after so many seconds, and the last good one at the time `good`.
        """
        self.brake()
        # For good: it would be refused again and again.
        self._row = -_FOREVER
        if self.learned is not None:
            return self.learned.refuse(self, url, now - seconds, now, good)
        if good > _NEVER:
            self.learned = LearnedRate(self, url, now - seconds, now, good)
        return False

    def ask(self, delay: float) -> bool:
        """Record a delay that the host asks for; return whether it is longer than before."""
        asked = self.delay if self.learned is None else self.learned.asked
        self.quick = max(self.quick, delay)
        if delay <= asked:
            return False
        if self.learned is not None:
            self.learned.asked = delay
        self.delay = max(self.delay, delay)
        return True

    def shrink(self, now: float) -> None:
        """Halve an adaptive limit, once for all requests in flight at this moment."""
        if self.politeness.adaptive:
            self.limit = max(self.limit / 2, 1.0)
            self._shrunk = now
