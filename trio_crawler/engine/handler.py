"""Handlers: what becomes of a job, one handler for each purpose, and what these have in common."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import Protocol

import trio
from msgspec.structs import replace

from trio_crawler.frontier.settlement import Settlement
from trio_crawler.model import REDIRECTS, Attempt, Fault, Fetch, Job, Phase, Reason, Response
from trio_crawler.page.urls import normalise, without_userinfo
from trio_crawler.policy.plan import Plan
from trio_crawler.policy.retry import LEAST_BAD, delay_after, may_pass


class Handler(Protocol):
    """Turn the attempts at the jobs of one purpose into settlements."""

    def blocked(self, job: Job, why: Reason | Fault, last: Attempt | None) -> Settlement:
        """Return how a job ends that is not fetched: by its last attempt, if there was one."""

    def delay(self, attempt: Attempt) -> float | None:
        """Return the seconds until the next try; None if this attempt is the last."""

    async def settled(self, attempt: Attempt) -> Settlement:
        """Return how a job ends with its last attempt."""


async def asked(ask: Fetch, job: Job) -> Attempt:
    """Fetch a job once.

    Raises TypeError, with the name of the fetch and the URL, if it returns no answer.
    """
    job = replace(job, tries=job.tries + 1)
    started = trio.current_time()
    coming = ask(job)
    if not isinstance(coming, Awaitable):
        raise TypeError(_no_answer(ask, job, coming, "make it an async function"))
    answer = await coming
    if not isinstance(answer, Response | Fault):
        raise TypeError(_no_answer(ask, job, answer, "return a Response or a Fault"))
    return Attempt(job, answer, trio.current_time() - started)


def _no_answer(ask: Fetch, job: Job, got: object, advice: str) -> str:
    name = getattr(ask, "__qualname__", None) or repr(ask)
    return f"the fetch {name} returned {got!r} for {job.url}: {advice}"


def retry_delay(plan: Plan, attempt: Attempt) -> float | None:
    """Return the seconds until the next try of a page or a sitemap; None if there is none."""
    job, answer = attempt.job, attempt.answer
    if isinstance(answer, Response) and answer.status < LEAST_BAD:
        return None
    if job.tries >= plan.limits.max_tries or not may_pass(answer, job.tries):
        return None
    return delay_after(answer, job.tries, datetime.now(UTC), plan.chance(job.url, job.tries))


def is_redirect(response: Response) -> bool:
    """Whether a response sends the client elsewhere; 300 does if it names a location."""
    status = response.status
    return status in REDIRECTS and (status != 300 or "location" in response.headers)


def redirect_target(job: Job, response: Response) -> str | Fault:
    """Return the URL that a redirect names, or the fault of a redirect that names none."""
    # Header bytes are decoded as browsers do it: UTF-8, else one character a byte.
    raw = dict(reversed([(name.lower(), value) for name, value in response.headers.raw]))
    if b"location" not in raw:
        detail = f"status {response.status} without a Location header"
        return Fault(Reason.BAD_LOCATION, detail, Phase.READ)
    try:
        written = raw[b"location"].decode()
    except UnicodeDecodeError:
        written = raw[b"location"].decode("latin-1")
    try:
        return normalise(written, job.url)
    except ValueError:
        # Without the userinfo first: a text that is cut short may end before its "@".
        detail = f"Location is not a URL: {without_userinfo(written)[:200]!r}"
        return Fault(Reason.BAD_LOCATION, detail, Phase.READ)
