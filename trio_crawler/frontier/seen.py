"""The seen set: which URLs were admitted, and with how many redirects left."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Protocol

from trio_crawler.model import Job
from trio_crawler.page.urls import seen_key


class Urls(Protocol):
    """Keep a set of URLs, as a set of str does."""

    def add(self, url: str, /) -> None:
        """Add a URL."""

    def update(self, urls: Iterable[str], /) -> None:
        """Add many URLs."""

    def intersection(self, urls: Collection[str], /) -> set[str]:
        """Return those of `urls` that are in the set."""

    def __contains__(self, url: object, /) -> bool: ...

    def __len__(self) -> int: ...


class Seen:
    """Decide which job, if any, a job still calls for.

    A URL first met at the end of a redirect chain has few redirects left. Met again on a
    fuller path it must not be fetched twice, nor may its own redirect stay cut. So for URLs
    admitted with less than the full budget it is kept how much they had and where they led;
    a fuller path walks along these hops and goes on where the first one ran out.

    `done` keeps the URLs that no path can call for any more; a set of str if it is not given.

    For a frontier that lasts: `fuller` collects (redirects, number) where a fuller path was found
    to a URL that `note` had told the number of; whoever files that clears the list.
    """

    __slots__ = ("_done", "_full", "_hops", "_left", "_numbers", "fuller")

    def __init__(self, max_redirects: int, done: Urls | None = None) -> None:
        self._full = max_redirects
        # A key is in one of the two: in the first when no path can call for anything more.
        self._done: Urls = set() if done is None else done
        self._left: dict[str, int] = {}
        self._hops: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self.fuller: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._done) + len(self._left)

    def __contains__(self, url: str) -> bool:
        key = seen_key(url)
        return key in self._done or key in self._left

    def knows(self, urls: Collection[str]) -> set[str]:
        """Tell to which of `urls` no path can call for anything more."""
        # Nearly all links of nearly all pages are known, under the very spelling that is their
        # key: one step in C finds these, at a quarter of what asking for each would cost.
        known = self._done.intersection(urls)
        escaped = [url for url in urls if "%" in url]
        known.update(url for url in escaped if seen_key(url) in self._done)
        return known

    def admit(self, job: Job) -> Job | None:
        """Return what to fetch for `job`: itself, the target of a chain cut short, or nothing."""
        while True:
            key = seen_key(job.url)
            if key in self._done:
                return None
            if key not in self._left:
                return self._first(key, job)
            if job.redirects <= self._left[key]:
                return None
            self._left[key] = job.redirects
            if key in self._numbers:
                self.fuller.append((job.redirects, self._numbers[key]))
            if key not in self._hops:
                return None
            job = replace(job, url=self._hops[key], redirects=job.redirects - 1, referrer=job.url)

    def _first(self, key: str, job: Job) -> Job | None:
        if job.redirects < 0:
            return None
        if job.redirects < self._full:
            self._left[key] = job.redirects
        else:
            self._done.add(key)
        return job

    def note(self, url: str, number: int) -> None:
        """Note under which number a URL was filed when it was admitted.

        To be called for those with less than the full budget, at least.
        """
        key = seen_key(url)
        if key in self._left:
            self._numbers[key] = number

    def follow(self, url: str, job: Job) -> Job:
        """Note that `url` led to `job`; give it the redirects of the fullest path to `url`."""
        key = seen_key(url)
        if key not in self._left:
            return job
        self._hops[key] = job.url
        return replace(job, redirects=max(job.redirects, self._left[key] - 1))

    def restore(self, rows: Iterable[tuple[int, str, int]]) -> None:
        """Take in URLs that were admitted before: number, URL, and redirects left."""
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

    def restore_hops(self, hops: Iterable[tuple[str, str]]) -> None:
        """Take in where URLs led: each with its target. To be called when all are restored."""
        for url, target in hops:
            key = seen_key(url)
            if key in self._left:
                self._hops[key] = target
