"""The crawl directory of one worker: its outcomes, under the numbers that the store has given."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import trio

from trio_crawler.frontier.journal import Kept
from trio_crawler.frontier.url_index import StoredJob
from trio_crawler.model import Reason
from trio_crawler.page.urls import origin
from trio_crawler.policy.settings import HostStatistics
from trio_crawler.settlement import RobotsRules, Settlement, SitemapRead
from trio_crawler.store.runs import End

_MOST = 20_000
"""The outcomes of earlier runs that are looked at: more than a worker has at risk."""


class WorkerDirectory(Kept):
    """The directory that a worker writes before it tells the store.

    So no outcome is lost, and one may be in two directories: if a worker ends between the two, the
    store gives its URL to another one. Of a URL that this directory has already, the first outcome
    stays. Each transaction is on the disk when it ends.
    """

    def __init__(
        self,
        path: str | Path,
        meaning: Mapping[str, Any] | None,
        settings: Mapping[str, Any] | None,
    ) -> None:
        super().__init__(path, meaning=meaning, settings=settings, durable=True)
        self.journal = self._journal
        self._since = 0.0
        # What earlier runs wrote last: the store may give it once more.
        self._written = set[int]()

    async def open(self) -> None:
        """Lock the directory, and begin a run in it. Raises StoreError."""
        await self._journal.open()
        self._written = await self._journal.call(partial(self._journal.store.latest, _MOST))
        self._since = trio.current_time()

    def settle(self, job: StoredJob | None, settlement: Settlement) -> None:
        """Let the next transaction have the end of a job, and what was learned from it."""
        batch, learned = self._journal.batch, settlement.learned
        if job is not None and job.number not in self._written:
            about = (job.depth, job.redirects, job.referrer, job.priority)
            batch.admitted.append((job.number, job.url, job.purpose.value, *about))
            if job.again:
                batch.again.append(job.number)
            if settlement.outcome is not None:
                self._journal.settle(job.number, settlement.outcome, settlement.size)
            elif isinstance(learned, SitemapRead):
                listings = list(learned.listings.items())
                batch.sitemaps.append((job.number, learned.sitemap, listings))
        if isinstance(learned, RobotsRules) and learned.answer is not None:
            batch.robots.append((origin(learned.url), time.time(), learned.answer))
        if isinstance(learned, RobotsRules | SitemapRead) and learned.rejected:
            batch.sitemaps += [(0, sitemap, []) for sitemap in learned.rejected]

    async def write(self) -> None:
        """Write what was settled, in one transaction. Raises StoreError."""
        # The numbers of the store are those of all workers, and come in any order.
        self._journal.batch.admitted.sort(key=lambda row: row[0])
        await self._journal.write()

    async def close(
        self, how: End, hosts: Iterable[HostStatistics], reason: Reason | None
    ) -> None:
        """Write the rest and the end of the run, and close the directory. Raises StoreError."""
        await self._journal.close(how, hosts, trio.current_time() - self._since, reason)
