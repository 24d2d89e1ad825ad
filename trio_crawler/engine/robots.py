"""The handlers of robots.txt files and of probes."""

from __future__ import annotations

from dataclasses import replace as replace_fields

import trio
from msgspec.structs import replace

from trio_crawler.engine.handler import is_redirect, redirect_target
from trio_crawler.engine.sitemaps import LARGE, SitemapHandler
from trio_crawler.frontier.protocol import Frontier
from trio_crawler.model import Answer, Attempt, Fault, Job, Phase, Purpose, Reason, Response
from trio_crawler.page.urls import is_web
from trio_crawler.policy.headers import validator_of
from trio_crawler.policy.plan import Plan
from trio_crawler.policy.robots import FRESH, Rules, interpret, is_lasting
from trio_crawler.settlement import (
    ProbeAnswered,
    RobotsMissing,
    RobotsMoved,
    RobotsRenewed,
    RobotsRules,
    Settlement,
)

# Seconds for which old rules are used after robots.txt could not be fetched.
_EXTENSION = 600.0
# A fault in one of these phases is due to the host, and not to its robots.txt.
_HOST_PHASES = (Phase.RESOLVE, Phase.CONNECT, Phase.TLS)


class RobotsHandler:
    """Turn the attempts at robots.txt files into rules (RFC 9309)."""

    def __init__(self, plan: Plan, frontier: Frontier, sitemaps: SitemapHandler) -> None:
        self._token = plan.agent
        self._frontier = frontier
        self._sitemaps = sitemaps

    def blocked(self, job: Job, why: Reason | Fault, last: Attempt | None) -> Settlement:
        """Return the settlement of a robots.txt that redirects to a host that was given up."""
        return Settlement(job, learned=RobotsMissing(job.referrer or job.url, _fault(why)))

    def delay(self, attempt: Attempt) -> float | None:
        """Return None: the state of the host decides when its robots.txt is fetched again."""
        return None

    async def settled(self, attempt: Attempt) -> Settlement:
        """Return the settlement of a robots.txt (RFC 9309, 2.3.1)."""
        job, answer = attempt.job, attempt.answer
        # After redirects the referrer is still the URL of the robots.txt itself.
        robots_url = job.referrer or job.url
        if (hop := _hop(job, answer)) is not None:
            moved = replace(hop, referrer=robots_url, validator=None)
            return Settlement(job, learned=RobotsMoved(moved))
        if isinstance(answer, Response) and answer.status == 304 and job.validator is not None:
            return Settlement(job, learned=RobotsRenewed(robots_url, FRESH))
        rules = await self._rules(answer)
        if rules is not None:
            named, rejected = self._sitemaps.named(rules.sitemaps, robots_url)
            validator, kept = None, None
            if isinstance(answer, Response):
                validator = validator_of(answer.headers)
                kept = answer if is_lasting(answer) else None
            learned = RobotsRules(robots_url, rules, validator, kept, rejected)
            return Settlement(job, successors=named, learned=learned)
        known = self._frontier.hosts.origin(robots_url).robots
        if known is not None and not known.is_fresh(trio.current_time()):
            # The old rules may be used while the file cannot be fetched (RFC 9309, 2.4).
            return Settlement(job, learned=RobotsRenewed(robots_url, _EXTENSION))
        return Settlement(job, learned=RobotsMissing(robots_url, _unavailable(answer)))

    async def _rules(self, answer: Answer) -> Rules | None:
        if isinstance(answer, Fault) or len(answer.body) < LARGE:
            return interpret(answer, self._token)
        return await trio.to_thread.run_sync(interpret, answer, self._token)


class ProbeHandler:
    """Report whether a host is back: a probe fetches a page again that the host has served."""

    def blocked(self, job: Job, why: Reason | Fault, last: Attempt | None) -> Settlement:
        """Return the settlement of a probe that is not fetched."""
        return Settlement(job, learned=ProbeAnswered(job.url, _fault(why)))

    def delay(self, attempt: Attempt) -> float | None:
        """Return None: the state of the host decides when it is probed again."""
        return None

    async def settled(self, attempt: Attempt) -> Settlement:
        """Return the settlement of a probe."""
        return Settlement(attempt.job, learned=ProbeAnswered(attempt.job.url, attempt.answer))


def _hop(job: Job, answer: Answer) -> Job | None:
    """Return the job for the target of a redirect; None if there is none to follow."""
    if isinstance(answer, Fault) or not is_redirect(answer) or job.redirects <= 0:
        return None
    target = redirect_target(job, answer)
    if isinstance(target, Fault) or not is_web(target):
        return None
    return replace(job, url=target, redirects=job.redirects - 1)


def _fault(why: Reason | Fault) -> Fault:
    return why if isinstance(why, Fault) else Fault(Reason.UNREACHABLE, str(why))


def _unavailable(answer: Answer) -> Answer:
    """Return the answer; unless the host itself failed, mark a fault as one of robots.txt."""
    if isinstance(answer, Response) or answer.phase in _HOST_PHASES:
        return answer
    return replace_fields(answer, about=Purpose.ROBOTS)
