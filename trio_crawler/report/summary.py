"""The counters of a crawl, and the few outcomes worth a line of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from trio_crawler.model import Failure, Outcome, Page, Reason, Redirect, Refused, Skipped
from trio_crawler.page.urls import origin
from trio_crawler.report.indexable import NOT_MODIFIED, is_elsewhere, is_html, is_indexable
from trio_crawler.report.shortlist import Shortlist

_LISTED = 20
_SLOWEST = 5
_HINTS = 5
_LOST = frozenset({Reason.HOST_GIVEN_UP, Reason.ROBOTS_UNAVAILABLE})
_CUT = (Reason.PAGE_BUDGET, Reason.TIME_BUDGET, Reason.STOPPED)
# How a fault begins that kept robots.txt away, and with it every URL of the origin.
_OF_ROBOTS = "robots.txt: "
_NO_ROBOTS = "the server is busy or out of order"


class Tally:
    """Count outcomes under the chapter's keys, and keep what the report lists.

    `counters` has `fail`, `fail_<reason>`, `redirect`, `html`, `html_bytes`, `other`,
    `other_bytes`, `unchanged`, `error`, `error_bytes`, `status_<code>`, `skipped`,
    `skipped_<reason>`, `refused` and `refused_<reason>` (a refused URL counts once for each page
    it is on). A status of 2xx is `html` or `other` by its type, 304 is `unchanged`; every other
    page is an `error`. `duplicate`, `noindex` and `canonical` count the pages that are one, ask
    not to be indexed, and name another page as their canonical one; `indexable` are the URLs of
    the html pages that do none of that.

    `redirects` holds (url, status, target, reason of refusal or ""), `flaws` (url, reasons),
    `duplicates` (url, url of the first), `slowest` (minus seconds, url), `away` the first
    redirects that left the site. With `full` the first three hold all there were; with `why`
    `refused` holds every refused URL under its reason, with the least of the URLs that lead to it.

    `given_up` counts by origin and reason what was not asked for after a host was given up.
    `robots_lost` says for each origin why its robots.txt could not be had; `barred` are the
    origins whose robots.txt forbade what a seed, a redirect or another host leads to.
    """

    def __init__(self, why: bool = False, full: bool = False) -> None:
        most = None if full else _LISTED
        self.pages = 0
        self.counters: Counter[str] = Counter()
        self.redirects: Shortlist[tuple[str, int, str, str]] = Shortlist(most)
        self.flaws: Shortlist[tuple[str, str]] = Shortlist(most)
        self.duplicates: Shortlist[tuple[str, str]] = Shortlist(most)
        self.slowest: Shortlist[tuple[float, str]] = Shortlist(_SLOWEST)
        self.away: Shortlist[tuple[str, str]] = Shortlist(_HINTS)
        self.refused: dict[Reason, dict[str, str]] = {}
        self.indexable: list[str] = []
        self.given_up: Counter[tuple[str, str]] = Counter()
        self.robots_lost: dict[str, str] = {}
        self.barred: set[str] = set()
        self._why = why

    def __repr__(self) -> str:
        return f"<Tally {dict(self.counters)}>"

    @property
    def ended(self) -> str:
        """Say in a phrase why the crawl stopped early, as far as outcomes tell."""
        over = Reason.TIME_BUDGET
        late = self.counters[f"skipped_{over}"] + self.counters[f"refused_{over}"]
        return "the time allowed was over" if late else ""

    @property
    def cut(self) -> bool:
        """Tell whether the crawl left something out for its budgets, or was stopped."""
        kinds = ("skipped", "refused")
        return any(self.counters[f"{kind}_{reason}"] for kind in kinds for reason in _CUT)

    @property
    def lost(self) -> int:
        """Count the hosts that were given up with URLs that are skipped, not failed."""
        return sum(reason in _LOST for _, reason in self.given_up)

    def add(self, outcome: Outcome) -> None:
        """Count one outcome."""
        match outcome:
            case Page():
                self._add_page(outcome)
            case Redirect():
                self._add_redirect(outcome)
            case Failure():
                self._add_failure(outcome)
            case Skipped():
                self._add_skipped(outcome)

    def _count(self, kind: str, reason: Reason) -> None:
        self.counters[kind] += 1
        self.counters[f"{kind}_{reason}"] += 1

    def _add_page(self, page: Page) -> None:
        self.pages += 1
        kind = _kind(page)
        self.counters[kind] += 1
        if kind != "unchanged":
            self.counters[f"{kind}_bytes"] += page.size
        if kind == "error":
            self.counters[f"status_{page.status}"] += 1
        self._add_hints(page)
        self.slowest.add((-page.seconds, page.url))
        if page.flaws:
            self.flaws.add((page.url, _flaws(page)))
        self._add_refused(page.url, page.refused)

    def _add_hints(self, page: Page) -> None:
        """Count what a page says of itself and of others."""
        if page.duplicate_of:
            self.counters["duplicate"] += 1
            self.duplicates.add((page.url, page.duplicate_of))
        if "noindex" in page.robots:
            self.counters["noindex"] += 1
        if is_elsewhere(page):
            self.counters["canonical"] += 1
        if is_indexable(page):
            self.indexable.append(page.url)

    def _add_failure(self, failure: Failure) -> None:
        self._count("fail", failure.reason)
        if not failure.tries:
            self.given_up[origin(failure.url), failure.reason] += 1
            if failure.detail.startswith(_OF_ROBOTS):
                why = failure.detail.removeprefix(_OF_ROBOTS)
                self.robots_lost[origin(failure.url)] = why or failure.reason

    def _add_skipped(self, skipped: Skipped) -> None:
        self._count("skipped", skipped.reason)
        if skipped.reason in _LOST:
            self.given_up[origin(skipped.url), skipped.reason] += 1
        if skipped.reason is Reason.ROBOTS_UNAVAILABLE:
            self.robots_lost[origin(skipped.url)] = _NO_ROBOTS
        elif skipped.reason is Reason.ROBOTS:
            self.barred.add(origin(skipped.url))

    def _add_redirect(self, redirect: Redirect) -> None:
        self.counters["redirect"] += 1
        reason = redirect.refused
        self.redirects.add((redirect.url, redirect.status, redirect.target, reason or ""))
        if reason is None:
            return
        self._add_refused(redirect.url, (Refused(redirect.target, reason),))
        if reason is Reason.ROBOTS:
            self.barred.add(origin(redirect.target))
        elif reason is Reason.OTHER_SITE:
            self.away.add((redirect.url, redirect.target))

    def _add_refused(self, referrer: str, links: Iterable[Refused]) -> None:
        for url, reason in links:
            self._count("refused", reason)
            if self._why:
                known = self.refused.setdefault(reason, {})
                known[url] = min(referrer, known.get(url, referrer))


def _kind(page: Page) -> str:
    if page.status == NOT_MODIFIED:
        return "unchanged"
    if not page.ok:
        return "error"
    return "html" if is_html(page) else "other"


def _flaws(page: Page) -> str:
    beyond = f" ({page.links_beyond:,} left out)"
    return ", ".join(
        flaw + (beyond if flaw is Reason.TOO_MANY_LINKS and page.links_beyond else "")
        for flaw in page.flaws
    )
