"""Traps: the thresholds at which endless URLs are rejected, and the counts of each host."""

# No `from __future__ import annotations` here: `typing.get_type_hints` would look the names up in
# `__module__`, which is set to another module.

import math
from collections.abc import Iterable, Sequence
from typing import Self

import msgspec

from trio_crawler.arguments import check_flag, check_number, public
from trio_crawler.model import Job, Reason
from trio_crawler.page.urls import directory, host, path
from trio_crawler.policy.news import Novelty, Queries, QueryOrder, Streak
from trio_crawler.policy.url_shapes import (
    DATE,
    GENERATED,
    key_of,
    keys_of_one_host,
    repeats,
    segments,
)

FEW = 20
"""Up to this many URLs, the pages of a pattern are not examined: so few are not a trap."""

# Pages so many links from a seed are examined: a chain of links may have no end.
_FAR = 20
# The weight of a page far away whose texts differ from earlier ones only in their numbers.
_UNLIKE = 0.1
# A host is examined for its queries when it has more URLs with one.
_MANY_QUERIES = 8
# So many URLs of each pattern are fetched even if a parameter is left out elsewhere.
_EACH = 2
_COPIES = 20.0
# Numbers of 6 or 8 digits are dates if so many times more of them look like dates than not.
_MOSTLY = 9
# The weight of a page without links of its own pattern, such as the days of a calendar.
_ENDS = 0.1


class DuplicateBodies:
    """The first URL of each body of one host.

    In one directory the links of two equal bodies lead to the same pages (except for links that
    are only a query), so they are followed once. In another directory relative links lead
    elsewhere, and a mirror of a part of a site must not lose its pages, so they are followed
    there too, in at most `copies` directories. A body in more directories comes from a server
    that answers every request alike.

    `first` has the first URL of each body by the 64-bit hash of the body, or of its SHA-1: a
    collision among 10^9 bodies has a chance of 1 in 30.
    """

    __slots__ = ("_copies", "_directories", "first")

    def __init__(self, copies: float) -> None:
        self._copies = copies
        self.first: dict[int, str] = {}
        self._directories: dict[int, set[str]] = {}

    def original(self, key: int, url: str) -> str | None:
        """Return the first URL with this body; None if the links of `url` are to be followed."""
        first = self.first.setdefault(key, url)
        if first == url:
            return None
        here, followed = directory(url), self._directories.get(key, {directory(first)})
        if here in followed or len(followed) >= self._copies:
            return first
        self._directories[key] = followed | {here}
        return None


@public("trio_crawler")
class Traps(msgspec.Struct, frozen=True):
    """The thresholds above which URLs are rejected as a trap; each may be `math.inf`.

    `max_url` counts the characters of a URL; `max_segments` the segments of its path;
    `max_repeats` how many times in a row a directory, or a run of directories, may come;
    `max_hops` the links from a seed. By default there is no such bound, but the links of pages
    more than 20 links from a seed are rejected after `barren` such pages in a row without new
    text, unless `Limits.max_depth` is set: a list that goes on and brings something has an end.

    The pattern of a URL is the URL without its numbers and the values of its parameters. A
    pattern is rejected for the rest of the crawl after a number of its pages in a row linked to
    new URLs of the same pattern and had no new text. That number is `barren` for a pattern of
    dates or random tokens, where a page without such a link counts as a tenth. For all other
    patterns it is `barren_numbers`, since ordinary sites have pages that differ only in numbers;
    but a page whose links lead to the same distances as those of the pages before, at least three
    distances back and forth, counts as a tenth of `barren`, as for a calendar by `?day=5`.
    A parameter of a query is rejected after `barren_query` pages in a row with it that brought
    neither new text nor new links, such as a filter whose articles are all known, or after 8 if
    its values are URLs, such as `login?next=/a`. If it has brought something on many pages, it is
    rejected after twice as many that bring nothing. One of 50 such URLs is still fetched, and the
    parameter is followed again as soon as one brings something. Two URLs of each pattern are
    always fetched.
    A pattern is also rejected after `per_pattern` URLs, and a host after `per_host` URLs on all of
    its ports. The links of pages with the same body are followed in `copies` directories.

    `session_ids` is whether session ids are removed from links. `permuted_queries` is whether a
    URL is rejected if it differs from another only in the order of its parameters. `duplicates` is
    whether the links of a page are rejected if another page had the same body.

    Raises TypeError or ValueError, naming the argument, for an invalid value, and ValueError for
    `copies` without `duplicates`.

    >>> Traps(max_segments=40, barren=500).max_url
    2083
    >>> Traps.off().per_host
    inf
    """

    max_url: float = 2_083
    max_segments: float = 20
    max_repeats: float = 2
    max_hops: float | None = None
    barren: float = 100
    barren_numbers: float = 50_000
    barren_query: float = 16
    per_pattern: float = 100_000
    per_host: float = 1_000_000
    copies: float = _COPIES
    session_ids: bool = True
    permuted_queries: bool = True
    duplicates: bool = True

    def __post_init__(self) -> None:
        check_number("max_segments", self.max_segments)
        if self.max_hops is not None:
            check_number("max_hops", self.max_hops)
        figures = ("max_url", "max_repeats", "barren", "barren_numbers", "barren_query")
        for name in (*figures, "per_pattern", "per_host", "copies"):
            check_number(name, getattr(self, name), least=1)
        for name in ("session_ids", "permuted_queries", "duplicates"):
            check_flag(name, getattr(self, name))
        if not self.duplicates and self.copies != _COPIES:
            raise ValueError("copies has no effect without duplicates: leave it out")

    @classmethod
    def off(cls) -> Self:
        """Return traps that reject no URL and change none."""
        figures = "max_url max_segments max_repeats max_hops barren barren_numbers barren_query"
        endless = dict.fromkeys([*figures.split(), "per_pattern", "per_host"], math.inf)
        return cls(**endless, session_ids=False, permuted_queries=False, duplicates=False)


class PatternYield:
    """The yield of one pattern: of its dates and random tokens, and apart of its mere numbers.

    The pages of many numbers must not count against the dates of the pattern, whose limit is far
    lower. The limits are of pages in a row without new text, as in `Traps`.
    """

    __slots__ = ("_dates", "_ended", "_limits", "_numbers", "_streaks", "is_over")

    def __init__(self, barren: float, barren_numbers: float) -> None:
        # By whether a URL is generated.
        self._limits = (barren_numbers, barren)
        self._streaks: list[Streak | None] = [None, None]
        self._ended = [False, False]
        # Whether some URLs of the pattern are a trap: then `is_barren` tells which.
        self.is_over = False
        # Pages whose URLs may have a date without separators, and those that have none.
        self._dates = self._numbers = 0

    def is_barren(self, url: str) -> bool:
        """Whether URLs such as this one are a trap."""
        if not self.is_over:
            return False
        start = url.index("/", 8)
        dated = self._dates > _MOSTLY * self._numbers and DATE.search(url, start) is not None
        return self._ended[dated or GENERATED.search(url, start) is not None]

    def add(self, url: str, body: bytes, links: Sequence[str], *, leads_on: bool) -> None:
        """Record a page; `leads_on` is whether it links to new URLs of this pattern."""
        start = url.index("/", 8)
        dated = DATE.search(url, start) is not None
        self._dates += dated
        self._numbers += not dated
        dated = dated and self._dates > _MOSTLY * self._numbers
        generated = dated or GENERATED.search(url, start) is not None
        if self._ended[generated] or not (generated or leads_on):
            # Of URLs that are a trap no more pages are examined, so the effort is bounded.
            return
        streak = self._streaks[generated] = self._streaks[generated] or Streak()
        streak.add(url, body, 1.0 if leads_on else _ENDS, links)
        if streak.barren >= self._limits[generated] or streak.steady >= self._limits[True]:
            self._ended[generated], self._streaks[generated] = True, None
            self.is_over = True


class HostTraps:
    """The traps of one host: URL counts, patterns, queries, and first bodies.

    All URLs are normalised http or https URLs. A body takes 90 bytes of memory, a pattern 100, a
    URL with several parameters 140, and a pattern with thousands of pages up to 0.4 MiB. `novelty`
    is shared by the hosts of a crawl.
    """

    __slots__ = (
        "_asked",
        "_bodies",
        "_count",
        "_far",
        "_novelty",
        "_orders",
        "_patterns",
        "_queries",
        "_traps",
        "_yields",
    )

    def __init__(self, traps: Traps, *, novelty: Novelty | None = None) -> None:
        self._traps = traps
        self._novelty = Novelty() if novelty is None else novelty
        self._count = 0
        # The URLs with a query that were let through.
        self._asked = 0
        # The pages in a row, far from a seed, without new text.
        self._far = 0.0
        # A pattern is kept as its hash. The rest is None until needed: most hosts have few pages.
        self._patterns: dict[int, int] = {}
        self._yields: dict[int, PatternYield] | None = None
        self._queries: Queries | None = None
        self._orders: QueryOrder | None = None
        self._bodies: DuplicateBodies | None = None

    def rejection(self, job: Job) -> Reason | None:
        """Return why a URL that is new to the crawl is rejected; None if it is let through.

        A URL that is let through is counted.
        """
        traps, url = self._traps, job.url
        slashes, has_query = url.count("/") - 2, "?" in url
        if len(url) > traps.max_url:
            return Reason.LONG_URL
        # A path has at most so many: the others are before the host, or in a query.
        if slashes > traps.max_segments and segments(path(url)) > traps.max_segments:
            return Reason.DEEP_PATH
        if slashes > traps.max_repeats and repeats(path(url), traps.max_repeats):
            return Reason.REPEATED_PATH
        far = job.depth > _FAR and self._far >= traps.barren
        if far if traps.max_hops is None else job.depth > traps.max_hops:
            return Reason.TOO_MANY_HOPS
        if self._orders is not None and self._orders.rejects(url, job.referrer):
            return Reason.PERMUTED_QUERY
        if (key := key_of(url)) is not None:
            known = self._yields.get(key) if self._yields else None
            if known is not None and known.is_over and known.is_barren(url):
                return Reason.NOTHING_NEW
            count = self._patterns.get(key, 0)
            if count >= traps.per_pattern:
                return Reason.PATTERN_BUDGET
            queries = self._queries
            if queries is not None and count >= _EACH and has_query and queries.left_out(url):
                return Reason.BARREN_QUERY
        if self._count >= traps.per_host:
            return Reason.HOST_BUDGET
        self._count += 1
        self._asked += has_query
        if has_query and traps.permuted_queries and "&" in url:
            self._orders = self._orders or QueryOrder()
            self._orders.keep(url)
        if key is not None:
            self._patterns[key] = count + 1
        return None

    def original(
        self, url: str, body: bytes, content_type: str, digest: bytes | None = None
    ) -> str | None:
        """Record a page with a 2xx status; return the URL that it is a copy of, or None.

        A copy has the same body as an earlier page of the host, and its links lead to the same
        pages. Only HTML with a body can be a copy. All bodies of a crawl are compared by their
        `digest`, or none is. For every page that is not a copy, call `record_links` too.
        """
        if not ((body or digest) and self._traps.duplicates and "html" in content_type.lower()):
            return None
        bodies = self._bodies = self._bodies or DuplicateBodies(self._traps.copies)
        key = hash(digest or body)
        # ▶ Nearly all bodies are new: a call for each takes three times as long.
        first = bodies.first.setdefault(key, url)
        return None if first is url else bodies.original(key, url)

    def queries(self) -> Queries | None:
        """Return what the queries of this host have brought; None if that does not matter."""
        if self._queries is None and self._traps.barren_query < math.inf:
            self._queries = Queries(self._traps.barren_query)
        return self._queries

    def left_out(self, url: str) -> Reason | None:
        """Return why a URL that was let through is not fetched after all; None if it is.

        Do not ask about seeds.
        """
        queries = self._queries
        if queries is None or "?" not in url or not queries.left_out(url):
            return None
        key = key_of(url)
        few = key is None or self._patterns.get(key, 0) <= _EACH
        return None if few else Reason.BARREN_QUERY

    def record_links(
        self,
        url: str,
        body: bytes,
        new: Iterable[str],
        links: Sequence[str] = (),
        *,
        depth: int = 0,
    ) -> None:
        """Record an HTML page: its text, and where it leads, may show that it is part of a trap.

        `new` has those of its `links` that are new to the crawl.
        """
        far = depth >= _FAR and self._traps.max_hops is None
        if not (self._patterns or far):
            return
        new, traps = list(new), self._traps
        if body and (far or self._asked > _MANY_QUERIES):
            news = self._novelty.add(id(self), body)
            if far:
                # Pages that differ only in their numbers may be honest: each counts as a tenth.
                weight = _UNLIKE if news.new else 1.0
                self._far = 0.0 if news.is_news else self._far + weight
            if "?" in url and self._asked > _MANY_QUERIES and (queries := self.queries()):
                queries.record(url, news=news.is_news or queries.leads_on(url, new), new=new)
        key = key_of(url)
        if key is None or self._patterns.get(key, 0) <= FEW:
            return
        if self._yields is None:
            self._yields = {}
        found = self._yields.get(key)
        if found is None:
            found = self._yields[key] = PatternYield(traps.barren, traps.barren_numbers)
        leads_on = bool(new) and any(key_of(link) == key for link in new)
        found.add(url, body, links, leads_on=leads_on)

    def record_nothing(self, url: str) -> None:
        """Record an answer that brought nothing: an error, or a redirect to a known URL."""
        if "?" in url and self._asked > _MANY_QUERIES and (queries := self.queries()):
            queries.record(url, news=False)

    def restore(self, urls: Sequence[str]) -> None:
        """Count URLs of this host that an earlier run let through, in that order.

        The budgets count all runs together, but the fingerprints of pages are lost: a pattern that
        was rejected as barren is let through again, until as many pages of this run have no new
        text.
        """
        self._count += len(urls)
        self._asked += sum("?" in url for url in urls)
        for url in urls if self._traps.permuted_queries else ():
            if "&" in url:
                self._orders = self._orders or QueryOrder()
                self._orders.keep(url)
        for key, count in keys_of_one_host(urls).items():
            self._patterns[key] = self._patterns.get(key, 0) + count

    def restore_bodies(self, bodies: Iterable[tuple[str, bytes]]) -> None:
        """Record the URLs and the SHA-1 of HTML pages of earlier runs that were not copies.

        Call it before any other body is recorded.
        """
        known = self._bodies = self._bodies or DuplicateBodies(self._traps.copies)
        for url, digest in bodies:
            key = hash(digest)
            if known.first.setdefault(key, url) is not url:
                known.original(key, url)


class TrapsByHost:
    """The traps of each host, which all of its ports share.

    `by_name` has those that were asked for, by the name of the host, and with each port.
    """

    def __init__(self, traps: Traps) -> None:
        self._traps = traps
        self._novelty = Novelty()
        self.by_name: dict[str, HostTraps] = {}

    def of(self, url: str) -> HostTraps:
        """Return the traps of the host of a normalised http(s) URL."""
        authority = url[url.index("/") + 2 : url.index("/", 8)]
        traps = self.by_name.get(authority)
        if traps is None:
            name = host(url)
            traps = self.by_name.get(name)
            if traps is None:
                traps = HostTraps(self._traps, novelty=self._novelty)
            self.by_name[name] = self.by_name[authority] = traps
        return traps
