"""The facts about a crawl that its report needs besides the outcomes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Protocol, runtime_checkable

from trio_crawler.arguments import (
    check_flag,
    check_function,
    check_kind,
    check_whole,
    public,
    several_of,
    several_strings,
)
from trio_crawler.model import Listing, Sitemap, Statistics
from trio_crawler.net.statistics import WireStatistics
from trio_crawler.policy.plan import Plan
from trio_crawler.policy.settings import HostStatistics, Politeness

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


@public("trio_crawler.report")
@dataclass(frozen=True, slots=True)
class CrawlFacts:
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
      not, the report says what was not checked.

    Raises TypeError or ValueError, naming the fact, for an invalid value.

    >>> counts = Statistics(admitted=1, failures=1)
    >>> facts = CrawlFacts(counts, workers=10, seeds=["https://e.org/"])
    >>> report = Report()
    >>> report.add(Failure("https://e.org/", Reason.NO_SUCH_HOST))
    >>> print(report.text(facts).splitlines()[0])
    Crawl of https://e.org/: no page was fetched, 1 broken link
    """

    statistics: Statistics
    workers: int
    _: KW_ONLY
    seeds: Sequence[str]
    ended: str = ""
    insecure: Sequence[str] = ()
    authorized: Sequence[str] | None = None
    wire: WireStatistics | None = None
    politeness: Politeness | None = None
    hosts: Mapping[str, HostStatistics] = field(default_factory=dict)
    sitemaps: Sequence[Sitemap] = ()
    listing: Callable[[str], Listing | None] | None = None
    directory: str = ""
    spent: bool = False
    cookies: bool | None = None
    credentials: bool | None = None
    checks: bool | None = None
    missing: Mapping[str, tuple[str, str] | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_whole("workers", self.workers)
        check_flag("spent", self.spent)
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
            object.__setattr__(self, name, values)


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
