"""What a report is made from: the counters of a crawl, outcomes to list, and facts about it."""

from bisect import insort
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar, runtime_checkable

import msgspec
from msgspec.structs import force_setattr

from trio_crawler.arguments import (
    check_flag,
    check_function,
    check_kind,
    check_number,
    check_whole,
    public,
    several_of,
    several_strings,
)
from trio_crawler.ledger.ledger import Ledger
from trio_crawler.ledger.tables import (
    AGAIN,
    FAILURE,
    HTML,
    NO_URL,
    NOINDEX,
    OTHER_CANONICAL,
    PAGE,
    REDIRECT,
    ROBOTS,
    SKIPPED,
    TRIED,
    Row,
)
from trio_crawler.model import Listing, Reason, Sitemap, Statistics
from trio_crawler.net.statistics import WireStatistics
from trio_crawler.page.urls import authority, is_web, origin
from trio_crawler.policy.plan import Plan
from trio_crawler.policy.settings import HostStatistics, Politeness
from trio_crawler.reason import NOT_WHOLE, Kind, of_kind

EARLY = of_kind(Kind.EARLY)
"""Why URLs are skipped when a crawl ends early."""

_MAX_LISTED = 20
_MAX_SLOWEST = 5
_MAX_OFF_SITE = 5
_MOST_HOSTS = 50_000
_OTHER_HOSTS = "other hosts"
_HOST_LOST = of_kind(Kind.LOST)
_ROBOTS_ERROR = "the server is busy or out of order"

# Tuples of strings and numbers, which can be compared.
T = TypeVar("T", bound="tuple[str | float, ...]")


class FirstItems(Generic[T]):
    """The first items in sorted order, up to a limit; all others are only counted.

    With the limit None every item is kept. The order of the calls of `add` does not matter.
    """

    def __init__(self, limit: int | None) -> None:
        self.total = 0
        self._limit = limit
        self._items: list[T] = []

    def add(self, item: T) -> None:
        """Count an item, and keep it if it is among the first."""
        self.total += 1
        if self._limit is None:
            self._items.append(item)
        elif len(self._items) < self._limit or [item] < self._items[-1:]:
            insort(self._items, item)
            del self._items[self._limit :]

    @property
    def items(self) -> list[T]:
        """The items that were kept, sorted."""
        return sorted(self._items)

    @property
    def omitted(self) -> int:
        """The number of items that were not kept."""
        return self.total - len(self._items)


class HostCounts:
    """The outcomes of one host: `seconds` of the last attempt at each URL, `slow` of the pages."""

    __slots__ = ("bytes", "failures", "pages", "seconds", "slow")

    def __init__(self) -> None:
        self.pages = self.failures = self.bytes = 0
        self.seconds = self.slow = 0.0

    @property
    def mean(self) -> float:
        """The seconds that a page took."""
        return self.slow / self.pages if self.pages else 0.0


class Summary:
    """The counts of a crawl, under the keys of the chapter's report, and the outcomes to list.

    `failed`, `skipped` and `rejected` count by reason; a rejected URL counts once for each page
    that links to it. `counters` has `fail`, `fail_<reason>`, `redirect`, `html`, `html_bytes`,
    `other`, `other_bytes`, `unchanged`, `not_read`, `error`, `error_bytes`, `status_<code>`,
    `skipped`, `skipped_<reason>`, `rejected` and `rejected_<reason>`. A status of 2xx is `html`
    or `other` by its type, 304 is `unchanged`; `again` counts the URLs that were admitted again,
    which count by their last outcome; `not_read` counts the bodies that were left
    because of their type; every other page is an `error`. `duplicate`, `noindex` and
    `canonical` count the pages that are a duplicate, have "noindex", or name another page as their
    canonical one.

    `redirects` has (url, status, target, why the target was rejected or ""), `flaws` (url,
    reasons), `cut` (url, bytes that were read), `duplicates` (url, the first), `slowest` (minus
    seconds, url), `off_site` (url, target) of the first redirects that lead to another site; a
    target and the first of duplicates are numbers of `urls`. With `full` the first four are
    complete. `hosts` has the counts of each host and port, of 50,000 apart.

    `given_up` counts, by origin and reason, the URLs that were not requested because their host
    was given up. `robots_unavailable` has for each origin the reason why its robots.txt could not
    be fetched. `robots_blocked` has the origins whose robots.txt disallows a seed, the target of a
    redirect, or a URL that another host links to.
    """

    def __init__(self, ledger: Ledger, full: bool = False) -> None:
        limit = None if full else _MAX_LISTED
        self.failed: Counter[Reason] = Counter()
        self.skipped: Counter[Reason] = Counter()
        self.rejected = ledger.rejected
        self.redirects: FirstItems[tuple[str, int, int, str]] = FirstItems(limit)
        self.flaws: FirstItems[tuple[str, str]] = FirstItems(limit)
        self.cut: FirstItems[tuple[str, int]] = FirstItems(limit)
        self.duplicates: FirstItems[tuple[str, int]] = FirstItems(limit)
        self.slowest: FirstItems[tuple[float, str]] = FirstItems(_MAX_SLOWEST)
        self.off_site: FirstItems[tuple[str, int]] = FirstItems(_MAX_OFF_SITE)
        self.given_up: Counter[tuple[str, str]] = Counter()
        self.robots_unavailable: dict[str, str] = {}
        self.robots_blocked: set[str] = set()
        self.hosts: dict[str, HostCounts] = {}
        self.pages = ledger.kinds[PAGE]
        self._ledger = ledger
        # ▶ To read one of them takes up to 0.2 ms, unless it is near the one before.
        self.urls = ledger.urls.urls
        self._counters: Counter[str] = Counter()
        add = {
            PAGE: self._add_page,
            REDIRECT: self._add_redirect,
            FAILURE: self._add_failure,
            SKIPPED: self._add_skipped,
        }
        for url, row in ledger.ends(*add):
            add[row.kind](url, row)
            if row.flags & AGAIN:
                self._counters["again"] += 1

    @property
    def counters(self) -> Counter[str]:
        """All counts, under the keys of the chapter's report."""
        counters = self._counters.copy()
        by_kind = {"fail": self.failed, "skipped": self.skipped, "rejected": self.rejected}
        for kind, reasons in by_kind.items():
            if reasons:
                counters[kind] = reasons.total()
            counters.update({f"{kind}_{reason}": number for reason, number in reasons.items()})
        return counters

    @property
    def early(self) -> set[Reason]:
        """Why URLs were left out, of the reasons that end a crawl early."""
        return {each for each in EARLY if each in self.skipped or each in self.rejected}

    @property
    def hosts_lost(self) -> int:
        """The number of hosts that were given up and whose URLs are skipped, not failed."""
        return sum(reason in _HOST_LOST for _, reason in self.given_up)

    def _add_page(self, url: str, row: Row) -> None:
        counters, flags = self._counters, row.flags
        if row.status == 304:
            kind = "unchanged"
        elif not row.good:
            kind = "error"
            counters[f"status_{row.status}"] += 1
        else:
            kind = "html" if flags & HTML else "other"
        counters[kind] += 1
        flaws = self._ledger.flaws[row.code] if row.code else ()
        if Reason.NOT_READ in flaws:
            counters["not_read"] += 1
        elif kind != "unchanged":
            counters[f"{kind}_bytes"] += row.size
        if flaws:
            self._add_flaws(url, row, flaws)
        if row.target != NO_URL:
            counters["duplicate"] += 1
            self.duplicates.add((url, row.target))
        if flags & NOINDEX:
            counters["noindex"] += 1
        if flags & OTHER_CANONICAL:
            counters["canonical"] += 1
        self.slowest.add((-row.seconds, url))
        host = self._host(url, row)
        host.pages += 1
        host.bytes += row.size
        host.slow += row.seconds
        host.failures += row.status >= 400

    def _add_flaws(self, url: str, row: Row, flaws: tuple[Reason, ...]) -> None:
        if Reason.TOO_LARGE in flaws:
            self.cut.add((url, row.size))
        beyond = self._ledger.beyond.get(row.number, 0)
        left_out = f" ({beyond:,} left out)" if beyond else ""
        told = ", ".join(
            flaw + (left_out if flaw is Reason.TOO_MANY_LINKS else "")
            for flaw in flaws
            if flaw not in NOT_WHOLE
        )
        if told:
            self.flaws.add((url, told))

    def _add_redirect(self, url: str, row: Row) -> None:
        self._counters["redirect"] += 1
        self._host(url, row)
        reason = row.rejected
        self.redirects.add((url, row.status, row.target, reason or ""))
        if reason is Reason.ROBOTS:
            self.robots_blocked.add(origin(self.urls[row.target]))
        elif reason is Reason.OTHER_SITE:
            self.off_site.add((url, row.target))

    def _add_failure(self, url: str, row: Row) -> None:
        reason = row.reason or Reason.BAD_REPLY
        self.failed[reason] += 1
        self._host(url, row).failures += 1
        if not row.flags & TRIED:
            self.given_up[origin(url), reason] += 1
            if row.flags & ROBOTS:
                detail = self._ledger.details.get(row.number)
                self.robots_unavailable[origin(url)] = detail or reason

    def _add_skipped(self, url: str, row: Row) -> None:
        reason = row.reason or Reason.STOPPED
        self.skipped[reason] += 1
        if reason in _HOST_LOST:
            self.given_up[origin(url), reason] += 1
        if reason is Reason.ROBOTS_UNAVAILABLE:
            self.robots_unavailable[origin(url)] = _ROBOTS_ERROR
        elif reason is Reason.ROBOTS:
            self.robots_blocked.add(origin(url))

    def _host(self, url: str, row: Row) -> HostCounts:
        """Return the counts of the host of a URL that was asked for."""
        name = authority(url) if is_web(url) else _OTHER_HOSTS
        found = self.hosts.get(name)
        if found is None:
            if len(self.hosts) >= _MOST_HOSTS:
                name = _OTHER_HOSTS
            found = self.hosts.setdefault(name, HostCounts())
        found.seconds += row.seconds
        return found


# The facts about a crawl besides its outcomes.

_FLAG = (bool | None, "True, False or None")
_KINDS = (
    ("statistics", Statistics, "a Statistics"),
    ("ended", str, "a phrase"),
    ("directory", str, "the path of a directory as a str"),
    *((name, *_FLAG) for name in ("cookies", "credentials", "checks")),
    ("hosts", Mapping, "the hosts by name, as Crawler.hosts returns them"),
    ("missing", Mapping, "titles and headings by the origins of hosts"),
    ("wire", WireStatistics | None, "a WireStatistics"),
    ("politeness", Politeness | None, "a Politeness"),
)


class _Counted(msgspec.Struct, frozen=True):
    """The facts that may be given by their places."""

    statistics: Statistics
    workers: int


@public("trio_crawler.report")
class CrawlFacts(_Counted, frozen=True, kw_only=True):
    """The facts about a crawl that its report needs besides the outcomes; see `Report.text`.

    - `statistics`: the counts of the crawl, as `Crawler.statistics` and `History.statistics`
      return them;
    - `workers`: the number of workers;
    - `seeds`: the URLs that the crawl began with; the heading names the first;
    - `ended`: a phrase that says why the crawl ended early, "" if it did not. Leave it empty if
      the time budget was used up: the report finds that in the outcomes;
    - `insecure`: the hosts whose certificates were not verified;
    - `authorized`: the origins that got a user and a password, or a header Authorization. The
      report says for each 401 whether that was refused or is wanted. None if they are unknown;
    - `wire`: the counts of connections and bytes, for a full report; None if they are unknown;
    - `politeness`: the politeness of the crawl; None if it is unknown;
    - `hosts`: the hosts by name, as `Crawler.hosts` and `History.hosts` return them, for a full
      report and for hints about crawl delays;
    - `sitemaps`: the sitemaps that were read;
    - `listing`: a function that returns the sitemap entry of a URL, or None; without it the
      report has no orphans and no unlisted pages;
    - `directory`: the crawl directory, "" if there is none. The report counts the URLs that wait
      there;
    - `spent`: whether the page budget was used up, so that only a larger one continues the crawl;
    - `credentials`: whether cookies, a login or a certificate of the client were sent, None if
      that is unknown. If they were, the report says if the crawl seems to be logged out;
    - `cookies`: whether cookies were stored, None if that is unknown. If they were not, the report
      of a redirect loop says that a login may have needed them;
    - `missing`: by the origin of a host, title and first h1 of the page that it answers an
      invented URL with; None for one that answers with an error, as it should. The report says
      which pages look like such a page;
    - `checks`: whether links were checked besides the pages, None if that is unknown. If they were
      not, the report says what was not checked;
    - `cpu`: the seconds of CPU that the crawl took, 0 if they are unknown. If it was at work for
      most of its time, the report blames no host for that.

    Raises TypeError or ValueError, naming the fact, for an invalid value.

    >>> counts = Statistics(admitted=1, failures=1)
    >>> facts = CrawlFacts(counts, workers=10, seeds=["https://e.org/"])
    >>> report = Report()
    >>> report.add(Failure("https://e.org/", Reason.NO_SUCH_HOST))
    >>> print(report.text(facts).splitlines()[0])
    Crawl of https://e.org/: no page was fetched, 1 broken link
    """

    seeds: Sequence[str]
    ended: str = ""
    insecure: Sequence[str] = ()
    authorized: Sequence[str] | None = None
    wire: WireStatistics | None = None
    politeness: Politeness | None = None
    hosts: Mapping[str, HostStatistics] = {}
    sitemaps: Sequence[Sitemap] = ()
    listing: Callable[[str], Listing | None] | None = None
    directory: str = ""
    spent: bool = False
    cookies: bool | None = None
    credentials: bool | None = None
    checks: bool | None = None
    missing: Mapping[str, tuple[str, str] | None] = {}
    cpu: float = 0.0

    def __post_init__(self) -> None:
        check_whole("workers", self.workers)
        check_flag("spent", self.spent)
        check_number("cpu", self.cpu, least=0)
        for name, kind, wanted in _KINDS:
            check_kind(name, getattr(self, name), kind, wanted)
        if self.listing is not None:
            check_function("listing", self.listing, "a function from a URL to a Listing or None")
        lists = {
            "seeds": several_strings("seeds", self.seeds),
            "insecure": several_strings("insecure", self.insecure),
            "authorized": (
                self.authorized
                if self.authorized is None
                else several_strings("authorized", self.authorized)
            ),
            "sitemaps": several_of("sitemaps", self.sitemaps, Sitemap),
        }
        for name, values in lists.items():
            force_setattr(self, name, values)


@runtime_checkable
class Crawl(Protocol):
    """A crawl that knows the facts about itself, as a `Crawler` does."""

    plan: Plan

    @property
    def hosts(self) -> Mapping[str, HostStatistics]:
        """The hosts by name."""

    def statistics(self) -> Statistics:
        """Return the counts."""

    def sitemaps(self) -> Sequence[Sitemap]:
        """Return the sitemaps that were read."""

    def listing(self, url: str) -> Listing | None:
        """Return the sitemap entry of a URL, or None."""


def facts_of(crawl: CrawlFacts | Crawl) -> CrawlFacts:
    """Return the facts about a crawl, as far as it knows them itself."""
    check_kind("crawl", crawl, CrawlFacts | Crawl, "a Crawler or a CrawlFacts")
    if isinstance(crawl, CrawlFacts):
        return crawl
    plan, statistics = crawl.plan, crawl.statistics()
    return CrawlFacts(
        statistics,
        plan.workers,
        seeds=plan.seeds,
        politeness=plan.politeness,
        hosts=crawl.hosts,
        sitemaps=crawl.sitemaps(),
        listing=crawl.listing,
        spent=statistics.pages + statistics.failures >= plan.limits.max_pages,
        checks=plan.checks.any,
    )


def source_of(facts: CrawlFacts) -> Callable[[str], str | None]:
    """Return a function that finds the sitemap of a URL without links; None for a seed."""
    seeds, listing = frozenset(facts.seeds), facts.listing

    def source(url: str) -> str | None:
        found = listing(url) if listing and url not in seeds else None
        return found.sitemap if found else None

    return source
