"""The report of a crawl, for a terminal or a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from trio_crawler.model import Outcome, Sitemap, Statistics
from trio_crawler.report import hosts as of_hosts
from trio_crawler.report import sections
from trio_crawler.report import sitemaps as of_sitemaps
from trio_crawler.report.links import Links
from trio_crawler.report.sitemaps import Listings
from trio_crawler.report.summary import Tally

if TYPE_CHECKING:
    from trio_crawler.net.wire import WireStatistics
    from trio_crawler.policy.politeness import HostStatistics, Politeness

_REFERRERS = 10
_LISTED = 20


class Report:
    """Gather the outcomes of a crawl, in any order, and tell them as text.

    With `why` every refused URL is listed; with `full` so are all redirects, flaws, duplicates,
    referrers, and what sitemaps and links do not have in common, of which otherwise only the first
    are. It keeps no outcome and no body.
    """

    def __init__(self, why: bool = False, full: bool = False) -> None:
        self._why = why
        self._full = full
        self._most = None if full else _REFERRERS
        self._listed = None if full else _LISTED
        self._links = Links()
        self._tally = Tally(why, full)

    def __repr__(self) -> str:
        return f"<Report pages={self._tally.pages} {self._links!r}>"

    def add(self, outcome: Outcome) -> None:
        """Take in one outcome; each URL has one."""
        self._links.add(outcome)
        self._tally.add(outcome)

    @property
    def problems(self) -> int:
        """Count the broken links and the hosts that were given up.

        Broken are error statuses, failures, redirect loops and malformed hrefs.
        """
        return self._links.problems + self._tally.lost

    @property
    def nothing(self) -> bool:
        """Tell whether no page came at all, not even one with an error status."""
        return self._tally.pages == 0

    def text(
        self,
        statistics: Statistics,
        workers: int,
        *,
        seeds: Sequence[str],
        ended: str = "",
        insecure: Sequence[str] = (),
        wire: WireStatistics | None = None,
        politeness: Politeness | None = None,
        hosts: Sequence[HostStatistics] = (),
        sitemaps: Sequence[Sitemap] = (),
        listing: Listings | None = None,
        directory: str = "",
        spent: bool = False,
    ) -> str:
        """Write the report, without a line end after its last line.

        `ended` says in a phrase why a crawl stopped early; that its time was over is known from
        the outcomes. `insecure` are the hosts whose certificates were not verified. `politeness`,
        `hosts`, `sitemaps` and `listing` are what the crawler has under these names; `directory`
        keeps what waits, if the crawl has one, and the page budget may be `spent`. A full report
        tells of the connections too, if `wire` counts them, and of the slowest hosts. What came
        from the web is escaped (see `visible`), URLs are never cut, and the order does not depend
        on the crawl's.
        """
        tally = self._tally
        ended = ended or tally.ended
        parts = (
            sections.heading(seeds, insecure, politeness),
            *self._faults(seeds, listing),
            *self._coverage(seeds, sitemaps, listing, bool(ended)),
            *self._figures(hosts, politeness, wire),
            sections.finish(statistics, workers, ended, politeness, directory, spent),
            [*sections.hints(tally), *of_hosts.hints(tally, hosts, politeness)],
        )
        return "\n\n".join("\n".join(lines) for lines in parts if lines)

    def _faults(self, seeds: Sequence[str], listing: Listings | None) -> list[list[str]]:
        """Tell what is broken, and what is not as it should be."""
        tally = self._tally
        broken = self._links.broken(self._most, _source(seeds, listing))
        return [
            sections.broken_links(broken, self._full),
            of_hosts.given_up(tally, self._listed),
            sections.redirects(tally.redirects),
            sections.flaws(tally.flaws),
            sections.duplicates(tally.duplicates),
        ]

    def _figures(
        self,
        hosts: Sequence[HostStatistics],
        politeness: Politeness | None,
        wire: WireStatistics | None,
    ) -> list[list[str]]:
        """Tell what was slow, what was left out, and the totals."""
        tally = self._tally
        return [
            sections.slowest(tally.slowest),
            of_hosts.speeds(hosts, politeness) if self._full else [],
            sections.refused(tally, self._why),
            sections.skipped(tally.counters),
            sections.totals(tally.counters),
            sections.connections(wire) if wire and self._full else [],
        ]

    def _coverage(
        self,
        seeds: Sequence[str],
        sitemaps: Sequence[Sitemap],
        listing: Listings | None,
        early: bool,
    ) -> list[list[str]]:
        """Tell of the sitemaps, and of what they and the links do not have in common."""
        most, tally = self._listed, self._tally
        told = [of_sitemaps.summary(sitemaps, most, self._why)]
        if sitemaps and listing:
            early = early or tally.cut
            orphans = self._links.orphans(seeds)
            told.append(of_sitemaps.orphans(orphans, listing, most, early))
            told.append(of_sitemaps.unlisted(tally.indexable, sitemaps, listing, most, early))
        return told


def _source(seeds: Sequence[str], listing: Listings | None) -> Callable[[str], str | None]:
    """Tell which sitemap a URL is from that no page links to."""
    known = frozenset(seeds)

    def source(url: str) -> str | None:
        found = listing(url) if listing and url not in known else None
        return found.sitemap if found else None

    return source
