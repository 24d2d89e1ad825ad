"""Traps: endless URLs that nobody made by hand, and where to turn back from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from trio_crawler.model import Job, Reason
from trio_crawler.policy.traps.duplicates import Copies
from trio_crawler.policy.traps.paths import path, repeats, segments
from trio_crawler.policy.traps.patterns import Harvest, is_made, key_of, keys, keys_of_one_host
from trio_crawler.policy.traps.query_order import Orders

FEW = 20
"""URLs of a pattern up to which its pages are not looked at: so few are no trap."""

_REMEMBERED = 65_536
# What is recalled, a part at a time: in the loops of C each URL takes half as long.
_AT_ONCE = 4_096
# What a page counts that leads to none of its own pattern, such as the days of a calendar.
_ENDS = 0.1


@dataclass(frozen=True, slots=True)
class Traps:
    """Say from where on URLs are a trap; every figure can be changed, or be infinite.

    `max_url` counts characters; `max_segments` the parts of a path; `max_repeats` how often
    directories, one or a run of them, may come in a row; `max_hops` links from a seed. A URL's
    pattern is what it shares with others but for numbers and the values of parameters. It is
    refused, for good, once so many pages of it in a row have led to new URLs of it and said
    nothing new: `barren` if it is one of dates or of random tokens (those that lead to none count
    a tenth there), else `barren_numbers`: honest sites have pages that differ only in numbers,
    too. Or once `per_pattern` URLs of it were let through; a host after `per_host` URLs. The links
    of one and the same body are followed in `copies` directories.

    Raises ValueError, naming the figure, for one that cannot be meant.
    """

    max_url: float = 2_083
    max_segments: float = 20
    max_repeats: float = 2
    max_hops: float = 20
    barren: float = 100
    barren_numbers: float = 50_000
    per_pattern: float = 100_000
    per_host: float = 1_000_000
    copies: float = 20

    def __post_init__(self) -> None:
        _at_least(0, max_segments=self.max_segments, max_hops=self.max_hops)
        _at_least(1, max_url=self.max_url, max_repeats=self.max_repeats, barren=self.barren)
        _at_least(1, barren_numbers=self.barren_numbers)
        _at_least(1, per_pattern=self.per_pattern, per_host=self.per_host, copies=self.copies)


class Watch:
    """Watch over one crawl: judge new URLs by what was let through and what came of it.

    All URLs are normalised ones of http or https. What is kept: 90 bytes for a body, 100 for a
    pattern, 140 for a URL with several parameters, up to 0.4 MiB for a pattern with thousands of
    pages, and the last URLs that were let through.
    """

    def __init__(self, traps: Traps) -> None:
        self._traps = traps
        self._last = _Last()
        self._orders = Orders()
        self._copies = Copies(traps.copies)
        # Of a pattern only the hash is kept.
        self._hosts: Counter[str] = Counter()
        self._patterns: Counter[int] = Counter()
        self._harvests: dict[int, Harvest] = {}
        self._barren: set[int] = set()

    def refusal(self, job: Job) -> Reason | None:
        """Decide whether a URL that is new to the crawl may enter it.

        What is let through is counted. It may be asked about again before it has entered: at
        least the last 65,536 URLs that were let through are known, and are so again.
        """
        if job.url in self._last:
            return None
        if reason := self._unlikely(job):
            return reason
        host, key = _host(job.url), key_of(job.url)
        if reason := self._spent(host, key):
            return reason
        self._let_through(job.url, host, key)
        return None

    def saw(self, url: str, body: bytes, content_type: str) -> str | None:
        """Note the page that came from a URL, for each answer with a status of 2xx.

        Returns the first URL of the host that had the very same body, if this page's links
        lead nowhere that those of the first do not. Only HTML counts; an empty body is no copy.
        Of the others `led` is to know what they lead to.
        """
        if not body or "html" not in content_type.lower():
            return None
        return self._copies.original(_host(url), url, body)

    def led(self, url: str, body: bytes, links: Iterable[str]) -> None:
        """Note the new URLs that an HTML page leads to: one of its own pattern may be a trap."""
        key = key_of(url)
        if key is None or self._patterns.get(key, 0) <= FEW or key in self._barren:
            return
        made = is_made(url)
        if any(key_of(link) == key for link in links):
            self._reap(key, url, body, 1.0, made)
        elif made:
            self._reap(key, url, body, _ENDS, made)

    def recall(self, urls: Iterable[str]) -> None:
        """Count URLs that were let through in an earlier run of the crawl, in that order.

        What their pages said is forgotten: a pattern that was refused as barren is let through
        again, until as many pages of this run have said nothing new. The budgets are those of
        all runs together.
        """
        rest = iter(urls)
        while some := list(islice(rest, _AT_ONCE)):
            self._last.update(some)
            self._orders.recall(some)
            hosts = Counter(map(_host, some))
            self._hosts.update(hosts)
            self._patterns.update(keys_of_one_host(some) if len(hosts) == 1 else keys(some))

    def recall_copies(self, bodies: Iterable[tuple[str, bytes]]) -> None:
        """Note which HTML pages came in an earlier run: their URLs, and SHA-1 digests of bodies.

        To be called before `saw`. Pages that were copies themselves are to be left out.
        """
        self._copies.outlast()
        for url, digest in bodies:
            self._copies.original_by_digest(_host(url), url, digest)

    def saw_again(self, url: str, digest: bytes, content_type: str) -> str | None:
        """Note a page that has not changed, by the SHA-1 of the body that it had; as `saw`.

        To be called only after `recall_copies`.
        """
        html = "html" in content_type.lower()
        return self._copies.original_by_digest(_host(url), url, digest) if html else None

    def _unlikely(self, job: Job) -> Reason | None:
        traps, names = self._traps, path(job.url)
        if len(job.url) > traps.max_url:
            return Reason.LONG_URL
        if segments(names) > traps.max_segments:
            return Reason.DEEP_PATH
        if repeats(names, traps.max_repeats):
            return Reason.REPEATED_PATH
        if job.depth > traps.max_hops:
            return Reason.TOO_MANY_HOPS
        return Reason.PERMUTED_QUERY if self._orders.refuses(job.url, job.referrer) else None

    def _spent(self, host: str, key: int | None) -> Reason | None:
        if key in self._barren:
            return Reason.NOTHING_NEW
        if key is not None and self._patterns.get(key, 0) >= self._traps.per_pattern:
            return Reason.PATTERN_BUDGET
        over = self._hosts.get(host, 0) >= self._traps.per_host
        return Reason.HOST_BUDGET if over else None

    def _let_through(self, url: str, host: str, key: int | None) -> None:
        self._last.add(url)
        self._orders.keep(url)
        self._hosts[host] += 1
        if key is not None:
            self._patterns[key] += 1

    def _reap(self, key: int, url: str, body: bytes, weight: float, made: bool) -> None:
        harvest = self._harvests.setdefault(key, Harvest())
        harvest.add(url, body, weight)
        if harvest.barren >= (self._traps.barren if made else self._traps.barren_numbers):
            # What is still on its way changes nothing any more: the effort stays bounded.
            self._barren.add(key)
            del self._harvests[key]


class _Last:
    """Know the last strings that were added, 65,536 at least and twice as many at most."""

    __slots__ = ("_before", "_now")

    def __init__(self) -> None:
        self._now: set[str] = set()
        self._before: set[str] = set()

    def __contains__(self, text: str) -> bool:
        return text in self._now or text in self._before

    def add(self, text: str) -> None:
        self.update((text,))

    def update(self, texts: Iterable[str]) -> None:
        if len(self._now) >= _REMEMBERED:
            self._before, self._now = self._now, set()
        self._now.update(texts)


def _host(url: str) -> str:
    return url.split("/", 3)[2]


def _at_least(least: int, **figures: float) -> None:
    for name, figure in figures.items():
        if not figure >= least:
            raise ValueError(f"{name} must be {least} or more, not {figure}")
