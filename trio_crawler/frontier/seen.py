"""The seen set: which URLs were admitted, and with how many redirects left."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from trio_crawler.model import Job
from trio_crawler.page.urls import seen_key


class Seen:
    """Decide which job, if any, a job still calls for.

    A URL first met at the end of a redirect chain has few redirects left. Met again on a
    fuller path it must not be fetched twice, nor may its own redirect stay cut. So for URLs
    admitted with less than the full budget it is kept how much they had and where they led;
    a fuller path walks along these hops and goes on where the first one ran out.
    """

    __slots__ = ("_done", "_full", "_hops", "_left")

    def __init__(self, max_redirects: int) -> None:
        self._full = max_redirects
        # A key is in one of the two: in the first when no path can call for anything more.
        self._done: set[str] = set()
        self._left: dict[str, int] = {}
        self._hops: dict[str, str] = {}

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

    def follow(self, url: str, job: Job) -> Job:
        """Note that `url` led to `job`; give it the redirects of the fullest path to `url`."""
        key = seen_key(url)
        if key not in self._left:
            return job
        self._hops[key] = job.url
        return replace(job, redirects=max(job.redirects, self._left[key] - 1))
