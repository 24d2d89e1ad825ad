"""The judging of failures: whether the URL failed, its host, or the network of the crawler."""

from __future__ import annotations

import math
from collections.abc import Callable

from trio_crawler.model import Answer, Attempt, Fault, Purpose, Reason, Response
from trio_crawler.policy.plan import Plan
from trio_crawler.policy.retry import (
    REFUSALS,
    TRANSIENT,
    is_doubtful_by_head,
    is_silent,
    tries_of_host,
)
from trio_crawler.schedule.host_state import FailureContext, State
from trio_crawler.schedule.origin import Host, Origin

# More tries for a robots.txt with 429 or 5xx: its server is there, and may recover.
_EXTRA_ROBOTS_TRIES = 2


class Failures:
    """Judge the answers that may mean that a host is in trouble.

    `last_good` is the time of the last good answer of any host, of `good_host`, and `other_good`
    that of the last good answer of any other host. `few_left` is whether nothing is left of the
    crawl but a few URLs of hosts in trouble.
    """

    def __init__(self, plan: Plan, few_left: Callable[[], bool]) -> None:
        self._plan = plan
        self._tries = plan.limits.max_tries
        self._few_left = few_left
        self.last_good = self.other_good = -math.inf
        self.good_host: Host | None = None
        # The time of the last fault of a host that had answered before.
        self._last_loss = -math.inf

    def good(self, host: Host, now: float) -> None:
        """Record a good answer of a host."""
        if self.good_host is not host:
            self.good_host, self.other_good = host, self.last_good
        self.last_good = now

    def page(self, origin: Origin, attempt: Attempt, now: float) -> bool:
        """Record a page or a sitemap that failed; return whether the host only limits the rate."""
        answer, seconds = attempt.answer, attempt.seconds
        refused = isinstance(answer, Response) and answer.status in REFUSALS
        if refused and origin.state.refused(attempt.job.url, seconds, now):
            return True
        context = self._context(origin, answer, now)
        tries = self._host_tries(origin, answer)
        if attempt.job.purpose is Purpose.CHECK and is_doubtful_by_head(answer):
            # A host that may only not know HEAD must not be given up before it was asked by GET.
            tries = max(tries, 2)
        origin.state.page_bad(now - seconds, now, tries, context)
        _give_up_if_lost(origin, answer, Reason.HOST_GIVEN_UP)
        return False

    def miss(self, origin: Origin, answer: Answer, now: float, *, probe: bool = False) -> None:
        """Record a robots.txt or a probe that failed."""
        state = origin.state
        reason = Reason.HOST_GIVEN_UP if state.answered else Reason.ROBOTS_UNAVAILABLE
        record = state.probe_bad if probe else state.robots_bad
        record(now, self._robots_tries(origin, answer), self._context(origin, answer, now))
        _give_up_if_lost(origin, answer, reason)

    def _host_tries(self, origin: Origin, answer: Answer) -> int:
        # The last good answer is enough: in a crawl of many hosts, a port that is closed delays
        # only itself.
        last = self.good_host
        up = last is not None and last.hostname == origin.host.hostname
        return tries_of_host(answer, self._tries, neighbour_up=up)

    def _robots_tries(self, origin: Origin, answer: Answer) -> int:
        if isinstance(answer, Response):
            return self._tries + _EXTRA_ROBOTS_TRIES
        if answer.reason is Reason.TIMEOUT:
            return min(self._tries, 2)
        return self._host_tries(origin, answer) if answer.reason in TRANSIENT else 1

    def _context(self, origin: Origin, answer: Answer, now: float) -> FailureContext:
        if origin.state.answered and isinstance(answer, Fault):
            self._last_loss = now
        jitter = self._plan.chance(origin.name, origin.state.failures)
        # If a host that answered before has failed since the last good answer of any host, our own
        # network may be down.
        network_down = self._last_loss > self.last_good
        others_well = -math.inf
        if self._few_left():
            others_well = self.other_good if self.good_host is origin.host else self.last_good
        return FailureContext(jitter, network_down, is_silent(answer), others_well)


def _give_up_if_lost(origin: Origin, answer: Answer, reason: Reason) -> None:
    if origin.state.state is State.GIVEN_UP and origin.given_up is None:
        if isinstance(answer, Fault) and not origin.state.answered:
            # The host never answered, so this fault becomes the outcome of all its URLs.
            origin.given_up = answer
        else:
            origin.given_up = reason
