"""The state of a host: whether and when its next page may be requested.

`RULES` has all of it: five states, eight events, the next states. The clock and the jitter are
arguments.
"""

from __future__ import annotations

import math
from enum import StrEnum

import msgspec

from trio_crawler.model import Purpose
from trio_crawler.policy.answers import backoff
from trio_crawler.policy.host_load import HostLoad
from trio_crawler.policy.settings import Politeness

MAX_REST = 30.0
"""Seconds of the longest rest after a failure, unless Retry-After asks for more."""

SHORT_PATIENCE = 60.0
"""The most seconds of patience with a host if little but its URLs is left of a crawl."""

# Failed pages in a row before robots.txt is requested again: at first, and at most.
_FIRST_TRUST, _MAX_TRUST = 2, 64
# Failed pages in a row before a probe, at first.
_FIRST_PROOF = 20
# Failed pages in a row that make the rest one step longer; with more trust than this, a URL that
# failed is tried again without a request for robots.txt.
_FAILURES_PER_STEP = 8
# After so many URLs without an answer, the first try of a page is hurried: it may take _HURRY
# times as long as the slowest good answer of the host, and at least _LEAST_HURRY seconds.
_FEW_HUNG = 4
_HURRY, _LEAST_HURRY = 8.0, 2.0
# Seconds between a robots.txt and a page of a host that refuses pages: at first, and at most.
_PAUSE, _LONGEST_PAUSE = 0.5, 8.0
# A request that starts so many seconds after the end of a Retry-After was held back by it.
_TOLD = 0.2
# Two times that differ by less are the same moment: a duration that is subtracted is not exact.
_MOMENT = 1e-6
# The part of the last good answer in the latency of its host.
_SMOOTHING = 0.2
# One object for all hosts: each other one would take 24 bytes.
_NEVER = -math.inf


class State(StrEnum):
    """The state of one origin: it decides whether the next page may be requested."""

    WELL = "well"
    """Pages may be requested, as many at once as the limit allows."""
    RESTING = "resting"
    """No page may be requested before the rest is over."""
    TROUBLED = "troubled"
    """One page may be requested at a time; robots.txt comes before a URL that has failed."""
    DOUBTED = "doubted"
    """No page may be requested before robots.txt or a probe is answered.

    A probe requests a page again that the host has served.
    """
    GIVEN_UP = "given up"
    """No page may be requested any more."""


class Event(StrEnum):
    """An event that can change the state of an origin."""

    PAGE_OK = "page ok"
    PAGE_BAD = "page bad"
    ROBOTS_OK = "robots ok"
    ROBOTS_BAD = "robots bad"
    PROBE_OK = "probe ok"
    PROBE_BAD = "probe bad"
    LIMIT = "limit"
    """A page failed, and others are answered well at the same time: the rate is limited."""
    TIME = "time"
    """The rest is over."""


class Rule(msgspec.Struct, frozen=True):
    """The next state after an event in some states, if a condition holds ("" always does)."""

    states: tuple[State, ...]
    event: Event
    condition: str
    next: State
    why: str


_ALIVE = (State.WELL, State.RESTING, State.TROUBLED, State.DOUBTED)
_LOST = "its tries and its patience are used up"
_DOUBTFUL = "too many pages failed in a row"
_FAILING = "pages still fail"
_ANSWERING = "it is silence, and the host has answered since the request started"
_UNCERTAIN = "only a few pages were silent, or the host has served none yet"

RULES = (
    Rule(_ALIVE, Event.PAGE_OK, "", State.WELL, "a page came: all failures are forgotten"),
    Rule((State.WELL,), Event.PAGE_BAD, _ANSWERING, State.WELL, "the URL failed, not the host"),
    *(
        rule
        for bad in (Event.PAGE_BAD, Event.ROBOTS_BAD, Event.PROBE_BAD)
        for rule in (
            Rule(_ALIVE, bad, _LOST, State.GIVEN_UP, "the host stays down"),
            Rule(_ALIVE, bad, "", State.RESTING, "each failure in a row makes the rest longer"),
        )
    ),
    Rule(_ALIVE, Event.LIMIT, "", State.WELL, "it answers, and is asked less often"),
    Rule((State.RESTING,), Event.TIME, _DOUBTFUL, State.DOUBTED, "it may be the URLs or the host"),
    Rule(
        (State.RESTING,), Event.TIME, "", State.TROUBLED, "one page tries whether the host is back"
    ),
    Rule((State.RESTING,), Event.ROBOTS_OK, _FAILING, State.RESTING, "the rest goes on"),
    Rule(_ALIVE, Event.ROBOTS_OK, _UNCERTAIN, State.WELL, "the URLs failed, not the host"),
    Rule(_ALIVE, Event.ROBOTS_OK, _DOUBTFUL, State.DOUBTED, "robots.txt alone proves too little"),
    Rule(_ALIVE, Event.ROBOTS_OK, _FAILING, State.TROUBLED, "the URLs failed, not the host"),
    Rule(_ALIVE, Event.ROBOTS_OK, "", State.WELL, "nothing but robots.txt had failed"),
    Rule(_ALIVE, Event.PROBE_OK, "", State.WELL, "the URLs failed, not the host"),
)
"""The rules; if several fit a state and an event, the first one holds.

No rule leaves `GIVEN_UP`.
"""

TABLE = {
    (state, rule.event): [
        each for each in RULES if each.event is rule.event and state in each.states
    ]
    for rule in RULES
    for state in rule.states
}
"""The rules by state and event."""


class FailureContext(msgspec.Struct, frozen=True):
    """The facts about a failure that do not come from the host.

    `jitter` in [0, 1) spreads the rests of hosts that failed together. `network_down` is whether
    the network of the crawler itself may be down, `silent` whether the failure was that no answer
    came in time. `others_well` is when another host was last answered well, if nothing is left of
    the crawl but a few URLs of hosts in trouble.
    """

    jitter: float
    network_down: bool = False
    silent: bool = False
    others_well: float = _NEVER


class HostState:
    """The state of one origin, and when its next request may start.

    After a failure (no connection, a timeout, 429, 5xx) the origin rests, longer after each
    failure in a row; then one request at a time tries it. Either the URLs fail or the host does.
    An answer of robots.txt decides which, so an outage uses up the tries of robots.txt and not
    those of the URLs. A silent URL says nothing of a host that answers others meanwhile. If none
    was answered, robots.txt decides at once, and after a few more a page that the host has served
    decides. A host that refuses https may answer http, so failures belong to an origin; the `load`
    belongs to the host.

    An origin is given up after `tries` failures in a row; if it ever answered, these must also
    span `Politeness.patience` seconds. `in_flight` is the number of requests in flight, `good` the
    URL of the last page that was fetched, `answered` whether the origin ever answered, `rest` the
    time until which it rests, `hung` the number of pages that were silent.
    """

    __slots__ = (
        "_checks_failed",
        "_explained",
        "_first_failure",
        "_last_failure",
        "_last_good",
        "_pages_failed",
        "_proof",
        "_silent",
        "_trust",
        "_unproven",
        "answered",
        "good",
        "hung",
        "in_flight",
        "load",
        "rest",
        "state",
    )

    def __init__(self, politeness: Politeness, load: HostLoad | None = None) -> None:
        self.load = HostLoad(politeness) if load is None else load
        self.state = State.WELL
        self.rest = _NEVER
        self.answered = False
        self.good: str | None = None
        # Three counts of failures in a row: of pages; of the pages among them that failed before
        # the last good answer of robots.txt, so by their URLs; of robots.txt and probes since.
        self._pages_failed = self._explained = self._checks_failed = 0
        # Failures in a row before the next request for robots.txt, and before the next probe.
        self._trust = _FIRST_TRUST
        self._proof = _FIRST_PROOF
        self.in_flight = 0
        # The times of the last failure, and of the first one in the row.
        self._last_failure = self._first_failure = _NEVER
        # The time of the last good answer.
        self._last_good = _NEVER
        # The pages that were silent since the last good one, and whether only a probe explains it.
        self._silent = 0
        self._unproven = False
        self.hung = 0

    @property
    def failures(self) -> int:
        """The number of failures in a row."""
        return self._pages_failed + self._checks_failed

    @property
    def limit(self) -> int:
        """The most requests that may be in flight."""
        return int(self.load.limit) if self.state is State.WELL else 1

    @property
    def has_room(self) -> bool:
        """Whether one more request may be in flight."""
        load = self.load
        if load.in_flight + 1 > load.limit:
            return False
        # After silence robots.txt is next, or a probe: these need not wait for URLs that hang.
        return self.state is State.WELL or not self.in_flight or self._silent > 0

    @property
    def free(self) -> float:
        """The time from which on the next request may start."""
        load = self.load
        return max(self.rest, load.held, load.last + load.delay, load.taken)

    @property
    def rested(self) -> float:
        """The time at which the rest, the Retry-After and the delay are over."""
        return max(self.rest, self.load.held, self.load.last + self.load.delay)

    @property
    def hurry(self) -> float:
        """The most seconds for the first try of a page while others wait; inf as a rule.

        Where URLs hang, those that hang must not keep the others waiting for the whole timeout.
        """
        if self.hung < _FEW_HUNG or not self.answered:
            return math.inf
        return max(_LEAST_HURRY, _HURRY * self.load.slowest)

    def prerequisite(self, tries: int, now: float) -> Purpose | None:
        """Return the purpose of a request that must be answered before a page, or None.

        `tries` is how often the page was tried. A server may answer robots.txt while all its pages
        fail. After many failed pages, a page that it has served is requested: a probe.
        """
        if self.state is State.WELL:
            return None
        if self.state is State.RESTING and now >= self.rest:
            self._follow(Event.TIME)
        if self._needs_probe():
            return Purpose.PROBE
        # A URL is not tried again before its host has answered.
        again = tries > 0 and self._trust <= _FAILURES_PER_STEP and self._unexplained() > 0
        return Purpose.ROBOTS if self.state is State.DOUBTED or again else None

    def start(self, now: float) -> None:
        """Record that a request starts."""
        self.in_flight += 1
        self.load.in_flight += 1
        self.load.last = now

    def finish(self, until: float) -> None:
        """Record that a request has ended; no other may start at the host before `until`."""
        self.in_flight -= 1
        self.load.in_flight -= 1
        if until > self.load.held:
            self.load.held = until

    def page_ok(self, seconds: float, now: float) -> None:
        """Record a good answer to a page, and the seconds that it took."""
        load = self.load
        load.latency += _SMOOTHING * (seconds - load.latency) if load.latency else seconds
        if seconds > load.slowest:
            load.slowest = seconds
        if load.learned or load.politeness.adaptive or load.quick < load.politeness.delay:
            load.adapt(seconds, now)
        self.answered, self._last_good = True, now
        self._pages_failed = self._explained = self._checks_failed = 0
        self._silent, self._unproven = 0, False
        self._trust, self._proof = _FIRST_TRUST, _FIRST_PROOF
        if self.state is not State.WELL:
            self._follow(Event.PAGE_OK)

    def page_bad(self, started: float, now: float, tries: int, context: FailureContext) -> None:
        """Record that a page failed; its request started at `started`.

        A request that started before the last failure was known belongs to that failure: when a
        server goes down, all requests in flight fail.
        """
        self.load.brake()
        self.hung += context.silent
        answering = context.silent and self._last_good > started + _MOMENT
        if self.state is State.WELL and answering:
            self._follow(Event.PAGE_BAD, _ANSWERING)
            return
        self._silent += context.silent and self.answered
        if self.state is State.WELL or started >= self._last_failure:
            # While the URLs may be the cause, the other URLs do not wait for long.
            self._rest(now, 1 + self._pages_failed // _FAILURES_PER_STEP, context.jitter)
            self._pages_failed += 1
        self._fail(Event.PAGE_BAD, now, tries, context)

    def refused(self, url: str, seconds: float, now: float) -> bool:
        """Record that a page was refused (429, 503); return whether the host limits the rate.

        Then it is no failure: other pages are answered at the same time.
        """
        limited = self.load.refuse(url, seconds, now, self._last_good)
        once = self.state is State.RESTING and self.failures == self._pages_failed == 1
        if not limited or not (once or self.state is State.WELL):
            return False
        self._follow(Event.LIMIT)
        self._pages_failed = self._explained = 0
        self.rest = _NEVER
        return True

    def robots_ok(self) -> None:
        """Record a good answer of robots.txt: the URLs failed, not the host.

        If pages still fail, twice as many may fail before the next request for robots.txt.
        """
        self._trust_more()
        self._explained, self._checks_failed = self._pages_failed, 0
        self._unproven = self._silent > _FEW_HUNG and self.good is not None
        self._follow(Event.ROBOTS_OK)
        load, learned = self.load, self.load.learned
        if self._pages_failed and learned is not None and load.last - learned.told >= _TOLD:
            # Where the rate is limited, the page right after robots.txt would be refused again,
            # unless the host has said with a Retry-After when to come back.
            pause = min(_PAUSE * 4.0 ** (self._pages_failed - 1), _LONGEST_PAUSE)
            self.rest = max(self.rest, self.load.last + pause)

    def miss(self, event: Event, now: float, tries: int, context: FailureContext) -> None:
        """Record that robots.txt or a probe failed: `ROBOTS_BAD` or `PROBE_BAD`."""
        self._rest(now, 1 + self._checks_failed + bool(self._pages_failed), context.jitter)
        self._checks_failed += 1
        self._fail(event, now, tries, context)

    def probe_ok(self) -> None:
        """Record that a probe was answered; twice as many pages may fail before the next probe."""
        self._trust_more()
        if self._pages_failed >= self._proof:
            self._proof *= 2
        self._pages_failed = self._explained = self._checks_failed = 0
        self._silent, self._unproven = 0, False
        self._follow(Event.PROBE_OK)

    def heard(self, seconds: float, now: float) -> None:
        """Record that the host answered a robots.txt or a probe, and the seconds that it took."""
        self._last_good = now
        self.load.slowest = max(self.load.slowest, seconds)

    def _follow(self, event: Event, fact: str = "") -> None:
        """Change to the next state, by the first rule whose condition holds, as `fact` does."""
        for rule in TABLE.get((self.state, event), ()):
            if not rule.condition or rule.condition is fact or self._holds(rule.condition):
                self.state = rule.next
                return

    def _holds(self, condition: str) -> bool:
        if condition is _FAILING:
            return self._pages_failed > 0
        if condition is _UNCERTAIN:
            return self._silent > 0 and not self._needs_probe()
        if condition is not _DOUBTFUL:
            return False
        most = 1 if self._silent else self._trust
        return self._needs_probe() or (self.answered and self._unexplained() >= most)

    def _needs_probe(self) -> bool:
        enough = self._unproven or self._pages_failed >= self._proof
        return self.good is not None and enough

    def _unexplained(self) -> int:
        """Return the number of failures since the last good answer of robots.txt."""
        return self.failures - self._explained if self.answered else 0

    def _trust_more(self) -> None:
        self.answered = True
        if self._pages_failed:
            self._trust = min(2 * self._trust, _MAX_TRUST)

    def _rest(self, now: float, row: int, jitter: float) -> None:
        """Begin a rest, for a failure that is not counted yet."""
        if not self.failures:
            self._first_failure = now
        self._last_failure = now
        self.rest = max(self.rest, now + backoff(row, MAX_REST, jitter))
        self.load.shrink(now)

    def _fail(self, event: Event, now: float, tries: int, context: FailureContext) -> None:
        # Only an origin that answered before gets patience, or any one if our network may be down.
        patient = self.answered or context.network_down
        patience = self.load.politeness.patience
        if context.others_well > self._first_failure:
            patience = min(patience, SHORT_PATIENCE)
        lost = self.failures >= tries and (not patient or now - self._first_failure >= patience)
        self._follow(event, _LOST if lost else "")
