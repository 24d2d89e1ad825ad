"""The report of a crawl, for a terminal or a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trio_crawler.model import Outcome, Statistics
from trio_crawler.report import sections
from trio_crawler.report.links import Links
from trio_crawler.report.tally import Tally

if TYPE_CHECKING:
    from trio_crawler.net.wire import WireStatistics

_REFERRERS = 10


class Report:
    """Gather the outcomes of a crawl, in any order, and tell them as text.

    With `why` every refused URL is listed; with `full` so are all redirects, flaws and
    referrers, of which otherwise only the first are. It keeps no outcome and no body.
    """

    def __init__(self, why: bool = False, full: bool = False) -> None:
        self._why = why
        self._full = full
        self._most = None if full else _REFERRERS
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
        """Count the broken links: error statuses, failures, redirect loops, malformed hrefs."""
        return self._links.problems

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
    ) -> str:
        """Write the report, without a line end after its last line.

        `ended` says in a phrase why a crawl stopped early; that its time was over is known from
        the outcomes. `insecure` are the hosts whose certificates were not verified. A full
        report tells of the connections too, if `wire` counts them. What came from the web is
        escaped (see `visible`), URLs are never cut, and the order does not depend on the crawl's.
        """
        tally = self._tally
        parts = (
            sections.heading(seeds, insecure),
            sections.broken_links(self._links.broken(self._most), self._full),
            sections.redirects(tally.redirects),
            sections.flaws(tally.flaws),
            sections.slowest(tally.slowest),
            sections.refused(tally, self._why),
            sections.skipped(tally.counters),
            sections.totals(tally.counters),
            sections.connections(wire) if wire and self._full else [],
            sections.finish(statistics, workers, ended or tally.ended),
            sections.hints(tally),
        )
        return "\n\n".join("\n".join(lines) for lines in parts if lines)
