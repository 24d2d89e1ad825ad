"""The load of a host: its requests in flight, and the time between two of them.

A host with a limit of the rate refuses some requests (429, 503) and answers others at the same
time. A host that is down refuses all. The clock is an argument.
"""

from __future__ import annotations

import math

from trio_crawler.policy.settings import Politeness

AT_ONCE = 1.5
"""Seconds between a good answer and a refused request that count as the same time."""

MAX_REFUSALS = 6
"""Refusals of one URL that teach a rate; the next ones count as its tries."""

MAX_DELAY = 10.0
"""Seconds of the longest delay that is learned."""

_LEAST_DELAY = 0.001
# A lesson leaves so much of the limit or of the rate; a good answer adds so much of the rate that
# the last lesson left, and twice as much after so many good answers in a row.
_LESS, _MORE, _ROW, _MOST_STEPS = 0.8, 0.01, 32, 10
# A good answer adds this, divided by the limit, to the limit; it doubles likewise.
_MORE_AT_ONCE = 1 / 16
# Below four fifths of what the host last refused, a good answer adds so much.
_MUCH_MORE = 0.1
_MAX_URLS = 10_000
_MOMENT = 1e-6

MAX_LIMIT = 64
"""Requests in flight at one host that an adaptive limit can reach."""

# A host is busy if its latency exceeds _SLOWER times its best latency, plus _NOISE seconds.
_SLOWER, _NOISE = 2.0, 0.02
_FOREVER = 1 << 60
# One object for all hosts: each other one would take 24 bytes.
_NEVER = -math.inf


class LearnedRate:
    """The requests in flight that a host allows, and the seconds between the starts of two.

    `delay` and `limit` are what was learned, `asked` is the delay that the host asks for, `told`
    the time at which the last Retry-After was over, `refused` the number of requests that were
    refused. A limit is only `suspected` until two URLs were refused, and another one was answered
    that was requested no earlier: one URL alone may be the cause, and a host that is down answers
    none. The second is refused at the same time as the first, or when the Retry-After is over.

    First the limit shrinks, to one. If the host still refuses, each refusal in a row doubles the
    time since the last good answer. From then on the rate follows the limit of the host: it
    shrinks by a fifth with each refusal, and grows with each good answer, by a tenth up to four
    fifths of what the host refused last, and little above.
    """

    __slots__ = (
        "_accepted",
        "_answered",
        "_good",
        "_last",
        "_other",
        "_peak",
        "_proven",
        "_rate",
        "_refusals",
        "_row",
        "_since",
        "_taught",
        "_url",
        "asked",
        "delay",
        "limit",
        "refused",
        "suspected",
        "told",
    )

    def __init__(self, load: HostLoad, url: str, started: float, now: float, good: float) -> None:
        self.asked = load.delay
        self.delay, self.limit = 0.0, load.limit
        self.suspected = True
        # The end of the last Retry-After.
        self.told = -math.inf
        # The first URL that was refused, when it started, when the last one was refused, whether
        # that was another one, and whether a request was answered that started later.
        self._url, self._since, self._last = url, started, now
        self._other = self._answered = False
        # The refusals in a row, at one time each, and the good answers since the last one.
        self._row = self._good = 0
        # The times of the last lesson, and of the last good request: of its start, if it is known.
        self._taught, self._accepted = -math.inf, good
        # The rate that the last lesson left, in requests a second.
        self._rate = 0.0
        # The rate at which the host refused last.
        self._peak = math.inf
        # The delay with which a request was last answered.
        self._proven = 0.0
        self._refusals: dict[str, int] = {}
        self.refused = 1

    def refuse(self, load: HostLoad, url: str, started: float, now: float, good: float) -> bool:
        """Record a refused request, which has ended; return whether the host limits the rate.

        `good` is the time of the last good answer.
        """
        self.refused += 1
        if self.suspected and not self._proves(url, started, now):
            return False
        if started - good > max(AT_ONCE, 4 * self._proven):
            return False
        if self._refusals.get(url, 0) >= MAX_REFUSALS:
            return False
        self._refusals[url] = self._refusals.get(url, 0) + 1
        if len(self._refusals) > _MAX_URLS:
            del self._refusals[next(iter(self._refusals))]
        # Requests that were in flight together teach once.
        if started >= self._taught - _MOMENT:
            self._learn(load, started, now)
            self._follow(load, now)
        return True

    def _proves(self, url: str, started: float, now: float) -> bool:
        """Return whether two URLs were refused, and another was answered that started later."""
        if now - max(self._last, self.told) > AT_ONCE:
            self._url, self._since, self._other, self._answered = url, started, False, False
        self._last = now
        self._other = self._other or url != self._url
        self.suspected = not (self._other and self._answered)
        return not self.suspected

    def _learn(self, load: HostLoad, started: float, now: float) -> None:
        used = load.in_flight + 1
        self._taught = now
        self._row += 1
        self._good = 0
        if used > 1:
            self.limit = max(1.0, _LESS * min(self.limit, used))
            load.shrink(now)
            return
        if self.delay and self._row == 1:
            self._peak = 1 / self.delay
            delay = self.delay / _LESS
        else:
            least = max(load.latency, self.asked, _LEAST_DELAY)
            delay = max(self.delay, started - self._accepted, least)
        self.delay = min(delay, MAX_DELAY)
        self._rate = 1 / self.delay

    def accept(self, load: HostLoad, started: float, now: float) -> None:
        """Record a good answer to a request that started at `started`."""
        if self.suspected and started >= self._since - _MOMENT:
            # While none is answered the host rests, so the next one may be much later.
            most, self._answered = AT_ONCE if self._answered else MAX_DELAY, True
            if self._other and now - self._last <= most:
                self.suspected = False
                self.limit = max(1.0, _LESS * self.limit)
        if self._row > 1 and self.delay:
            # The host allows one request in this time, and not in half of it.
            self.delay = max(self.delay, min(started - self._accepted, MAX_DELAY))
        self._row = 0
        self._accepted, self._proven = started, self.delay
        self._good += 1
        faster = 1 << min(self._good // _ROW, _MOST_STEPS)
        if self.delay:
            rate = 1 / self.delay
            more = _MORE * faster * self._rate
            if rate < _LESS * self._peak:
                more = max(more, min(_MUCH_MORE * rate, _LESS * self._peak - rate))
            self.delay = 1 / (rate + more)
        self.limit += _MORE_AT_ONCE * faster / self.limit
        self._follow(load, now)

    def forget(self, url: str) -> None:
        """Forget the refusals of a URL that was answered."""
        self._refusals.pop(url, None)

    def _follow(self, load: HostLoad, now: float) -> None:
        """Let the load have what was learned, or be as before if that holds nothing back."""
        adaptive, most = load.politeness.adaptive, load.politeness.per_host
        if self.suspected:
            over = now - max(self._last, self.told) > AT_ONCE
        else:
            pace = load.latency / load.limit
            over = self.limit >= most and self.delay <= max(pace / 2, _LEAST_DELAY)
        if over:
            load.learned = None
        # Requests are spread: a host that allows no burst refuses the second of two at once.
        pace = 0.0 if self.suspected or over else load.latency / self.limit
        load.delay = max(self.asked, 0.0 if over else self.delay, pace)
        if not adaptive:
            load.limit = most if over else min(self.limit, most)


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

    def adapt(self, seconds: float, now: float) -> None:
        """Adapt the limit and the delay to a good answer, which counts in the latency already."""
        self._best = min(self._best, self.latency)
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
