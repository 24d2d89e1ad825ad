"""Manners: when a host may be asked. Pure decisions; time is an argument."""

from __future__ import annotations

import math
import random

from trio_crawler.model import Fault, Phase, Reason, Response
from trio_crawler.policy.politeness import Politeness
from trio_crawler.policy.retry import PASSING, failing

FIRST_REST, LONGEST_REST = 0.5, 30.0
"""Seconds a host rests after the first trouble in a row, and at most after the later ones."""

MOST_AT_ONCE = 64
"""Requests in flight that an adaptive limit grows to."""

_DOUBT, _TRUST = 2, 64
_ROW = 8
_PROOF = 20
_TROUBLES = (PASSING - {Reason.INCOMPLETE, Reason.NO_SOCKETS}) | {Reason.TIMEOUT}
# An answer this much later than the host's usual ones says that it is busy.
_SLOWER, _NOISE = 2.0, 0.02
_SMOOTH = 0.2


class Load:
    """Count what one host has to bear, by http and https together."""

    __slots__ = ("_best", "_shrunk", "delay", "flying", "held", "last", "latency", "limit")

    def __init__(self, politeness: Politeness) -> None:
        self.flying = 0
        self.limit: float = politeness.per_host
        self.delay = politeness.delay
        self.held = self.last = self._shrunk = -math.inf
        self.latency = 0.0
        self._best = math.inf

    def note(self, seconds: float, now: float, *, adaptive: bool) -> None:
        """Note how long an answer took; an adaptive limit follows."""
        self.latency += _SMOOTH * (seconds - self.latency) if self.latency else seconds
        self._best = min(self._best, self.latency)
        if adaptive and self.latency <= _SLOWER * self._best + _NOISE:
            self.limit = min(self.limit + 1 / self.limit, MOST_AT_ONCE)
        elif adaptive and now - seconds >= self._shrunk:
            self.shrink(now)

    def shrink(self, now: float) -> None:
        """Halve the limit, once for all requests that are in flight at this moment."""
        self.limit = max(self.limit / 2, 1.0)
        self._shrunk = now


class Manners:
    """Decide when one origin may be asked, from what it answered.

    After a trouble (it could not be reached, a time-out, 429, 5xx) it rests, longer after each in
    a row, and its host as long as Retry-After wants; then one request at a time tries it. Was it
    the URLs, or the host? Its robots.txt tells, so that an outage uses up the tries of robots.txt
    and not those of the URLs. A host that refuses https may be well by http, so troubles are
    those of an origin; the `load` is that of the host.
    """

    __slots__ = (
        "_flying",
        "_known",
        "_missed",
        "_pages",
        "_proof",
        "_since",
        "_trust",
        "_vouched",
        "alive",
        "given_up",
        "load",
        "rest",
    )

    def __init__(self, politeness: Politeness, load: Load | None = None) -> None:
        self.load = load or Load(politeness)
        self.rest = -math.inf
        self.alive = False
        self.given_up: Reason | Fault | None = None
        # How many pages failed in a row, how many had when robots.txt last vouched for the host,
        # and how often robots.txt itself was missed since then.
        self._pages = self._vouched = self._missed = 0
        self._trust = _DOUBT
        self._proof = _PROOF
        self._flying = 0
        self._known = self._since = -math.inf

    @property
    def failures(self) -> int:
        """Return how many troubles came in a row."""
        return self._pages + self._missed

    @property
    def limit(self) -> int:
        """Return how many requests may be in flight."""
        return 1 if self.failures else int(self.load.limit)

    @property
    def room(self) -> bool:
        """Tell whether one more request may be in flight."""
        load = self.load
        return load.flying + 1 <= load.limit and not (self._flying and self.failures)

    @property
    def free(self) -> float:
        """Return the time from which on the next request may start."""
        return max(self.rest, self.load.held, self.load.last + self.load.delay)

    def doubtful(self, tries: int) -> bool:
        """Tell whether robots.txt is to be asked before a URL that was tried so often.

        That is after two troubles in a row, and before any URL is tried again as long as its
        host has given no sign of life.
        """
        row = self.failures - self._vouched
        again = tries > 0 and self._trust <= _ROW
        return self.alive and row > 0 and (again or row >= self._trust)

    @property
    def unproven(self) -> bool:
        """Tell whether robots.txt does not prove enough: so many pages failed in a row.

        A server may answer with that file although all behind it is down. Then a page that came
        before is to be asked for again.
        """
        return self._pages >= self._proof

    def start(self, now: float) -> None:
        """Note that a request starts."""
        self._flying += 1
        self.load.flying += 1
        self.load.last = now

    def land(self, until: float) -> None:
        """Note that a request is over, and that none may start at the host before `until`."""
        self._flying -= 1
        self.load.flying -= 1
        self.load.held = max(self.load.held, until)

    def succeed(self, seconds: float, now: float, *, adaptive: bool) -> None:
        """Note a good answer to a page, which took so long."""
        self.alive = True
        self._pages = self._vouched = self._missed = 0
        self._trust, self._proof = _DOUBT, _PROOF
        self.load.note(seconds, now, adaptive=adaptive)

    def vouch(self, *, proven: bool = False) -> None:
        """Note that robots.txt was answered well, or (`proven`) a page: it was the URLs.

        If others fail all the same, twice as many may until the next time.
        """
        self._trust = min(2 * self._trust, _TRUST) if self._pages else self._trust
        self.alive = True
        if proven:
            self._pages, self._proof = 0, 2 * self._proof
        self._vouched, self._missed = self._pages, 0

    def fail(self, started: float, now: float, *, adaptive: bool, errand: bool = False) -> None:
        """Note a trouble with a request that had started then, an `errand` for robots.txt or not.

        What started before the last trouble was known belongs to that one: a server that goes
        away fails as many requests at once as were in flight.
        """
        if self.failures and started < self._known:
            return
        self._since = self._since if self.failures else now
        self._known = now
        self._missed += errand
        self._pages += not errand
        # As long as it may be the URLs that fail, the others do not wait for long.
        row = self._missed + bool(self._pages) if errand else 1 + (self._pages - 1) // _ROW
        self.rest = max(self.rest, now + rest_after(row))
        if adaptive:
            self.load.shrink(now)

    def is_lost(self, now: float, patience: float, tries: int, *, chance: bool = False) -> bool:
        """Tell whether the origin has had its chances: so many tries, in so many seconds.

        One that never answered has that much time only if there is a `chance` that it could not.
        """
        given = self.alive or chance
        return self.failures >= tries and (not given or now - self._since >= patience)


def troubled(answer: Response | Fault) -> bool:
    """Tell whether an answer may say that the host, and not only the URL, is in trouble."""
    if isinstance(answer, Fault):
        return answer.reason in _TROUBLES and answer.phase is not Phase.READ
    return failing(answer.status)


def rest_after(row: int, *, jitter: float | None = None) -> float:
    """Return the seconds of rest after so many troubles in a row, halved at random.

    0.5, 1, 2, ... and 30 at most. `jitter` in [0, 1) stands for the chance.
    """
    chance = random.random() if jitter is None else jitter  # noqa: S311 - no secret in it
    whole = min(FIRST_REST * 2 ** min(row - 1, 10), LONGEST_REST)
    return float(whole * (0.5 + chance / 2))
