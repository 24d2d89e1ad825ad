"""The counters of a crawl, and the few outcomes worth a line of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from trio_crawler.model import Failure, Outcome, Page, Reason, Redirect, Refused, Skipped
from trio_crawler.report.shortlist import Shortlist

_LISTED = 20
_SLOWEST = 5
_HINTS = 5
_HTML = ("text/html", "application/xhtml+xml")


class Tally:
    """Count outcomes under the chapter's keys, and keep what the report lists.

    `counters` has `fail`, `fail_<reason>`, `redirect`, `html`, `html_bytes`, `other`,
    `other_bytes`, `error`, `error_bytes`, `status_<code>`, `skipped`, `skipped_<reason>`,
    `refused` and `refused_<reason>` (a refused URL counts once for each page it is on).
    A status of 2xx is `html` or `other` by its type; every other page is an `error`.

    `redirects` holds (url, status, target, reason of refusal or ""), `flaws` (url, reasons),
    `slowest` (minus seconds, url), `away` the first redirects that left the site. With `full`
    the first two hold all there were; with `why` `refused` holds every refused URL under its
    reason, with the least of the URLs that lead to it.
    """

    def __init__(self, why: bool = False, full: bool = False) -> None:
        most = None if full else _LISTED
        self.pages = 0
        self.counters: Counter[str] = Counter()
        self.redirects: Shortlist[tuple[str, int, str, str]] = Shortlist(most)
        self.flaws: Shortlist[tuple[str, str]] = Shortlist(most)
        self.slowest: Shortlist[tuple[float, str]] = Shortlist(_SLOWEST)
        self.away: Shortlist[tuple[str, str]] = Shortlist(_HINTS)
        self.refused: dict[Reason, dict[str, str]] = {}
        self._why = why

    def __repr__(self) -> str:
        return f"<Tally {dict(self.counters)}>"

    @property
    def ended(self) -> str:
        """Say in a phrase why the crawl stopped early, as far as outcomes tell."""
        over = Reason.TIME_BUDGET
        late = self.counters[f"skipped_{over}"] + self.counters[f"refused_{over}"]
        return "the time allowed was over" if late else ""

    def add(self, outcome: Outcome) -> None:
        """Count one outcome."""
        match outcome:
            case Page():
                self._add_page(outcome)
            case Redirect():
                self._add_redirect(outcome)
            case Failure(reason=reason):
                self._count("fail", reason)
            case Skipped(reason=reason):
                self._count("skipped", reason)

    def _count(self, kind: str, reason: Reason) -> None:
        self.counters[kind] += 1
        self.counters[f"{kind}_{reason}"] += 1

    def _add_page(self, page: Page) -> None:
        self.pages += 1
        kind = _kind(page)
        self.counters[kind] += 1
        self.counters[f"{kind}_bytes"] += len(page.body)
        if not page.ok:
            self.counters[f"status_{page.status}"] += 1
        self.slowest.add((-page.seconds, page.url))
        if page.flaws:
            self.flaws.add((page.url, _flaws(page)))
        self._add_refused(page.url, page.refused)

    def _add_redirect(self, redirect: Redirect) -> None:
        self.counters["redirect"] += 1
        reason = redirect.refused
        self.redirects.add((redirect.url, redirect.status, redirect.target, reason or ""))
        if reason is None:
            return
        self._add_refused(redirect.url, (Refused(redirect.target, reason),))
        if reason is Reason.OTHER_SITE:
            self.away.add((redirect.url, redirect.target))

    def _add_refused(self, referrer: str, links: Iterable[Refused]) -> None:
        for url, reason in links:
            self._count("refused", reason)
            if self._why:
                known = self.refused.setdefault(reason, {})
                known[url] = min(referrer, known.get(url, referrer))


def _kind(page: Page) -> str:
    if not page.ok:
        return "error"
    media_type = page.content_type.partition(";")[0].strip().lower()
    return "html" if media_type in _HTML else "other"


def _flaws(page: Page) -> str:
    beyond = f" ({page.links_beyond:,} left out)"
    return ", ".join(
        flaw + (beyond if flaw is Reason.TOO_MANY_LINKS and page.links_beyond else "")
        for flaw in page.flaws
    )
