"""The seen set: which URLs were admitted, and with how many redirects left."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Protocol

from msgspec.structs import replace

from trio_crawler.arguments import check_methods, check_whole
from trio_crawler.model import CHECKS, Failure, Job, Purpose, Redirect
from trio_crawler.page.url_set import UrlSet
from trio_crawler.page.urls import seen_key
from trio_crawler.settlement import Settlement


class Urls(Protocol):
    """A set of URLs, such as a set of str.

    >>> urls: Urls = set[str]()
    >>> seen = Seen(max_redirects=10, done=urls)
    >>> seen.admit(Job("https://e.org/")) is None, seen.admit(Job("https://e.org/")) is None
    (False, True)
    """

    def add(self, url: str, /) -> None:
        """Add a `url`."""

    def update(self, urls: Iterable[str], /) -> None:
        """Add many URLs."""

    def intersection(self, urls: Collection[str], /) -> set[str]:
        """Return the URLs among `urls` that are in the set."""

    def __contains__(self, url: object, /) -> bool: ...

    def __len__(self) -> int: ...


Urls.__module__ = "trio_crawler.frontier"
_URLS = ("add", "update", "intersection", "__contains__", "__len__")


class Seen:
    """The seen URLs: they decide whether a job is fetched, or another one in its place.

    A URL that is first found at the end of a redirect chain has few redirects left. When it is
    found again on a path with more redirects left, it must not be fetched twice, but the chain
    that was cut must go on. So for each URL that was admitted with less than the full budget,
    this class keeps the redirects left and the target. A path with more redirects left follows
    these targets, and goes on where the first path ran out.

    A job with `again` is fetched although its URL was admitted before, but once at most: this is
    the bound on a site that leads back to each URL with another cookie. `len` counts admissions.

    `done` keeps the URLs that were admitted with the full budget; by default it is a set of str.

    A frontier that lasts gives its URLs numbers, by `number`. When the budget of such a URL is
    raised, `raised` gets (redirects, number). The frontier stores these pairs and clears the list.

    >>> seen = Seen(max_redirects=10)
    >>> len(seen.admit_all([Job("https://e.org/~ann"), Job("https://e.org/%7Eann")]))
    1
    >>> "https://e.org/~ann" in seen
    True
    """

    __module__ = "trio_crawler.frontier"

    __slots__ = (
        *("_again", "_checks", "_done", "_fragments", "_full", "_hops", "_left", "_numbers"),
        *("_sitemaps", "raised"),
    )

    def __init__(self, max_redirects: int = 10, done: Urls | None = None) -> None:
        check_whole("max_redirects", max_redirects)
        if done is not None:
            check_methods("done", done, _URLS, "a set of URLs, such as a set of str")
        self._full = max_redirects
        # A URL that was admitted with the full budget is in the first, any other in the second.
        self._done: Urls = set() if done is None else done
        self._left: dict[str, int] = {}
        self._hops: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._sitemaps: set[str] = set()
        self._again = UrlSet()
        # Of the URLs outside the crawl, all that are checked, and those that are checked with
        # their fragments.
        self._checks, self._fragments = UrlSet(), UrlSet()
        self.raised: list[tuple[int, int]] = []

    def __len__(self) -> int:
        pages = len(self._done) + len(self._left) + len(self._again)
        return pages + len(self._checks) + len(self._fragments)

    def __contains__(self, url: str) -> bool:
        key = seen_key(url)
        return key in self._done or key in self._left

    def known(self, urls: Collection[str]) -> set[str]:
        """Return those of `urls` that were admitted with the full budget of redirects."""
        # Nearly all links of nearly all pages are known, and equal to their keys: one step in C
        # finds these, at a quarter of the cost of a look-up for each.
        known = self._done.intersection(urls)
        if len(known) < len(urls):
            others = [url for url in urls if url not in known and "%" in url]
            known.update([url for url in others if seen_key(url) in self._done])
        return known

    def admit_all(self, jobs: Iterable[Job]) -> list[Job]:
        """Return the jobs to fetch for `jobs`, as `admit` does for one."""
        fresh = []
        for job in jobs:
            if (new := self.admit(job)) is not None:
                fresh.append(new)
        return fresh

    def admit(self, job: Job) -> Job | None:
        """Return the job to fetch for `job`: itself, the target of a chain that was cut, or None.

        Record its URL as seen. A sitemap counts apart from a page of the same URL.
        """
        if job.purpose is Purpose.SITEMAP or job.purpose is Purpose.SEEDS:
            if job.url in self._sitemaps:
                return None
            self._sitemaps.add(job.url)
            return job
        if job.purpose in CHECKS:
            return self._admit_check(job)
        if job.again:
            key = seen_key(job.url)
            if job.redirects >= 0 and key not in self._again and job.url in self:
                self._again.add(key)
                return job
            job = replace(job, again=False)
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

    def _admit_check(self, job: Job) -> Job | None:
        """Return the check to make; None if its URL is a page, or was checked as well as that.

        A URL that was checked without its fragments is admitted again.
        """
        key = seen_key(job.url)
        if job.redirects < 0 or key in self._fragments or job.url in self:
            return None
        checked = key in self._checks
        if job.purpose is Purpose.FRAGMENTS:
            self._fragments.add(key)
            return replace(job, again=checked)
        if checked:
            return None
        self._checks.add(key)
        return job

    def number(self, url: str, number: int) -> None:
        """Record the `number` under which a `url` was stored when it was admitted.

        Call it at least for URLs with less than the full budget.
        """
        key = seen_key(url)
        if key in self._left:
            self._numbers[key] = number

    def successors(self, settlement: Settlement) -> Sequence[Job]:
        """Return the successors of a settlement, with the redirects that they have left.

        A link has the full budget. The target of a redirect has one less than the URL that
        redirects. If several paths lead to that URL, the one with the most redirects left counts.
        """
        if not isinstance(settlement.outcome, Redirect | Failure):
            return settlement.successors
        url = settlement.job.url
        followed = [
            self.follow(url, job) if job.referrer == url and job.purpose not in CHECKS else job
            for job in settlement.successors
        ]
        # A URL that was admitted again has the redirects that its own chain has left.
        return settlement.successors if settlement.job.again else followed

    def follow(self, url: str, job: Job) -> Job:
        """Record that `url` redirects to `job`; return the job with the redirects it has left."""
        key = seen_key(url)
        if key not in self._left:
            return job
        self._hops[key] = job.url
        return replace(job, redirects=max(job.redirects, self._left[key] - 1))

    def restore(self, rows: Iterable[tuple[int, str, int]]) -> None:
        """Add `rows` of URLs that earlier runs admitted: number, URL, and redirects left."""
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

    def restore_others(self, others: Iterable[tuple[str, Purpose]]) -> None:
        """Add `others` that were admitted: URLs of sitemaps and checks, each with its purpose."""
        for url, purpose in others:
            if purpose is Purpose.SITEMAP:
                self._sitemaps.add(url)
            else:
                known = self._checks if purpose is Purpose.CHECK else self._fragments
                known.add(seen_key(url))

    def restore_again(self, urls: Iterable[str]) -> None:
        """Add the `urls` that were admitted again and need not be once more."""
        self._again.update(map(seen_key, urls))

    def restore_hops(self, hops: Iterable[tuple[str, str]]) -> None:
        """Add `hops`, redirects of earlier runs: URL and target. Call it after `restore`."""
        for url, target in hops:
            key = seen_key(url)
            if key in self._left:
                self._hops[key] = target
