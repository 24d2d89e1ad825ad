"""The seen set: which URLs were admitted, and with how many redirects left."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Protocol

from msgspec.structs import replace

from trio_crawler.frontier.settlement import Settlement
from trio_crawler.model import Failure, Job, Purpose, Redirect
from trio_crawler.page.urls import seen_key


class Urls(Protocol):
    """A set of URLs, as a set of str is one."""

    def add(self, url: str, /) -> None:
        """Add a URL."""

    def update(self, urls: Iterable[str], /) -> None:
        """Add many URLs."""

    def intersection(self, urls: Collection[str], /) -> set[str]:
        """Return those of `urls` that are in the set."""

    def __contains__(self, url: object, /) -> bool: ...

    def __len__(self) -> int: ...


Urls.__module__ = "trio_crawler.frontier"


class Seen:
    """Decide which job, if any, a job still calls for.

    A URL first met at the end of a redirect chain has few redirects left. Met again on a fuller
    path it must not be fetched twice, nor may its own redirect stay cut. So for URLs that were
    admitted with less than the full budget it is kept how much they had and where they led; a
    fuller path walks along these hops and goes on where the first one ran out.

    `done` keeps the URLs that no path can call for any more; a set of str if it is not given.

    For a frontier that lasts: `raised` collects (redirects, number) where a fuller path was found
    to a URL of which `number` was told the number; the frontier stores and clears the list.
    """

    __module__ = "trio_crawler.frontier"

    __slots__ = ("_done", "_full", "_hops", "_left", "_numbers", "_sitemaps", "raised")

    def __init__(self, max_redirects: int = 10, done: Urls | None = None) -> None:
        self._full = max_redirects
        # A key is in one of the two: in the first when no path can call for anything more.
        self._done: Urls = set() if done is None else done
        self._left: dict[str, int] = {}
        self._hops: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._sitemaps: set[str] = set()
        self.raised: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._done) + len(self._left)

    def __contains__(self, url: str) -> bool:
        key = seen_key(url)
        return key in self._done or key in self._left

    def known(self, urls: Collection[str]) -> set[str]:
        """Return those of `urls` to which no path can call for anything more."""
        # Nearly all links of nearly all pages are known, under the very spelling that is their
        # key: one step in C finds these, at a quarter of what asking for each would cost.
        known = self._done.intersection(urls)
        if "%" in "".join(urls):
            known.update([url for url in urls if "%" in url and seen_key(url) in self._done])
        return known

    def admit_all(self, jobs: Iterable[Job]) -> list[Job]:
        """Return what to fetch for jobs, as `admit` does for one."""
        fresh = []
        for job in jobs:
            if (new := self.admit(job)) is not None:
                fresh.append(new)
        return fresh

    def admit(self, job: Job) -> Job | None:
        """Return what to fetch for `job`: itself, the target of a chain cut short, or nothing.

        A sitemap is fetched once, whether or not its URL is also that of a page.
        """
        if job.purpose is Purpose.SITEMAP:
            if job.url in self._sitemaps:
                return None
            self._sitemaps.add(job.url)
            return job
        while True:
            key = seen_key(job.url) if "%" in job.url else job.url
            if key in self._done:
                return None
            if key not in self._left:
                break
            if job.redirects <= self._left[key]:
                return None
            self._left[key] = job.redirects
            if key in self._numbers:
                self.raised.append((job.redirects, self._numbers[key]))
            if key not in self._hops:
                return None
            job = replace(job, url=self._hops[key], redirects=job.redirects - 1, referrer=job.url)
        if job.redirects < 0:
            return None
        if job.redirects < self._full:
            self._left[key] = job.redirects
        else:
            self._done.add(key)
        return job

    def number(self, url: str, number: int) -> None:
        """Record the number under which a URL was stored when it was admitted.

        To be called for URLs with less than the full budget, at least.
        """
        key = seen_key(url)
        if key in self._left:
            self._numbers[key] = number

    def successors(self, settlement: Settlement) -> Sequence[Job]:
        """Return the successors of a settlement, with the redirects that they may still follow.

        The target of a redirect gets those of the fullest path to the URL that led there; a link
        starts anew.
        """
        if not isinstance(settlement.outcome, Redirect | Failure):
            return settlement.successors
        url = settlement.job.url
        return [
            self.follow(url, job) if job.referrer == url else job for job in settlement.successors
        ]

    def follow(self, url: str, job: Job) -> Job:
        """Record that `url` led to `job`; return it with the redirects of the fullest path."""
        key = seen_key(url)
        if key not in self._left:
            return job
        self._hops[key] = job.url
        return replace(job, redirects=max(job.redirects, self._left[key] - 1))

    def restore(self, rows: Iterable[tuple[int, str, int]]) -> None:
        """Add URLs that were admitted before: number, URL, and redirects left."""
        self._done.update(self._restored(rows))

    def _restored(self, rows: Iterable[tuple[int, str, int]]) -> Iterator[str]:
        full = self._full
        for number, url, redirects in rows:
            key = seen_key(url) if "%" in url else url
            if redirects >= full:
                yield key
            else:
                self._left[key] = redirects
                self._numbers[key] = number

    def restore_sitemaps(self, urls: Iterable[str]) -> None:
        """Add the URLs of sitemaps that were admitted before."""
        self._sitemaps.update(urls)

    def restore_hops(self, hops: Iterable[tuple[str, str]]) -> None:
        """Add where URLs led: each with its target. To be called when all are restored."""
        for url, target in hops:
            key = seen_key(url)
            if key in self._left:
                self._hops[key] = target
