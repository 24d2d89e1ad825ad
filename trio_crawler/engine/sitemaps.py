"""Sitemaps: which of them are asked for, and what they mean for a crawl."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import trio

from trio_crawler.frontier.protocol import Frontier
from trio_crawler.model import (
    Fault,
    Job,
    Listing,
    Purpose,
    Reason,
    Refused,
    Response,
    Sitemap,
)
from trio_crawler.page.urls import authority, normalise, seen_key
from trio_crawler.policy.limits import Limits
from trio_crawler.policy.robots.store import Robots, named_itself

# Where it is needed it is imported late: most crawls come upon no sitemap, and it costs 15 ms.
if TYPE_CHECKING:
    from trio_crawler.page.sitemap import read as sitemap

LARGE = 64 * 1024
"""Bytes from which on a file is read in a thread, as is one that is packed."""

MOST_LEVELS = 3
"""Indexes above a sitemap; the protocol has one."""

MOST_SITEMAPS = 10_000
"""Sitemaps of one host that are asked for."""

_GZIP = b"\x1f\x8b"
# Entries that are admitted at once, before others have their turn.
_CHUNK = 50
_MOST_REFUSED = 1_000
_NOT_ASKED = "not asked for: "


class Sitemaps:
    """Learn from sitemaps; `admits` judges what they name.

    `records` holds what came of each, `listings` what they say of the URLs that belong to the
    crawl, by their seen key. With `follow` those that robots.txt names are asked for.
    """

    def __init__(
        self,
        frontier: Frontier,
        robots: Robots,
        limits: Limits,
        admits: Callable[[Job], Reason | None],
        follow: bool,
    ) -> None:
        self.records: list[Sitemap] = []
        self.listings: dict[str, Listing] = {}
        # What is said by the sitemap that is being read, of URLs of which nothing was said before.
        self._fresh: dict[str, Listing] = {}
        self._frontier = frontier
        self._robots = robots
        self._limits = limits
        self._admits = admits
        self._follow = follow
        self._asked: defaultdict[str, set[str]] = defaultdict(set)
        self._refused: set[str] = set()

    def job(self, url: str, referrer: str | None = None, level: int = 0) -> Job:
        """Make the job that asks for a sitemap, named by `referrer` after so many indexes."""
        most = self._limits.max_redirects
        return Job(normalise(url), level, most, referrer, purpose=Purpose.SITEMAP)

    async def named(self, urls: Iterable[str], robots: str) -> None:
        """Ask for the sitemaps that a robots.txt names."""
        if self._follow:
            await self._add(urls, robots, 0)

    def recall(self, records: Iterable[Sitemap], listings: Mapping[str, Listing]) -> None:
        """Take over what earlier runs have learned."""
        for record in records:
            self.records.append(record)
            if record.detail.startswith(_NOT_ASKED):
                self._refused.add(record.url)
            else:
                self._asked[authority(record.url)].add(record.url)
        self.listings.update(listings)

    async def dropped(self, job: Job) -> None:
        """Take note that a sitemap was not asked for: the crawl is ending, or it was refused."""
        record = None if job.refused is None else self._tell(job, _unread(job.refused))
        await self._frontier.finish(job, record, {})

    async def done(self, job: Job, answer: Response | Fault, target: str | None) -> None:
        """Take what came for a sitemap, or where it was redirected to."""
        self._fresh = {}
        if target and job.redirects > 0:
            record = await self._redirect(job, target)
        else:
            record = await self._learn(job, await self._read(job, answer))
        await self._frontier.finish(job, record, self._fresh)

    async def _redirect(self, job: Job, target: str) -> Sitemap | None:
        left = job.redirects - 1
        hop = replace(job, url=target, redirects=left, referrer=job.url, tries=0)
        if not self._may_ask(hop, job.url) or await self._frontier.add([hop]):
            return None
        detail = f"redirects to {target}, which was asked for already"
        return self._tell(job, _unread(Fault(Reason.BAD_SITEMAP, detail)))

    async def _learn(self, job: Job, found: sitemap.Map) -> Sitemap:
        refused: list[Refused] = []
        admitted = await self._admit(job, found.entries, refused)
        if found.sitemaps and job.depth >= MOST_LEVELS:
            found = replace(found, flaws=(*found.flaws, Reason.TOO_MANY_LEVELS))
        else:
            await self._add(found.sitemaps, job.url, job.depth + 1)
        return self._tell(job, found, admitted, refused)

    async def _add(self, urls: Iterable[str], referrer: str, level: int) -> None:
        jobs = [self.job(url, referrer, level) for url in urls]
        await self._frontier.add([job for job in jobs if self._may_ask(job, referrer)])

    def _may_ask(self, job: Job, named_by: str) -> bool:
        """Tell whether a sitemap may be asked for.

        It must be of the host that names it, or admitted as a page would be. What robots.txt
        itself names, it also allows.
        """
        host = authority(job.url)
        asked = self._asked[host]
        if len(asked) >= MOST_SITEMAPS and job.url not in asked:
            reason: Reason | None = Reason.HOST_BUDGET
        elif host == authority(named_by):
            reason = None if named_itself(job) else self._robots.refusal(job.url)
        else:
            reason = self._admits(job)
        if reason is None:
            # A robots.txt that is read again names them again.
            asked.add(job.url)
        else:
            self._refuse(job, reason)
        return reason is None

    def _refuse(self, job: Job, reason: Reason) -> None:
        # A robots.txt may be read again and again, and name thousands.
        if job.url not in self._refused and len(self._refused) < MOST_SITEMAPS:
            self._refused.add(job.url)
            self._frontier.note(self._tell(job, _unread(reason)))

    def _tell(
        self, job: Job, found: sitemap.Map, admitted: int = 0, refused: Iterable[Refused] = ()
    ) -> Sitemap:
        named = len(found.entries) + len(found.sitemaps) + found.beyond
        about = (found.kind, named, admitted, found.flaws, found.detail, job.referrer)
        record = Sitemap(job.url, *about, tuple(refused))
        self.records.append(record)
        return record

    async def _read(self, job: Job, answer: Response | Fault) -> sitemap.Map:
        if isinstance(answer, Fault):
            return _unread(answer)
        if not 200 <= answer.status < 300:
            return _unread(Fault(Reason.BAD_STATUS, f"status {answer.status}"))
        from trio_crawler.page.sitemap import read as sitemap

        media = answer.headers.get("content-type", "")
        reading = partial(sitemap.read, answer.body, media, job.url)
        if len(answer.body) < LARGE and not answer.body.startswith(_GZIP):
            return reading()
        return await trio.to_thread.run_sync(reading)

    async def _admit(
        self, job: Job, entries: Sequence[sitemap.Entry], refused: list[Refused]
    ) -> int:
        admitted = 0
        rest = iter(entries)
        while chunk := list(islice(rest, _CHUNK)):
            admitted += await self._frontier.add(self._judged(job, chunk, refused))
        return admitted

    def _judged(
        self, job: Job, entries: Sequence[sitemap.Entry], refused: list[Refused]
    ) -> list[Job]:
        """Make jobs of what is new and admitted among some entries, and keep their listings."""
        known = self._frontier.knows([entry.url for entry in entries])
        jobs = []
        for entry in entries:
            url, last_modified, priority = entry
            found = Job(url, 1, self._limits.max_redirects, job.url, priority=priority)
            if url not in known:
                if reason := self._admits(found):
                    refused += [Refused(url, reason)] if len(refused) < _MOST_REFUSED else []
                    continue
                jobs.append(found)
            if (key := seen_key(url)) not in self.listings:
                listing = Listing(job.url, last_modified, priority)
                self.listings[key] = self._fresh[key] = listing
        return jobs


def _unread(why: Reason | Fault) -> sitemap.Map:
    from trio_crawler.page.sitemap import read as sitemap

    if isinstance(why, Fault):
        return sitemap.Map(flaws=(why.reason,), detail=why.detail)
    return sitemap.Map(flaws=(why,), detail=f"{_NOT_ASKED}{why}")
