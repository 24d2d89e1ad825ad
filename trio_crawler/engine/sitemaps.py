"""The handlers of sitemaps, of robots.txt files, which name them, and of probes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import httpx
import trio
from msgspec.structs import replace

from trio_crawler.engine.handler import Retry, is_redirect, redirect_target, retry
from trio_crawler.engine.links import Rules
from trio_crawler.frontier.protocol import Frontier
from trio_crawler.model import (
    Answer,
    Attempt,
    Fault,
    Job,
    Listing,
    Phase,
    Purpose,
    Reason,
    RejectedLink,
    Response,
    Sitemap,
)
from trio_crawler.page.sitemap.read import GZIP
from trio_crawler.page.urls import authority, is_web, normalise, seen_key
from trio_crawler.policy.answers import validator_of
from trio_crawler.policy.plan import Plan
from trio_crawler.policy.robots import FRESH, interpret, is_lasting, is_self_named
from trio_crawler.settlement import (
    ProbeAnswered,
    RobotsMissing,
    RobotsMoved,
    RobotsRenewed,
    RobotsRules,
    Settlement,
    SitemapRead,
)

# Imported late, where it is used: most crawls read no sitemap, and the import takes 15 ms.
if TYPE_CHECKING:
    from trio_crawler.page.sitemap.read import ParsedSitemap, SitemapEntry

LARGE = 64 * 1024
"""A file of at least this many bytes is read in a thread, and so is every compressed file."""

MAX_LEVELS = 3
"""The most levels of indexes above a sitemap; the protocol has one."""

MAX_SITEMAPS = 10_000
"""The most sitemaps of one host that are fetched, and the most records of rejected sitemaps."""

# Entries that are admitted at once, before other tasks can run.
_CHUNK = 50
_MAX_REJECTED = 1_000


class SitemapHandler:
    """Turn the attempts at sitemaps into the URLs that they list.

    `records` has a record of each sitemap, read or not. `listing` returns the entry of each URL
    that belongs to the crawl.
    """

    def __init__(
        self,
        plan: Plan,
        frontier: Frontier,
        rules: Rules,
        *,
        max_sitemaps: int = MAX_SITEMAPS,
    ) -> None:
        self.records: list[Sitemap] = []
        # By the hash of the seen key, as in a `UrlSet`: the URLs may be long.
        self._listings: dict[int, Listing] = {}
        self._plan = plan
        self._frontier = frontier
        self._rules = rules
        self._accepted: defaultdict[str, set[str]] = defaultdict(set)
        self._rejected: set[str] = set()
        self._max_sitemaps = max_sitemaps
        # The sites of a stream of seeds are not crawled: their sitemaps would be read in vain.
        self._hosts = None if plan.seed_stream is None else set(map(authority, plan.seeds))

    def restore(self, records: Iterable[Sitemap], listings: Mapping[str, Listing]) -> None:
        """Start from the records and listings of earlier runs."""
        for record in records:
            self.records.append(record)
            if record.fetched:
                self._accepted[authority(record.url)].add(record.url)
            else:
                self._rejected.add(record.url)
        self._listings.update((hash(key), listing) for key, listing in listings.items())

    def listing(self, url: str | httpx.URL) -> Listing | None:
        """Return the entry of a URL in the sitemaps read so far; None if there is none."""
        return self._listings.get(hash(seen_key(normalise(url))))

    def named(self, urls: Iterable[str], robots: str) -> tuple[list[Job], tuple[Sitemap, ...]]:
        """Return the jobs for the sitemaps that a robots.txt names, and the rejected ones."""
        left_out = self._hosts is not None and authority(robots) not in self._hosts
        if left_out or not self._plan.sitemaps.follow:
            return [], ()
        return self._jobs(urls, robots, 0)

    def blocked(self, job: Job, why: Reason | Fault, last: Attempt | None) -> Settlement:
        """Return the settlement of a sitemap that is not fetched."""
        return Settlement(job, learned=SitemapRead(self._unread(job, why, fetched=False)))

    async def settled(self, attempt: Attempt) -> Settlement | Retry:
        """Return the settlement of a sitemap, after its URLs were admitted, or its retry."""
        if (again := retry(self._plan, attempt)) is not None:
            return again
        job, answer = attempt.job, attempt.answer
        if self._frontier.hosts.ended is not None:
            return Settlement(job, learned=SitemapRead(None))
        if (hop := _hop(job, answer)) is not None:
            return await self._redirect(job, replace(hop, referrer=job.url, tries=0))
        if isinstance(answer, Response) and not 200 <= answer.status < 300:
            answer = Fault(Reason.BAD_STATUS, f"status {answer.status}")
        if isinstance(answer, Fault):
            return Settlement(job, learned=SitemapRead(self._unread(job, answer)))
        found = await self._read(job, answer)
        rejected: list[RejectedLink] = []
        listings: dict[str, Listing] = {}
        admitted, rest = 0, iter(found.entries)
        while chunk := list(islice(rest, _CHUNK)):
            jobs = list(self._judged(job, chunk, rejected, listings))
            admitted += await self._frontier.add(jobs)
        successors: list[Job] = []
        not_fetched: tuple[Sitemap, ...] = ()
        if found.sitemaps and job.depth >= MAX_LEVELS:
            found = replace(found, flaws=(*found.flaws, Reason.TOO_MANY_LEVELS))
        else:
            successors, not_fetched = self._jobs(found.sitemaps, job.url, job.depth + 1)
        record = self._record(job, found, admitted, rejected)
        return Settlement(
            job, successors=successors, learned=SitemapRead(record, listings, not_fetched)
        )

    async def _redirect(self, job: Job, hop: Job) -> Settlement:
        reason = self._reason(hop, job.url)
        if reason is not None:
            return Settlement(job, learned=SitemapRead(None, {}, self._reject(hop, reason)))
        if await self._frontier.add([hop]):
            return Settlement(job, learned=SitemapRead(None))
        detail = f"redirects to {hop.url}, which was found before"
        record = self._unread(job, Fault(Reason.BAD_SITEMAP, detail))
        return Settlement(job, learned=SitemapRead(record))

    def _jobs(
        self, urls: Iterable[str], referrer: str, level: int
    ) -> tuple[list[Job], tuple[Sitemap, ...]]:
        """Return the jobs for the sitemaps that `referrer` names, and the rejected ones."""
        redirects = self._plan.limits.max_redirects
        jobs: list[Job] = []
        rejected: list[Sitemap] = []
        for url in urls:
            job = Job(normalise(url), level, redirects, referrer, purpose=Purpose.SITEMAP)
            reason = self._reason(job, referrer)
            if reason is None:
                jobs.append(job)
            else:
                rejected += self._reject(job, reason)
        return jobs, tuple(rejected)

    def _reason(self, job: Job, named_by: str) -> Reason | None:
        """Return why a sitemap is rejected; None if it is fetched.

        A sitemap on another host than the file that names it must be admitted like a page. On the
        same host only robots.txt can disallow it, unless robots.txt itself names it.
        """
        host = authority(job.url)
        accepted = self._accepted[host]
        if len(accepted) >= self._max_sitemaps and job.url not in accepted:
            reason: Reason | None = Reason.HOST_BUDGET
        elif host == authority(named_by):
            obeys = self._plan.politeness.robots and not is_self_named(job)
            reason = Reason.ROBOTS if obeys and self._frontier.hosts.disallows(job.url) else None
        else:
            reason = self._rules.rejection(job)
        if reason is None:
            # A set: a robots.txt that is read again names the same sitemaps.
            accepted.add(job.url)
        return reason

    def _reject(self, job: Job, reason: Reason) -> tuple[Sitemap, ...]:
        # A robots.txt is read again each day and may name thousands of sitemaps, so there is one
        # record for each, and a bound.
        if job.url in self._rejected or len(self._rejected) >= self._max_sitemaps:
            return ()
        self._rejected.add(job.url)
        return (self._unread(job, reason, fetched=False),)

    def _record(
        self,
        job: Job,
        found: ParsedSitemap,
        admitted: int,
        rejected: Iterable[RejectedLink],
    ) -> Sitemap:
        named = len(found.entries) + len(found.sitemaps) + found.beyond
        about = (found.kind, named, admitted, found.flaws, found.detail, job.referrer)
        record = Sitemap(job.url, *about, tuple(rejected))
        self.records.append(record)
        return record

    def _unread(self, job: Job, why: Reason | Fault, *, fetched: bool = True) -> Sitemap:
        reason, detail = (why.reason, why.detail) if isinstance(why, Fault) else (why, "")
        record = Sitemap(
            job.url, flaws=(reason,), detail=detail, referrer=job.referrer, fetched=fetched
        )
        self.records.append(record)
        return record

    async def _read(self, job: Job, answer: Response) -> ParsedSitemap:
        from trio_crawler.page.sitemap.read import parse_sitemap

        media = answer.headers.get("content-type", "")
        reading = partial(parse_sitemap, answer.body, media, job.url)
        if len(answer.body) < LARGE and not answer.body.startswith(GZIP):
            return reading()
        return await trio.to_thread.run_sync(reading)

    def _judged(
        self,
        job: Job,
        entries: Sequence[SitemapEntry],
        rejected: list[RejectedLink],
        listings: dict[str, Listing],
    ) -> Iterator[Job]:
        """Yield the jobs of the entries that are new and admitted; store their listings."""
        known = self._frontier.known([entry.url for entry in entries])
        for url, last_modified, priority in entries:
            found = Job(url, 1, self._plan.limits.max_redirects, job.url, priority=priority)
            if url not in known:
                if reason := self._rules.rejection(found):
                    if len(rejected) < _MAX_REJECTED:
                        rejected.append(RejectedLink(url, reason))
                    continue
                yield found
            key = seen_key(url)
            if (number := hash(key)) not in self._listings:
                listing = Listing(job.url, last_modified, priority)
                self._listings[number] = listings[key] = listing


# Seconds for which old rules are used after robots.txt could not be fetched.
_EXTENSION = 600.0
# A fault in one of these phases is due to the host, and not to its robots.txt.
_HOST_PHASES = (Phase.RESOLVE, Phase.CONNECT, Phase.TLS)


class RobotsHandler:
    """Turn the attempts at robots.txt files into rules (RFC 9309).

    The state of the host decides when one that failed is fetched again.
    """

    def __init__(self, plan: Plan, frontier: Frontier, sitemaps: SitemapHandler) -> None:
        self._token = plan.agent
        self._frontier = frontier
        self._sitemaps = sitemaps

    def blocked(self, job: Job, why: Reason | Fault, last: Attempt | None) -> Settlement:
        """Return the settlement of a robots.txt that redirects to a host that was given up."""
        return Settlement(job, learned=RobotsMissing(job.referrer or job.url, _fault(why)))

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
        if isinstance(answer, Fault) or len(answer.body) < LARGE:
            rules = interpret(answer, self._token)
        else:
            rules = await trio.to_thread.run_sync(interpret, answer, self._token)
        if rules is not None and isinstance(answer, Response):
            named, rejected = self._sitemaps.named(rules.sitemaps, robots_url)
            validator, kept = validator_of(answer.headers), answer if is_lasting(answer) else None
            learned = RobotsRules(robots_url, rules, validator, kept, rejected)
            return Settlement(job, successors=named, learned=learned)
        known = self._frontier.hosts.origin(robots_url).robots
        if known is not None and not known.is_fresh(trio.current_time()):
            # The old rules may be used while the file cannot be fetched (RFC 9309, 2.4).
            return Settlement(job, learned=RobotsRenewed(robots_url, _EXTENSION))
        return Settlement(job, learned=RobotsMissing(robots_url, _unavailable(answer)))


class ProbeHandler:
    """Report whether a host is back: a probe fetches a page again that the host has served."""

    def blocked(self, job: Job, why: Reason | Fault, last: Attempt | None) -> Settlement:
        """Return the settlement of a probe that is not fetched."""
        return Settlement(job, learned=ProbeAnswered(job.url, _fault(why)))

    async def settled(self, attempt: Attempt) -> Settlement:
        """Return the settlement of a probe."""
        return Settlement(attempt.job, learned=ProbeAnswered(attempt.job.url, attempt.answer))


def _hop(job: Job, answer: Answer) -> Job | None:
    """Return the job for the target of a redirect; None if there is none to follow."""
    if isinstance(answer, Fault) or not is_redirect(answer) or job.redirects <= 0:
        return None
    found = redirect_target(job, answer)
    if isinstance(found, Fault) or not is_web(found[0]):
        return None
    return replace(job, url=found[0], redirects=job.redirects - 1)


def _fault(why: Reason | Fault) -> Fault:
    return why if isinstance(why, Fault) else Fault(Reason.UNREACHABLE, str(why))


def _unavailable(answer: Answer) -> Answer:
    """Return the answer; unless the host itself failed, mark a fault as one of robots.txt."""
    if isinstance(answer, Response) or answer.phase in _HOST_PHASES:
        return answer
    return replace(answer, about=Purpose.ROBOTS)
