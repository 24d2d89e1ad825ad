"""The state of a host: when it may be asked, by what it answered. Time and chance are arguments.

`RULES` is the whole of it: five states, seven events, and what each event makes of each state.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from trio_crawler.model import Purpose
from trio_crawler.policy.politeness import Politeness
from trio_crawler.policy.retry import backoff

MAX_REST = 30.0
"""Seconds that a host rests at most after a trouble, unless Retry-After asks for more."""

MAX_LIMIT = 64
"""Requests in flight that an adaptive limit grows to."""

# Pages that fail in a row before robots.txt is asked, at first and at most.
_FIRST_TRUST, _MAX_TRUST = 2, 64
# Pages that fail in a row before a page that came before is asked for, at first.
_FIRST_PROOF = 20
_ROW = 8
# An answer this much later than the host's usual ones shows that the host is busy.
_SLOWER, _NOISE = 2.0, 0.02
_SMOOTHING = 0.2


class State(StrEnum):
    """What is known of one origin; each state answers "may its next page be asked for?"."""

    WELL = "well"
    """Yes, as many at once as the limit allows."""
    RESTING = "resting"
    """Not before the rest is over."""
    TROUBLED = "troubled"
    """Yes, one at a time; but robots.txt comes first before a URL that has failed already."""
    DOUBTED = "doubted"
    """Only when robots.txt, or a page that came before, has been answered."""
    GIVEN_UP = "given up"
    """Never again."""


class Event(StrEnum):
    """What can happen to an origin."""

    PAGE_OK = "page ok"
    PAGE_BAD = "page bad"
    ROBOTS_OK = "robots ok"
    ROBOTS_BAD = "robots bad"
    PROBE_OK = "probe ok"
    PROBE_BAD = "probe bad"
    TIME = "time"
    """The rest is over."""


class Rule(NamedTuple):
    """What an event makes of some states, if a condition holds ("" always does), and why."""

    states: tuple[State, ...]
    event: Event
    condition: str
    next: State
    why: str


_ALIVE = (State.WELL, State.RESTING, State.TROUBLED, State.DOUBTED)
_LOST = "has had its tries and its patience"
_DOUBTFUL = "too many pages failed in a row"
_FAILING = "pages still fail"

RULES = (
    Rule(_ALIVE, Event.PAGE_OK, "", State.WELL, "a page came: all troubles are forgotten"),
    *(
        rule
        for bad in (Event.PAGE_BAD, Event.ROBOTS_BAD, Event.PROBE_BAD)
        for rule in (
            Rule(_ALIVE, bad, _LOST, State.GIVEN_UP, "the host stays away"),
            Rule(_ALIVE, bad, "", State.RESTING, "each trouble in a row makes a longer rest"),
        )
    ),
    Rule((State.RESTING,), Event.TIME, _DOUBTFUL, State.DOUBTED, "the URLs, or the host?"),
    Rule((State.RESTING,), Event.TIME, "", State.TROUBLED, "one page shows whether it is back"),
    Rule((State.RESTING,), Event.ROBOTS_OK, _FAILING, State.RESTING, "the rest goes on"),
    Rule(_ALIVE, Event.ROBOTS_OK, _DOUBTFUL, State.DOUBTED, "robots.txt alone proves too little"),
    Rule(_ALIVE, Event.ROBOTS_OK, _FAILING, State.TROUBLED, "it was the URLs: the next may come"),
    Rule(_ALIVE, Event.ROBOTS_OK, "", State.WELL, "nothing but robots.txt had failed"),
    Rule(_ALIVE, Event.PROBE_OK, "", State.WELL, "a page came again: it was the URLs"),
)
"""The transitions; of several rules for a state and an event the first that applies holds.

No rule leaves `GIVEN_UP`.
"""


def _table(rules: Iterable[Rule]) -> Mapping[tuple[State, Event], tuple[Rule, ...]]:
    """Return the rules by state and event."""
    found: dict[tuple[State, Event], tuple[Rule, ...]] = {}
    for rule in rules:
        for state in rule.states:
            key = state, rule.event
            found[key] = (*found.get(key, ()), rule)
    return found


TABLE = _table(RULES)


class Chances(NamedTuple):
    """What a trouble depends on besides the host.

    `jitter` in [0, 1) spreads the rests of hosts that failed together. `network_down` is whether
    our own network may be the trouble.
    """

    jitter: float
    network_down: bool = False


class HostLoad:
    """What one host bears, by http and https together.

    `in_flight` requests are, `limit` may be (it grows and shrinks if the politeness is adaptive);
    `delay` is the least number of seconds between two starts, `last` the time of the last start,
    `held` the time that Retry-After asked to wait for; `latency` is smoothed, in seconds.
    """

    __slots__ = (
        "_adaptive",
        "_best",
        "_shrunk",
        "delay",
        "held",
        "in_flight",
        "last",
        "latency",
        "limit",
    )

    def __init__(self, politeness: Politeness) -> None:
        self.in_flight = 0
        self.limit: float = politeness.per_host
        self.delay = politeness.delay
        self.held = self.last = self._shrunk = -math.inf
        self.latency = 0.0
        self._best = math.inf
        self._adaptive = politeness.adaptive

    def record(self, seconds: float, now: float) -> None:
        """Record how long a good answer took; an adaptive limit follows."""
        self.latency += _SMOOTHING * (seconds - self.latency) if self.latency else seconds
        self._best = min(self._best, self.latency)
        if not self._adaptive:
            return
        if self.latency <= _SLOWER * self._best + _NOISE:
            self.limit = min(self.limit + 1 / self.limit, MAX_LIMIT)
        elif now - seconds >= self._shrunk:
            self.shrink(now)

    def shrink(self, now: float) -> None:
        """Halve an adaptive limit, once for all requests that are in flight at this moment."""
        if self._adaptive:
            self.limit = max(self.limit / 2, 1.0)
            self._shrunk = now


class HostState:
    """When one origin may be asked, by what it answered.

    After a trouble (no connection, a timeout, 429, 5xx) the origin rests, longer after each
    trouble in a row; then one request at a time tries it. Is it the URLs that fail, or the host?
    Its robots.txt tells, so an outage uses up the tries of robots.txt and not those of the URLs.
    A host that refuses https may be well by http, so a trouble belongs to an origin; the `load`
    belongs to the host.

    An origin is given up after so many `tries` in a row that failed, for as many seconds as
    `Politeness.patience` has. `good` is the URL of the last page that came, `answered` whether
    anything ever came. `rest` is the time until which it rests.
    """

    __slots__ = (
        "_bad",
        "_flying",
        "_known",
        "_missed",
        "_patience",
        "_proof",
        "_since",
        "_trust",
        "_vouched",
        "answered",
        "good",
        "load",
        "rest",
        "state",
    )

    def __init__(self, politeness: Politeness, load: HostLoad | None = None) -> None:
        self.load = HostLoad(politeness) if load is None else load
        self.state = State.WELL
        self.rest = -math.inf
        self.answered = False
        self.good: str | None = None
        self._patience = politeness.patience
        # Pages that failed in a row; those of them that had failed when robots.txt last answered
        # well; and failures of robots.txt itself since then.
        self._bad = self._vouched = self._missed = 0
        self._trust = _FIRST_TRUST
        self._proof = _FIRST_PROOF
        self._flying = 0
        self._known = self._since = -math.inf

    @property
    def failures(self) -> int:
        """How many troubles came in a row."""
        return self._bad + self._missed

    @property
    def limit(self) -> int:
        """How many requests may be in flight."""
        return int(self.load.limit) if self.state is State.WELL else 1

    @property
    def has_room(self) -> bool:
        """Whether one more request may be in flight."""
        load = self.load
        if load.in_flight + 1 > load.limit:
            return False
        return self.state is State.WELL or not self._flying

    @property
    def free(self) -> float:
        """The time from which on the next request may start."""
        return max(self.rest, self.load.held, self.load.last + self.load.delay)

    def proof(self, tries: int, now: float) -> Purpose | None:
        """Return what must be answered before a page that was tried so often is asked for.

        A server may answer with robots.txt although all behind it is down. So when robots.txt
        has been answered again and again while all pages failed, a page that came before is asked
        for (a probe).
        """
        if self.state is State.WELL:
            return None
        if self.state is State.RESTING and now >= self.rest:
            self._follow(Event.TIME)
        if self._is_unproven():
            return Purpose.PROBE
        # A URL is not tried again before its host has shown that it is there.
        again = tries > 0 and self._trust <= _ROW and self._unexplained() > 0
        return Purpose.ROBOTS if self.state is State.DOUBTED or again else None

    def start(self, now: float) -> None:
        """Record that a request starts."""
        self._flying += 1
        self.load.in_flight += 1
        self.load.last = now

    def finish(self, until: float) -> None:
        """Record that a request has ended, and that none may start at the host before `until`."""
        self._flying -= 1
        self.load.in_flight -= 1
        if until > self.load.held:
            self.load.held = until

    def page_ok(self, seconds: float, now: float) -> None:
        """Record a good answer to a page, which took so many seconds."""
        self.load.record(seconds, now)
        self.answered = True
        self._bad = self._vouched = self._missed = 0
        self._trust, self._proof = _FIRST_TRUST, _FIRST_PROOF
        if self.state is not State.WELL:
            self._follow(Event.PAGE_OK)

    def page_bad(self, started: float, now: float, tries: int, chance: Chances) -> None:
        """Record a trouble with a request that started then.

        A request that had started before the last trouble was known belongs to that trouble: a
        server that goes away fails as many requests at once as were in flight.
        """
        if self.state is State.WELL or started >= self._known:
            # As long as it may be the URLs that fail, the others do not wait for long.
            self._rest(now, 1 + self._bad // _ROW, chance.jitter)
            self._bad += 1
        self._fail(Event.PAGE_BAD, now, tries, chance)

    def robots_ok(self) -> None:
        """Record that robots.txt was answered well: it was the URLs.

        If pages fail all the same, twice as many may until robots.txt is asked again.
        """
        self._trust_more()
        self._vouched, self._missed = self._bad, 0
        self._follow(Event.ROBOTS_OK)

    def robots_bad(self, now: float, tries: int, chance: Chances) -> None:
        """Record a trouble with robots.txt."""
        self._miss(Event.ROBOTS_BAD, now, tries, chance)

    def probe_ok(self) -> None:
        """Record that a page came again; twice as many may fail until the next probe."""
        self._trust_more()
        self._bad = self._vouched = self._missed = 0
        self._proof *= 2
        self._follow(Event.PROBE_OK)

    def probe_bad(self, now: float, tries: int, chance: Chances) -> None:
        """Record that a page which came before does not come."""
        self._miss(Event.PROBE_BAD, now, tries, chance)

    def _follow(self, event: Event, lost: bool = False) -> None:
        """Go on to the state that the rules name."""
        for rule in TABLE.get((self.state, event), ()):
            if not rule.condition or self._holds(rule.condition, lost):
                self.state = rule.next
                return

    def _holds(self, condition: str, lost: bool) -> bool:
        if condition is _LOST:
            return lost
        if condition is _FAILING:
            return self._bad > 0
        return self._is_unproven() or (self.answered and self._unexplained() >= self._trust)

    def _is_unproven(self) -> bool:
        return self.good is not None and self._bad >= self._proof

    def _unexplained(self) -> int:
        """Return how many troubles came since robots.txt was last answered well."""
        return self.failures - self._vouched if self.answered else 0

    def _trust_more(self) -> None:
        self.answered = True
        if self._bad:
            self._trust = min(2 * self._trust, _MAX_TRUST)

    def _miss(self, event: Event, now: float, tries: int, chance: Chances) -> None:
        self._rest(now, 1 + self._missed + bool(self._bad), chance.jitter)
        self._missed += 1
        self._fail(event, now, tries, chance)

    def _rest(self, now: float, row: int, jitter: float) -> None:
        """Begin a rest, for a trouble that is not counted yet."""
        if not self.failures:
            self._since = now
        self._known = now
        self.rest = max(self.rest, now + backoff(row, MAX_REST, jitter))
        self.load.shrink(now)

    def _fail(self, event: Event, now: float, tries: int, chance: Chances) -> None:
        # An origin that never answered is given no patience, unless it had no chance to answer.
        patient = self.answered or chance.network_down
        lost = self.failures >= tries and (not patient or now - self._since >= self._patience)
        self._follow(event, lost)
