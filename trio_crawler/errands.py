"""Errands: what robots.txt files and sitemaps, asked for besides the pages, mean for a crawl."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice

import trio

from trio_crawler.frontier.protocol import Frontier
from trio_crawler.model import Fault, Job, Listing, Phase, Purpose, Reason, Response, Sitemap
from trio_crawler.page import sitemap
from trio_crawler.page.urls import host, origin, seen_key, web
from trio_crawler.policy.limits import Limits
from trio_crawler.policy.manners import troubled
from trio_crawler.policy.robots import Robots, Rules, interpret
from trio_crawler.policy.validators import validator_of
from trio_crawler.verdict import is_redirect, location

LARGE = 64 * 1024
"""Bytes from which on a file is read in a thread."""

_ABOUT_THE_HOST = (Phase.RESOLVE, Phase.CONNECT, Phase.TLS)

_GZIP = b"\x1f\x8b"

_CHUNK = 500
"""Entries of a sitemap that are admitted at once, before others have their turn."""


class Errands:
    """Learn from robots.txt files and sitemaps; `admits` judges what a sitemap names.

    `sitemaps` holds what came of each sitemap, `listings` what they say of the URLs that belong
    to the crawl, by their seen key.
    """

    def __init__(
        self,
        frontier: Frontier,
        robots: Robots,
        limits: Limits,
        admits: Callable[[Job], Reason | None],
        follow_sitemaps: bool,
    ) -> None:
        self.sitemaps: list[Sitemap] = []
        self.listings: dict[str, Listing] = {}
        self._frontier = frontier
        self._robots = robots
        self._limits = limits
        self._admits = admits
        self._follow = follow_sitemaps

    async def done(self, job: Job, answer: Response | Fault) -> None:
        """Take what came for an errand."""
        target = _target(job, answer)
        if job.purpose is Purpose.PROBE:
            self._frontier.learned(job.url, answer if troubled(answer) else None)
        elif job.purpose is Purpose.ROBOTS:
            await self._robots_done(job, answer, target)
        else:
            await self._sitemap_done(job, answer, target)

    async def dropped(self, job: Job) -> None:
        """Take note that an errand came to nothing: the crawl is ending, or its host given up."""
        why = job.refused
        if job.purpose is Purpose.SITEMAP:
            if why is not None:
                self._tell(job, _unread(why))
            await self._frontier.settle(None, [])
        elif why is not None:
            trouble = why if isinstance(why, Fault) else Fault(Reason.UNREACHABLE, str(why))
            self._frontier.learned(job.referrer or job.url, trouble)

    async def _robots_done(self, job: Job, answer: Response | Fault, target: str | None) -> None:
        asked = job.referrer or job.url
        if target and job.redirects > 0:
            left = job.redirects - 1
            hop = replace(job, url=target, redirects=left, referrer=asked, validator=None)
            await self._frontier.hop(hop)
            return
        if isinstance(answer, Response) and answer.status == 304 and job.validator:
            self._robots.renew(origin(asked), trio.current_time())
            self._frontier.learned(asked, None)
            return
        rules = await self._rules(answer)
        if rules is None:
            self._frontier.learned(asked, _unavailable(answer))
            return
        validator = validator_of(answer.headers) if isinstance(answer, Response) else None
        self._robots.store(origin(asked), rules, trio.current_time(), validator)
        if self._follow:
            await self._add_sitemaps(rules.sitemaps, asked, 0)
        self._frontier.learned(asked, None)

    async def _rules(self, answer: Response | Fault) -> Rules | None:
        if isinstance(answer, Fault) or len(answer.body) < LARGE:
            return interpret(answer, self._robots.token)
        return await trio.to_thread.run_sync(interpret, answer, self._robots.token)

    async def _add_sitemaps(self, urls: Iterable[str], referrer: str, level: int) -> None:
        jobs = [self.sitemap_job(url, referrer, level) for url in urls]
        await self._frontier.add([job for job in jobs if self._may_ask(job)])

    def sitemap_job(self, url: str, referrer: str | None = None, level: int = 0) -> Job:
        """Make the job that asks for a sitemap."""
        most = self._limits.max_redirects
        return Job(url, level, most, referrer, purpose=Purpose.SITEMAP)

    def _may_ask(self, job: Job) -> bool:
        """Tell whether a sitemap may be asked for: it is of the same host, or in the scope."""
        if job.referrer is None or host(job.url) == host(job.referrer):
            return True
        reason = self._admits(job)
        if reason is not None:
            self._tell(job, _unread(reason))
        return reason is None

    def _tell(self, job: Job, found: sitemap.Map, admitted: int = 0) -> None:
        named = len(found.entries) + len(found.sitemaps) + found.beyond
        about = (found.kind, named, admitted, found.flaws, found.detail, job.referrer)
        self.sitemaps.append(Sitemap(job.url, *about))

    async def _sitemap_done(self, job: Job, answer: Response | Fault, target: str | None) -> None:
        if target and job.redirects > 0:
            hop = replace(job, url=target, redirects=job.redirects - 1, tries=0)
            await self._frontier.settle(None, [hop] if self._may_ask(hop) else [])
            return
        found = await self._read(job, answer)
        admitted = await self._admit(job, found.entries)
        if found.sitemaps and job.depth >= sitemap.MOST_LEVELS:
            found = replace(found, flaws=(*found.flaws, Reason.TOO_MANY_LEVELS))
        else:
            await self._add_sitemaps(found.sitemaps, job.url, job.depth + 1)
        self._tell(job, found, admitted)
        await self._frontier.settle(None, [])

    async def _read(self, job: Job, answer: Response | Fault) -> sitemap.Map:
        if isinstance(answer, Fault):
            return _unread(answer)
        if not 200 <= answer.status < 300:
            return sitemap.Map(flaws=(Reason.BAD_STATUS,), detail=f"status {answer.status}")
        media = answer.headers.get("content-type", "")
        reading = partial(sitemap.read, answer.body, media, job.url)
        if len(answer.body) < LARGE and not answer.body.startswith(_GZIP):
            return reading()
        return await trio.to_thread.run_sync(reading)

    async def _admit(self, job: Job, entries: Sequence[sitemap.Entry]) -> int:
        admitted = 0
        rest = iter(entries)
        while chunk := list(islice(rest, _CHUNK)):
            jobs = self._judged(job, chunk)
            admitted += len(jobs)
            await self._frontier.add(jobs)
        return admitted

    def _judged(self, job: Job, entries: Sequence[sitemap.Entry]) -> list[Job]:
        """Make jobs of what is new and admitted among some entries, and keep their listings."""
        known = self._frontier.knows([entry.url for entry in entries])
        jobs = []
        for entry in entries:
            url, last_modified, priority = entry
            found = Job(url, 1, self._limits.max_redirects, job.url, priority=priority)
            if url not in known:
                if self._admits(found):
                    continue
                jobs.append(found)
            self.listings.setdefault(seen_key(url), Listing(job.url, last_modified, priority))
        return jobs


def _target(job: Job, answer: Response | Fault) -> str | None:
    """Return where an errand was redirected to, if anybody can be asked there."""
    if isinstance(answer, Fault) or not is_redirect(answer):
        return None
    target = location(job, answer)
    return target if isinstance(target, str) and web(target) else None


def _unread(why: Reason | Fault) -> sitemap.Map:
    if isinstance(why, Fault):
        return sitemap.Map(flaws=(why.reason,), detail=why.detail)
    return sitemap.Map(flaws=(why,), detail=f"not asked for: {why}")


def _unavailable(answer: Response | Fault) -> Response | Fault:
    """Say what kept robots.txt away, in words that fit each URL of its host."""
    if isinstance(answer, Response) or answer.phase in _ABOUT_THE_HOST:
        return answer
    return replace(answer, detail=f"robots.txt: {answer.detail}")
