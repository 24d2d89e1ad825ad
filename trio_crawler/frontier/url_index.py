"""The register: which URLs a lasting crawl knows, each under its number in the database."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping

from trio_crawler.frontier.filed import Filed
from trio_crawler.frontier.journal import Ledger
from trio_crawler.frontier.memory import followed
from trio_crawler.frontier.resume import Earlier, lasts
from trio_crawler.frontier.seen import Seen
from trio_crawler.frontier.url_set import Keys
from trio_crawler.model import Job, Listing, Outcome, Page, Purpose, Response, Sitemap
from trio_crawler.page.urls import origin
from trio_crawler.store.store import Store


class Register:
    """Number the URLs that are new, know those that are out, and have each change written."""

    def __init__(self, max_redirects: int, ledger: Ledger) -> None:
        self._max_redirects = max_redirects
        self.seen = Seen(max_redirects, Keys())
        self.admitted = 0
        self._ledger = ledger
        self._sitemaps: set[str] = set()
        self._out: dict[tuple[Purpose, str], Filed] = {}
        self._earlier = Earlier()
        self._robots: dict[str, Response] = {}
        self._number = 0

    def knows(self, urls: Collection[str]) -> set[str]:
        """Tell which of `urls` were admitted so that no path to them can call for more."""
        return self.seen.knows(urls)

    def recall(self, store: Store) -> None:
        """Take over what earlier runs have left; of a million URLs in some two seconds."""
        self._number = store.last_number()
        # Room for as many from the beginning saves a third of the time.
        self.seen = Seen(self._max_redirects, Keys(self.admitted))
        admitted = 0
        for rows in store.urls():
            admitted += len(rows)
            self.seen.restore(rows)
        self.admitted = admitted
        self.seen.restore_hops(store.hops())
        self._sitemaps.update(store.sitemap_urls())
        self._earlier.learn(store.validators())

    def enter(self, jobs: Iterable[Job]) -> list[Filed]:
        """Return what is new of these jobs, each under a number of its own."""
        fresh = [self._file(job) for job in map(self._fresh, jobs) if job is not None]
        if self.seen.fuller:
            self._ledger.batch.fuller.extend(self.seen.fuller)
            self.seen.fuller.clear()
        return fresh

    def _fresh(self, job: Job) -> Job | None:
        if job.purpose is Purpose.PAGE:
            found = self.seen.admit(job)
            self.admitted += found is not None
            return found
        if job.url in self._sitemaps:
            return None
        self._sitemaps.add(job.url)
        return job

    def _file(self, job: Job) -> Filed:
        self._number += 1
        self.seen.note(job.url, self._number)
        about = (job.depth, job.redirects, job.referrer, job.priority)
        self._ledger.batch.admitted.append((self._number, job.url, job.purpose.value, *about))
        self._ledger.note()
        return Filed.of(job, self._number)

    def hand_out(self, job: Filed) -> Job:
        """Note that a job goes to a worker; in a later walk it asks for what has changed."""
        self._out[job.purpose, job.url] = job
        self._ledger.at_risk += 1
        return self._earlier.conditional(job)

    def settle(self, outcome: Outcome, successors: Iterable[Job]) -> list[Filed]:
        """Note how a URL ended; return what is new of the jobs that follow from it."""
        job = self._out.pop((Purpose.PAGE, outcome.url))
        if not isinstance(outcome, Page):
            successors = followed(self.seen, outcome, successors)
        fresh = self.enter(successors)
        self._ledger.settle(job.number, outcome)
        return fresh

    def finish(self, job: Job, sitemap: Sitemap | None, listings: Mapping[str, Listing]) -> None:
        """Note what came of a sitemap."""
        number = self._out.pop((Purpose.SITEMAP, job.url)).number
        self._ledger.batch.sitemaps.append((number, sitemap, list(listings.items())))
        self._ledger.end()

    def note(self, sitemap: Sitemap) -> None:
        """Note that a sitemap is not asked for, and why."""
        self._ledger.batch.sitemaps.append((0, sitemap, []))
        self._ledger.note()

    def keep_robots(self, url: str, answer: Response) -> None:
        """Keep what came for a robots.txt until its rules, and its sitemaps, are known."""
        if lasts(answer):
            self._robots[origin(url)] = answer

    def learned(self, url: str, *, known: bool) -> None:
        """Note what came for a robots.txt if its rules are known now."""
        answer = self._robots.pop(origin(url), None)
        if answer is not None and known:
            # The sitemaps that it names are in the batch, or written.
            self._ledger.batch.robots.append((origin(url), time.time(), answer))
            self._ledger.note()

    def take_back(self, job: Job) -> Filed:
        """Note that a job which was out waits again; return it under its number."""
        before = self._out.pop((job.purpose, job.url))
        batch = self._ledger.batch
        batch.tried.append((before.number, job.tries))
        batch.retries += job.tries > before.tries
        self._ledger.end()
        return Filed.of(job, before.number)

    def earlier(self, url: str) -> int | None:
        """Return the number of the page that came from a URL in an earlier walk."""
        return self._earlier.number(url)
