"""The handler of checks: whether URLs outside the crawl work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import httpx
import trio

from trio_crawler.engine.handler import (
    LARGE_PAGE,
    TARGET,
    is_redirect,
    redirect_fragment,
    redirect_target,
    retry_delay,
)
from trio_crawler.engine.links import Links
from trio_crawler.frontier.protocol import Past
from trio_crawler.model import (
    REDIRECTS,
    Attempt,
    Checked,
    Fault,
    Job,
    Phase,
    Purpose,
    Reason,
    Response,
)
from trio_crawler.page.links import read_body_targets
from trio_crawler.policy.plan import Plan
from trio_crawler.policy.retry import is_doubtful_by_head, is_silent
from trio_crawler.settlement import Settlement

# The most tries of a URL that gets no answer in time. ▶ Of 20,000 hosts that never answer, each
# would hold a worker for four timeouts, and the check would take twice as long.
_TRIES_IN_SILENCE = 2


class CheckHandler:
    """Turn the attempts at URLs outside the crawl into outcomes.

    The first try is HEAD. If that is answered with an error, or the connection breaks, the next
    one is GET, at once, also where only one try is allowed.
    """

    def __init__(self, plan: Plan, links: Links) -> None:
        self._plan = plan
        self._links = links
        self._checked: Callable[[str], Awaitable[Checked]] | None = None

    def restore(self, past: Past) -> None:
        """Use what earlier walks found, for the jobs that are `recalled`."""
        self._checked = past.checked

    async def recalled(self, job: Job) -> Settlement:
        """Return the settlement of a check that need not be made, by that of an earlier walk.

        Raises RuntimeError if the frontier has no such check.
        """
        if self._checked is None:
            raise RuntimeError("a job is recalled, but the frontier has left no checks")
        before = await self._checked(job.url)
        headers = httpx.Headers()
        if before.target is not None:
            end = f"#{before.fragment}" if before.fragment else ""
            headers["Location"] = before.target + end
        answer = Response(before.status or 0, headers)
        return self._settlement(Attempt(job, answer, 0.0), before.targets)

    def blocked(self, job: Job, why: Reason | Fault, last: Attempt | None) -> Settlement:
        """Return the settlement of a check that is not made; its last attempt decides, if any."""
        if last is not None:
            return self._settlement(last)
        fault = why if isinstance(why, Fault) else Fault(why)
        return _ended(Attempt(job, fault, 0.0), None, fault)

    def delay(self, attempt: Attempt) -> float | None:
        """Return the seconds until the next try; None if this attempt is the last."""
        job, answer = attempt.job, attempt.answer
        if job.purpose is Purpose.CHECK and job.tries == 1 and is_doubtful_by_head(answer):
            return 0.0
        if job.tries >= _TRIES_IN_SILENCE and is_silent(answer):
            return None
        return retry_delay(self._plan, attempt)

    async def settled(self, attempt: Attempt) -> Settlement:
        """Return the settlement of a check after its last attempt."""
        answer = attempt.answer
        if attempt.job.purpose is not Purpose.FRAGMENTS or isinstance(answer, Fault):
            return self._settlement(attempt)
        if not 200 <= answer.status < 300 or answer.flaw is not None:
            return self._settlement(attempt)
        reading = partial(read_body_targets, answer.body, answer.headers)
        if len(answer.body) < LARGE_PAGE:
            targets = reading()
        else:
            targets = await trio.to_thread.run_sync(reading)
        return self._settlement(attempt, targets)

    def _settlement(self, attempt: Attempt, targets: frozenset[int] | None = None) -> Settlement:
        job, answer = attempt.job, attempt.answer
        if isinstance(answer, Fault):
            return _ended(attempt, None, answer)
        if answer.status not in REDIRECTS or not is_redirect(answer):
            return _ended(attempt, answer.status, targets=targets)
        target = redirect_target(job, answer)
        if isinstance(target, Fault):
            return _ended(attempt, answer.status, target)
        left = job.redirects - 1
        if left < 0:
            limit = self._plan.limits.max_redirects
            detail = f"the limit of {limit} redirects is used up, and this one leads to {target}"
            fault = Fault(Reason.TOO_MANY_REDIRECTS, detail, Phase.READ)
            return _ended(attempt, answer.status, fault, target=target)
        successor = Job(target, job.depth, left, job.url)
        rejected, successors = self._links.onward(successor, job.purpose)
        return _ended(
            attempt,
            answer.status,
            None,
            successors,
            target=target,
            rejected=rejected,
            fragment=redirect_fragment(answer),
        )


def _ended(
    attempt: Attempt,
    status: int | None,
    fault: Fault | None = None,
    successors: list[Job] | None = None,
    *,
    target: str | None = None,
    rejected: Reason | None = None,
    targets: frozenset[int] | None = None,
    fragment: str = "",
) -> Settlement:
    job = attempt.job
    outcome = Checked(
        job.url,
        status,
        None if fault is None else fault.reason,
        "" if fault is None else fault.detail,
        None if fault is None else fault.phase,
        target=target,
        rejected=rejected,
        depth=job.depth,
        referrer=job.referrer,
        tries=job.tries,
        seconds=attempt.seconds,
        again=job.again,
        targets=targets,
        fragment=fragment,
    )
    size = TARGET * len(targets) if targets else 0
    return Settlement(job, outcome, successors or [], size=size)
