"""The handlers of pages and of checks: they make outcomes from answers, and jobs from links."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from collections.abc import Set as AbstractSet
from functools import partial
from operator import attrgetter

import httpx
import trio
from msgspec.structs import replace

from trio_crawler.engine.handler import (
    LARGE_PAGE,
    TARGET,
    Retry,
    content_type,
    is_redirect,
    redirect_target,
    retry,
)
from trio_crawler.engine.links import About, CanonicalFolding, Judged, Links
from trio_crawler.engine.outbox import Outbox
from trio_crawler.engine.repeats import MOST_BYTES, Bounces, Repeats
from trio_crawler.frontier.protocol import Past
from trio_crawler.model import (
    REDIRECTS,
    Answer,
    Attempt,
    Checked,
    Failure,
    Fault,
    Job,
    Outcome,
    Page,
    Phase,
    Purpose,
    Reason,
    Redirect,
    Response,
    Skipped,
)
from trio_crawler.page.links import (
    PageLinks,
    pointed_of,
    read_body_links,
    read_body_targets,
    read_page_links,
)
from trio_crawler.page.read import Facts, read
from trio_crawler.policy.answers import is_doubtful_by_head, is_silent
from trio_crawler.policy.plan import Plan
from trio_crawler.settlement import Settlement

# Bytes of memory that a link takes besides its characters.
_LINK = 150
_URL = attrgetter("url")
_MAX_DIGITS = 19


class PageHandler:
    """Turn the attempts at pages into outcomes.

    Large pages are read in a thread, one at a time, and only when the outbox has room for the
    result: a page of 10 MiB with 100,000 links takes 15 MiB more after it is read.
    """

    def __init__(
        self,
        plan: Plan,
        links: Links,
        folding: CanonicalFolding,
        outbox: Outbox,
        repeats: Repeats,
        bounces: Bounces | None = None,
    ) -> None:
        self._plan = plan
        self._links = links
        self._folding = folding
        self._outbox = outbox
        self._repeats = repeats
        self._checks = plan.checks.any
        self._bounces = bounces
        self._past: Past | None = None
        self._large = trio.Lock()

    def restore(self, past: Past) -> None:
        """Use what earlier runs stored: the facts for an answer of 304, and the texts."""
        self._past = past
        self._repeats.restore(past)
        if self._bounces is not None:
            self._bounces.restore(past.redirected)

    def blocked(self, job: Job, why: Reason | Fault, last: Attempt | None) -> Settlement:
        """Return the settlement of a blocked page; its last attempt decides, if it had one."""
        if job.repeat:
            return self._repeats.settled(job.url)
        if last is None:
            if isinstance(why, Reason):
                skipped = Skipped(job.url, why, job.depth, job.referrer, job.again)
                return self._settled(job, skipped)
            last = Attempt(job, why, 0.0)
        answer = last.answer
        if isinstance(answer, Fault):
            return self._failure(last, answer)
        # Only errors are retried, so there are no links to judge.
        facts = self._facts(last, answer)
        about = self._links.about(last, answer, facts)
        return self._page(last, answer, facts, about, Judged((), (), about.successors))

    async def settled(self, attempt: Attempt) -> Settlement | Retry:
        """Return the settlement of a page; or a retry, also if a refresh asks for it once more."""
        answer = attempt.answer
        if attempt.job.repeat:
            return self._repeated(attempt, answer)
        if isinstance(answer, Fault):
            return retry(self._plan, attempt) or self._failure(attempt, answer)
        if answer.status >= 400 and (again := retry(self._plan, attempt)) is not None:
            return again
        if answer.status in REDIRECTS and is_redirect(answer):
            return self._redirect(attempt, answer)
        job = attempt.job
        if answer.status == 304:
            facts = await self._unchanged(attempt, answer)
        elif len(answer.body) < LARGE_PAGE or answer.status >= 300:
            facts = self._facts(attempt, answer)
        else:
            return await self._read_large(attempt, answer)
        about = self._links.about(attempt, answer, facts)
        judged = await self._links.judge(job, answer, facts, about)
        settlement = self._page(attempt, answer, facts, about, judged)
        if self._repeats.is_on and self._repeats.keeps(settlement, facts):
            return Retry(replace(attempt, job=replace(job, repeat=True)), 0.0)
        return settlement

    def _repeated(self, attempt: Attempt, answer: Answer) -> Settlement:
        """Return the settlement of a page that a refresh has asked for twice."""
        job = attempt.job
        if isinstance(answer, Fault) or answer.status != 200 or answer.flaw is not None:
            return self._repeats.settled(job.url)
        facts = self._facts(attempt, answer) if len(answer.body) <= MOST_BYTES else None
        return self._repeats.settled(job.url, answer.body, facts)

    async def _read_large(self, attempt: Attempt, response: Response) -> Settlement:
        job = attempt.job
        with self._links.unread(len(response.body)):
            async with self._large:
                await self._outbox.wait_for_room()
                facts = await trio.to_thread.run_sync(self._facts, attempt, response)
                about = self._links.about(attempt, response, facts)
                # When the next page is read, this one is in the outbox, where it counts.
                judged = await self._links.judge(job, response, facts, about)
        return self._page(attempt, response, facts, about, judged)

    def _facts(self, attempt: Attempt, response: Response) -> Facts:
        job = attempt.job
        facts = read(
            response.body,
            content_type(response.headers),
            job.url,
            max_links=self._plan.limits.max_links,
            follow=200 <= response.status < 300,
            agent=self._plan.agent,
            anchors=self._plan.anchors,
            cut=response.flaw is Reason.TOO_LARGE,
            scanned=self._checks,
        )
        if self._checks:
            facts = self._with_found(facts, attempt, response)
        if not self._plan.facts:
            return facts
        # Imported late: most crawls keep none.
        from trio_crawler.page.facts import page_facts

        good = 200 <= response.status < 300
        kind, encoding = (facts.content_type, facts.charset) if good else ("", "")
        kept = page_facts(
            response.body, kind, encoding, job.url, response.headers, fetched=time.time()
        )
        return replace(facts, kept=kept)

    def _with_found(self, facts: Facts, attempt: Attempt, response: Response) -> Facts:
        """Return the facts of a good page with its links of all kinds, and its places."""
        job, body, headers = attempt.job, response.body, response.headers
        linking = "link" in attempt.names or "refresh" in attempt.names
        if not (200 <= response.status < 300 and (body or linking)):
            return facts
        most = self._plan.limits.max_links
        whole = self._plan.checks.fragments and body and response.flaw is None
        if facts.pointed is not None:
            about = job.url, facts.pointed, most, facts.outline, headers if linking else None
            page_links = read_page_links(body, content_type(headers), *about, facts.charset)
            targets = facts.targets if whole else None
            return replace(facts, found=page_links, targets=targets, outline=b"")
        found = read_body_links(body, headers, job.url, max_links=most).links
        targets = read_body_targets(body, headers) if whole else None
        return replace(facts, found=found, pointed=pointed_of(found), targets=targets)

    async def _unchanged(self, attempt: Attempt, response: Response) -> Facts:
        job = attempt.job
        if job.validator and self._past is not None:
            facts = await self._past.facts(job.url)
            if facts is not None:
                kept = facts.kept and replace(facts.kept, fetched=time.time())
                return replace(facts, kept=kept) if self._plan.facts else facts
        return self._facts(attempt, response)

    def _settled(
        self, job: Job, outcome: Outcome, successors: list[Job] | None = None
    ) -> Settlement:
        if self._folding.folds:
            self._folding.record(job.url, outcome)
        return Settlement(job, outcome, successors or [])

    def _failure(self, attempt: Attempt, fault: Fault, target: str | None = None) -> Settlement:
        job = attempt.job
        failure = Failure(
            job.url,
            fault.reason,
            fault.detail,
            depth=job.depth,
            referrer=job.referrer,
            tries=job.tries,
            seconds=attempt.seconds,
            target=target,
            phase=fault.phase,
            about=fault.about,
            again=job.again,
        )
        return self._settled(job, failure)

    def _redirect(self, attempt: Attempt, response: Response) -> Settlement:
        job = attempt.job
        found = redirect_target(job, response)
        if isinstance(found, Fault):
            return self._failure(attempt, found)
        target, fragment = found
        left = job.redirects - 1
        successor = Job(target, job.depth, left, job.url, priority=job.priority)
        if self._bounces is not None:
            # Recorded first: it may lead to itself. A redirect too many is a failure, and final.
            if left >= 0:
                self._bounces.record(job, response)
            successor = self._bounces.judged(successor)
        rejected, successors = self._links.onward(successor, fragment=fragment)
        if not rejected and left < 0:
            # The frontier keeps the target, for a path to this URL with more redirects left.
            cut = self._failure(attempt, _used_up(self._plan, target), target)
            return Settlement(job, cut.outcome, [successor, *cut.successors])
        redirect = Redirect(
            job.url,
            response.status,
            target,
            depth=job.depth,
            referrer=job.referrer,
            tries=job.tries,
            seconds=attempt.seconds,
            rejected=rejected,
            again=job.again,
            fragment=fragment,
        )
        return self._settled(job, redirect, successors)

    def _page(
        self, attempt: Attempt, response: Response, facts: Facts, about: About, judged: Judged
    ) -> Settlement:
        job = attempt.job
        page = Page(
            url=job.url,
            status=response.status,
            headers=response.headers,
            body=response.body,
            body_size=_announced(response) if response.flaw is Reason.NOT_READ else None,
            depth=job.depth,
            referrer=job.referrer,
            tries=job.tries,
            seconds=attempt.seconds,
            content_type=facts.content_type,
            charset=facts.charset,
            title=facts.title,
            links=judged.links,
            links_beyond=facts.beyond,
            rejected=judged.rejected,
            flaws=(response.flaw, *facts.flaws) if response.flaw else facts.flaws,
            canonical=about.canonical,
            robots=about.robots,
            duplicate_of=about.duplicate_of,
            anchors=judged.anchors,
            folded_into=about.folded_into,
            again=job.again,
            found=judged.found,
            targets=facts.targets,
            facts=facts.kept,
        )
        if self._folding.folds:
            self._folding.record(job.url, page)
        links, rejected = judged.links, judged.rejected
        size = len(page.body) + _LINK * (len(links) + len(rejected)) + sum(map(len, links))
        if rejected:
            size += sum(map(len, map(_URL, rejected)))
        if self._checks:
            found = page.found
            if isinstance(found, PageLinks):
                # What a check keeps, and the links that are read from the body.
                size += len(found.kept.body) + len(page.body)
            else:
                size += _LINK * len(found)
            size += TARGET * len(page.targets or ())
        return Settlement(job, page, judged.successors, size=size, digest=about.digest)


def _used_up(plan: Plan, target: str) -> Fault:
    """Return the fault of a redirect that is one too many."""
    limit = plan.limits.max_redirects
    detail = f"the limit of {limit} redirects is used up, and this one leads to {target}"
    return Fault(Reason.TOO_MANY_REDIRECTS, detail, Phase.READ)


def _announced(response: Response) -> int:
    """Return the size of a body that was not read; 0 if its head does not say it."""
    headers = response.headers
    length = headers.get("content-length", "")
    # A coding or repeated fields: then the size of the body itself is unknown.
    known = length.isdecimal() and length.isascii() and len(length) < _MAX_DIGITS
    return int(length) if known and "content-encoding" not in headers else 0


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

    async def settled(self, attempt: Attempt) -> Settlement | Retry:
        """Return the settlement of a check, or its retry."""
        job, answer = attempt.job, attempt.answer
        if job.purpose is Purpose.CHECK and job.tries == 1 and is_doubtful_by_head(answer):
            return Retry(attempt, 0.0)
        patient = job.tries < _TRIES_IN_SILENCE or not is_silent(answer)
        if patient and (again := retry(self._plan, attempt)) is not None:
            return again
        if job.purpose is not Purpose.FRAGMENTS or isinstance(answer, Fault):
            return self._settlement(attempt)
        if not 200 <= answer.status < 300 or answer.flaw is not None:
            return self._settlement(attempt)
        reading = partial(read_body_targets, answer.body, answer.headers)
        if len(answer.body) < LARGE_PAGE:
            targets = reading()
        else:
            targets = await trio.to_thread.run_sync(reading)
        return self._settlement(attempt, targets)

    def _settlement(self, attempt: Attempt, targets: AbstractSet[int] | None = None) -> Settlement:
        job, answer = attempt.job, attempt.answer
        if isinstance(answer, Fault):
            return _ended(attempt, None, answer)
        if answer.status not in REDIRECTS or not is_redirect(answer):
            return _ended(attempt, answer.status, targets=targets)
        found = redirect_target(job, answer)
        if isinstance(found, Fault):
            return _ended(attempt, answer.status, found)
        target, fragment = found
        left = job.redirects - 1
        if left < 0:
            fault = _used_up(self._plan, target)
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
            fragment=fragment,
        )


def _ended(
    attempt: Attempt,
    status: int | None,
    fault: Fault | None = None,
    successors: list[Job] | None = None,
    *,
    target: str | None = None,
    rejected: Reason | None = None,
    targets: AbstractSet[int] | None = None,
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
