"""The verdict: what one answer means for its URL, and which jobs follow from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from collections.abc import Set as AbstractSet
from functools import partial
from typing import NamedTuple

import trio

from trio_crawler.engine.links import Outlinks, came_well
from trio_crawler.model import (
    Failure,
    Fault,
    Job,
    Outcome,
    Page,
    Phase,
    Reason,
    Redirect,
    Response,
    Skipped,
)
from trio_crawler.page.read import Facts, read
from trio_crawler.page.urls import normalise, without_userinfo
from trio_crawler.policy.limits import Limits

LARGE_PAGE = 200_000
"""Bytes from which on a page is read in a thread, so that the other workers go on meanwhile."""

REDIRECTS = frozenset({301, 302, 303, 307, 308})
"""The statuses a browser follows (Fetch Standard, "redirect status")."""


class Verdict(NamedTuple):
    """Pair an outcome with the jobs that follow from it."""

    outcome: Outcome
    successors: list[Job]


class Judge:
    """Turn answers into outcomes.

    `knows` tells which URLs need no judging any more, `admits` judges the others, `outlinks`
    those of pages. `unchanged` tells what a page has said for which a 304 came. Large pages are
    read in a thread, one at a time and only when there is `room` for what comes of them: a page
    of 10 MiB with 100,000 links takes 15 MiB more once it is read.
    """

    def __init__(
        self,
        limits: Limits,
        knows: Callable[[Collection[str]], AbstractSet[str]],
        admits: Callable[[Job], Reason | None],
        room: Callable[[], Awaitable[None]],
        outlinks: Outlinks | None = None,
        agent: str = "",
        *,
        anchors: bool = False,
        unchanged: Callable[[str], Awaitable[Facts | None]] | None = None,
    ) -> None:
        self._anchors = anchors
        self._unchanged = unchanged
        self._limits = limits
        self._knows = knows
        self._admits = admits
        self._room = room
        self._outlinks = outlinks or Outlinks(limits, knows, admits)
        self._agent = agent
        self._large: trio.Lock | None = None

    def skip(self, job: Job, reason: Reason) -> Verdict:
        """End a URL that is not asked for."""
        successors = self._outlinks.ended(job, well=False) if self._outlinks.folds else []
        return Verdict(Skipped(job.url, reason, job.depth, job.referrer), successors)

    async def answer(self, job: Job, answer: Response | Fault, seconds: float) -> Verdict:
        """End a URL by what came for it."""
        if isinstance(answer, Fault):
            verdict = self._fail(job, answer, seconds)
        elif is_redirect(answer):
            verdict = self._redirect(job, answer, seconds)
        else:
            verdict = await self._page(job, answer, seconds, await self._read(job, answer))
        if not self._outlinks.folds:
            return verdict
        verdict.successors.extend(self._outlinks.ended(job, well=came_well(verdict.outcome)))
        return verdict

    def _fail(self, job: Job, fault: Fault, seconds: float, target: str | None = None) -> Verdict:
        about = (job.url, fault.reason, fault.detail, job.depth, job.referrer, job.tries, seconds)
        return Verdict(Failure(*about, target, fault.phase), [])

    def _redirect(self, job: Job, response: Response, seconds: float) -> Verdict:
        target = location(job, response)
        if isinstance(target, Fault):
            return self._fail(job, target, seconds)
        left = job.redirects - 1
        successor = Job(target, job.depth, left, job.url, priority=job.priority)
        refused = None if self._knows([target]) else self._admits(successor)
        if not refused and left < 0:
            # The frontier keeps where this led, for a path that comes with more redirects left.
            return Verdict(self._cut(job, target, seconds), [successor])
        about = (job.url, response.status, target, job.depth, job.referrer, job.tries, seconds)
        return Verdict(Redirect(*about, refused), [] if refused else [successor])

    def _cut(self, job: Job, target: str, seconds: float) -> Outcome:
        limit = self._limits.max_redirects
        detail = f"the limit of {limit} redirects is used up, and this one leads to {target}"
        fault = Fault(Reason.TOO_MANY_REDIRECTS, detail, Phase.READ)
        return self._fail(job, fault, seconds, target).outcome

    async def _read(self, job: Job, response: Response) -> Facts:
        if response.status == 304 and job.validator and self._unchanged:
            facts = await self._unchanged(job.url)
            if facts is not None:
                return facts
        follow = 200 <= response.status < 300
        media = response.headers.get("content-type", "")
        most = self._limits.max_links
        reading = partial(
            read,
            response.body,
            media,
            job.url,
            max_links=most,
            follow=follow,
            agent=self._agent,
            anchors=self._anchors,
        )
        if len(response.body) < LARGE_PAGE or not follow:
            return reading()
        self._large = self._large or trio.Lock()
        async with self._large:
            await self._room()
            return await trio.to_thread.run_sync(reading)

    async def _page(self, job: Job, response: Response, seconds: float, facts: Facts) -> Verdict:
        found = await self._outlinks.of(job, response, facts)
        page = Page(
            url=job.url,
            status=response.status,
            headers=response.headers,
            body=response.body,
            depth=job.depth,
            referrer=job.referrer,
            tries=job.tries,
            seconds=seconds,
            content_type=facts.content_type,
            charset=facts.charset,
            title=facts.title,
            links=found.links,
            links_beyond=facts.beyond,
            refused=found.refused,
            flaws=facts.flaws,
            canonical=found.canonical,
            robots=found.robots,
            duplicate_of=found.duplicate_of,
            anchors=found.anchors,
        )
        return Verdict(page, found.successors)


def is_redirect(response: Response) -> bool:
    """Tell whether a response sends the client elsewhere; 300 does if it says where."""
    return response.status in REDIRECTS or (
        response.status == 300 and "location" in response.headers
    )


def location(job: Job, response: Response) -> str | Fault:
    """Return where a redirect leads, or the fault of one that leads nowhere."""
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
        # What is cut short may end before its "@".
        detail = f"Location is not a URL: {without_userinfo(written)[:200]!r}"
        return Fault(Reason.BAD_LOCATION, detail, Phase.READ)
