"""One attempt at a job, and the protocol of the handlers, one for each purpose, that judge it."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import UTC, datetime
from types import CoroutineType, TracebackType
from typing import Protocol

import httpx
import msgspec
import trio
from msgspec.structs import replace

from trio_crawler.model import (
    REDIRECTS,
    Answer,
    Attempt,
    Fault,
    Fetch,
    Job,
    Outcome,
    Phase,
    Reason,
    Response,
)
from trio_crawler.net.turn import TURN, Turn
from trio_crawler.page.link_targets import fragment_of
from trio_crawler.page.urls import normalise, without_userinfo
from trio_crawler.policy.answers import delay_after, is_transient
from trio_crawler.policy.plan import Plan
from trio_crawler.settlement import Settlement

LARGE_PAGE = 500_000
"""A page of at least this many bytes is read in a thread, so that other workers can run.

▶ The scanner takes 1 to 13 ms for so many, and what it gives up takes 10 to 60. With 200,000 the
62 largest pages of python3-doc went to threads. Its crawl took 4 % more time on one core and 5 %
on two, a check 3 % and 7 %.
"""

# ▶ The first saves the look into the abstract class: 0.3 us.
_AWAITABLE = (CoroutineType, Awaitable)

TARGET = 70
"""Bytes of memory that a place of a page takes."""


class Retry(msgspec.Struct, frozen=True):
    """An attempt whose job is to be fetched once more, after so many seconds or later."""

    attempt: Attempt
    seconds: float


class Handler(Protocol):
    """Turn the attempts at the jobs of one purpose into settlements."""

    def blocked(self, job: Job, why: Reason | Fault, last: Attempt | None) -> Settlement:
        """Return the settlement of a blocked job, which is not fetched, for the reason `why`.

        `last` is the last attempt of a job that waited for a retry, and decides the settlement;
        None for a job that was never fetched.
        """

    async def settled(self, attempt: Attempt) -> Settlement | Retry:
        """Return the settlement of a job after its last attempt, or that this was not the last."""


class url_noted(msgspec.Struct):
    """Add the URL as a note to an exception that leaves the block, without catching it."""

    at: Job | Outcome

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, Exception):
            via = f", linked from {self.at.referrer}" if self.at.referrer else ""
            error.add_note(f"while crawling {self.at.url}{via}")


async def fetch_once(ask: Fetch, job: Job, turn: Turn | None = None) -> Attempt:
    """Fetch a job once, when it is its turn; return the attempt.

    Raises TypeError, with the name of the fetch and the URL, if the fetch does not return a
    Response or a Fault.
    """
    if turn is not None and not turn.taken:
        turn.taken = True
        return await _in_turn(ask, job, turn)
    job = replace(job, tries=job.tries + 1)
    started = trio.current_time()
    coming = ask(job)
    if not isinstance(coming, _AWAITABLE):
        raise TypeError(_no_answer(ask, job, coming, "make it an async function"))
    answer = await coming
    if not isinstance(answer, Answer):
        raise TypeError(_no_answer(ask, job, answer, "return a Response or a Fault"))
    names = names_in(answer.headers) if isinstance(answer, Response) else ""
    return Attempt(job, answer, trio.current_time() - started, names)


def names_in(headers: httpx.Headers) -> str:
    """Return the names of all fields, in lower case and with spaces between them."""
    received = headers.__dict__.get("received")
    # ▶ Of bytes, `in` takes 0.5 us: it tries an index first.
    return " ".join(headers) if received is None else b" ".join(received[1]).decode("latin-1")


def content_type(headers: httpx.Headers) -> str:
    """Return the Content-Type as it was received, "" if there is none."""
    received = headers.__dict__.get("received")
    value = b"" if received is None else received[1].get(b"content-type", b"")
    return value.decode() if received and value.isascii() else headers.get("content-type", "")


async def _in_turn(ask: Fetch, job: Job, turn: Turn) -> Attempt:
    """Fetch a job when it is its turn; set it aside if others wait and it takes too long."""
    await turn.wait()
    token = TURN.set(turn)
    turn.call()
    try:
        with turn.scope:
            return await fetch_once(ask, job)
    finally:
        TURN.reset(token)
    detail = f"no answer in {turn.hurry:g} seconds, while other URLs of its host wait"
    fault = Fault(Reason.TIMEOUT, detail, Phase.WAIT)
    return Attempt(replace(job, tries=job.tries + 1), fault, turn.hurry)


def _no_answer(ask: Fetch, job: Job, got: object, advice: str) -> str:
    name = getattr(ask, "__qualname__", None) or repr(ask)
    return f"the fetch {name} returned {got!r} for {job.url}: {advice}"


def retry(plan: Plan, attempt: Attempt) -> Retry | None:
    """Return the retry of a page or sitemap that failed; None if this attempt is the last."""
    job, answer = attempt.job, attempt.answer
    if job.tries >= plan.limits.max_tries or not is_transient(answer, job.tries):
        return None
    chance = plan.chance(job.url, job.tries)
    return Retry(attempt, delay_after(answer, job.tries, datetime.now(UTC), chance))


def is_redirect(response: Response) -> bool:
    """Whether a response is a redirect; a 300 is one only with a Location header."""
    status = response.status
    return status in REDIRECTS and (status != 300 or "location" in response.headers)


def redirect_target(job: Job, response: Response) -> tuple[str, str] | Fault:
    """Return the target of a redirect and its fragment, which is "" if it has none.

    Of several Locations the first one counts. Without one, or with an invalid one, it is a fault.
    """
    raw = dict(reversed([(name.lower(), value) for name, value in response.headers.raw]))
    if (location := raw.get(b"location")) is None:
        detail = f"status {response.status} without a Location header"
        return Fault(Reason.BAD_LOCATION, detail, Phase.READ)
    # Header bytes are decoded as in browsers: as UTF-8, or if that fails as latin-1.
    try:
        written = location.decode()
    except UnicodeDecodeError:
        written = location.decode("latin-1")
    try:
        return normalise(written, job.url), fragment_of(written)
    except ValueError:
        # The userinfo is removed before the text is cut: the cut may fall before its "@".
        detail = f"Location is not a URL: {without_userinfo(written)[:200]!r}"
        return Fault(Reason.BAD_LOCATION, detail, Phase.READ)
