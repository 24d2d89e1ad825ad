"""The counters of a crawl, and the outcomes that its report lists."""

from __future__ import annotations

import re
from bisect import insort
from collections import Counter
from collections.abc import Iterable
from heapq import nsmallest
from typing import Generic, TypeVar

import httpx

from trio_crawler.model import (
    Failure,
    Outcome,
    Page,
    Purpose,
    Reason,
    Redirect,
    RejectedLink,
    Skipped,
)
from trio_crawler.page.urls import origin, seen_key
from trio_crawler.reason import NOT_WHOLE, Kind, of_kind
from trio_crawler.report.rejections import OPTIONS, Rejections
from trio_crawler.report.url_table import TextList

_MAX_LISTED = 20
_MAX_SLOWEST = 5
_KEPT_REDIRECTS = 1_000
_MAX_OFF_SITE = 5
_HTML = ("text/html", "application/xhtml+xml")
_NOT_MODIFIED = 304
_HOST_LOST = of_kind(Kind.LOST)
EARLY = of_kind(Kind.EARLY)
"""Why URLs are skipped when a crawl ends early."""

_UNAUTHORIZED = 401
_MAX_CHALLENGES = 2_000
_quoted = re.compile(r'"(?:[^"\\]|\\.)*"')
# The scheme of a challenge, before its parameters (RFC 9110, 11.6.1).
_schemes = re.compile(r"(?:^|,)\s*([A-Za-z][A-Za-z0-9-]{0,39})(?=\s*$|\s*,|\s+[^\s=,])").findall
_ROBOTS_ERROR = "the server is busy or out of order"


def is_good(page: Page) -> bool:
    """Whether the status is 2xx, or 304 (in a refresh: the page has not changed)."""
    return page.ok or page.status == _NOT_MODIFIED


def is_html(page: Page) -> bool:
    """Whether the Content-Type of a page is that of HTML."""
    kind = page.content_type
    return kind in _HTML or kind.partition(";")[0].strip().lower() in _HTML


def has_other_canonical(page: Page) -> bool:
    """Whether a page names another page as its canonical one."""
    return bool(page.canonical) and seen_key(page.canonical or "") != seen_key(page.url)


def is_indexable(page: Page) -> bool:
    """Whether a search engine may list a page.

    Such a page is good HTML and not a duplicate, has no "noindex", and names no other page as its
    canonical one.
    """
    if not is_html(page) or not is_good(page):
        return False
    return not (page.duplicate_of or "noindex" in page.robots or has_other_canonical(page))


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

    def __repr__(self) -> str:
        return f"<FirstItems {len(self._items)} of {self.total}>"

    def add(self, item: T) -> None:
        """Count an item, and keep it if it is among the first."""
        self.total += 1
        if self._limit is None:
            self._items.append(item)
        elif len(self._items) < self._limit:
            insort(self._items, item)
        elif self._items and item < self._items[-1]:
            self._items.pop()
            insort(self._items, item)

    @property
    def items(self) -> list[T]:
        """The items that were kept, sorted."""
        return sorted(self._items)

    @property
    def omitted(self) -> int:
        """The number of items that were not kept."""
        return self.total - len(self._items)


class Redirects(FirstItems[tuple[str, int, str, str]]):
    """The first redirects; one is discarded when its URL has another outcome.

    For that 1,000 are kept, or with the limit None all of them.
    """

    def __init__(self, limit: int | None) -> None:
        super().__init__(limit)
        self._by_url: dict[str, tuple[str, int, str, str]] = {}

    def add(self, item: tuple[str, int, str, str]) -> None:
        """Count a redirect, and keep it if it is among the first."""
        self.total += 1
        self._by_url[item[0]] = item
        if self._limit is not None and len(self._by_url) > 2 * _KEPT_REDIRECTS:
            first = nsmallest(_KEPT_REDIRECTS, self._by_url)
            self._by_url = {url: self._by_url[url] for url in first}

    def discard(self, url: str) -> None:
        """Remove a redirect that was added."""
        self.total -= 1
        self._by_url.pop(url, None)

    @property
    def items(self) -> list[tuple[str, int, str, str]]:
        """The first redirects, sorted."""
        return sorted(self._by_url.values())[: self._limit]

    @property
    def omitted(self) -> int:
        """The number of redirects that are not among them."""
        return self.total - len(self.items)


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
    canonical one; `indexable` has the URLs of the good HTML pages without any of these.

    `redirects` has (url, status, target, why the target was rejected or ""), `flaws` (url,
    reasons), `cut` (url, bytes that were read), `duplicates` (url, url of the first), `slowest`
    (minus seconds, url), `off_site` (url, target) of the first redirects that lead to another
    site. With `full` the first four are complete. `rejections` has the rejected links by reason
    and shape, and the URLs that a rule against endless sites left out when their turn came.

    `given_up` counts, by origin and reason, the URLs that were not requested because their host
    was given up. `robots_unavailable` has for each origin the reason why its robots.txt could not
    be fetched. `robots_blocked` has the origins whose robots.txt disallows a seed, the target of a
    redirect, or a URL that another host links to. `logins` has for each origin that answered with
    401 the scheme of authentication that it wants, "" for Basic or if that is unknown.
    """

    def __init__(self, why: bool = False, full: bool = False) -> None:
        limit = None if full else _MAX_LISTED
        self.pages = 0
        self.failed: Counter[Reason] = Counter()
        self.skipped: Counter[Reason] = Counter()
        self.rejected: Counter[Reason] = Counter()
        self.redirects = Redirects(limit)
        self.flaws: FirstItems[tuple[str, str]] = FirstItems(limit)
        self.cut: FirstItems[tuple[str, int]] = FirstItems(limit)
        self.duplicates: FirstItems[tuple[str, str]] = FirstItems(limit)
        self.slowest: FirstItems[tuple[float, str]] = FirstItems(_MAX_SLOWEST)
        self.off_site: FirstItems[tuple[str, str]] = FirstItems(_MAX_OFF_SITE)
        self.rejections = Rejections(why, full)
        self.indexable = TextList()
        self.given_up: Counter[tuple[str, str]] = Counter()
        self.robots_unavailable: dict[str, str] = {}
        self.logins: dict[str, str] = {}
        self.robots_blocked: set[str] = set()
        self._counters: Counter[str] = Counter()

    def __repr__(self) -> str:
        return f"<Summary {dict(self.counters)}>"

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
    def out_of_time(self) -> bool:
        """Whether URLs were left out because the time allowed was over."""
        return Reason.TIME_BUDGET in self.skipped or Reason.TIME_BUDGET in self.rejected

    @property
    def incomplete(self) -> bool:
        """Whether URLs were left out because a budget was used up or the crawl was stopped."""
        return any(reason in self.skipped or reason in self.rejected for reason in EARLY)

    @property
    def hosts_lost(self) -> int:
        """The number of hosts that were given up and whose URLs are skipped, not failed."""
        return sum(reason in _HOST_LOST for _, reason in self.given_up)

    def add(self, outcome: Outcome) -> None:
        """Count one outcome; one with `again` takes the place of a redirect that was counted."""
        if outcome.again:
            self._counters["again"] += 1
            self._counters["redirect"] -= 1
            if not self._counters["redirect"]:
                del self._counters["redirect"]
            self.redirects.discard(outcome.url)
        match outcome:
            case Page():
                self._add_page(outcome)
            case Redirect():
                self._add_redirect(outcome)
            case Failure():
                self._add_failure(outcome)
            case Skipped():
                self._add_skipped(outcome)

    def _add_page(self, page: Page) -> None:
        self.pages += 1
        kind = _kind(page)
        self._counters[kind] += 1
        if Reason.NOT_READ in page.flaws:
            self._counters["not_read"] += 1
        elif kind != "unchanged":
            self._counters[f"{kind}_bytes"] += page.size
        if Reason.TOO_LARGE in page.flaws:
            self.cut.add((page.url, page.size))
        if kind == "error":
            self._counters[f"status_{page.status}"] += 1
        if page.status == _UNAUTHORIZED:
            self.logins[origin(page.url)] = _login_scheme(page.headers)
        self._add_indexing(page)
        self.slowest.add((-page.seconds, page.url))
        if page.flaws and (reasons := _flaws(page)):
            self.flaws.add((page.url, reasons))
        self._add_rejected(page.url, page.rejected)

    def _add_indexing(self, page: Page) -> None:
        """Count whether a search engine may list the page, or why not."""
        if page.duplicate_of:
            self._counters["duplicate"] += 1
            self.duplicates.add((page.url, page.duplicate_of))
        if "noindex" in page.robots:
            self._counters["noindex"] += 1
        if has_other_canonical(page):
            self._counters["canonical"] += 1
        if is_indexable(page):
            self.indexable.append(page.url)

    def _add_failure(self, failure: Failure) -> None:
        self.failed[failure.reason] += 1
        if not failure.tries:
            self.given_up[origin(failure.url), failure.reason] += 1
            if failure.about is Purpose.ROBOTS:
                self.robots_unavailable[origin(failure.url)] = failure.detail or failure.reason

    def _add_skipped(self, skipped: Skipped) -> None:
        self.skipped[skipped.reason] += 1
        if skipped.reason in OPTIONS:
            # The rule ended only after the URL was let through.
            self.rejections.add(skipped.referrer or "", skipped.url, skipped.reason)
        if skipped.reason in _HOST_LOST:
            self.given_up[origin(skipped.url), skipped.reason] += 1
        if skipped.reason is Reason.ROBOTS_UNAVAILABLE:
            self.robots_unavailable[origin(skipped.url)] = _ROBOTS_ERROR
        elif skipped.reason is Reason.ROBOTS:
            self.robots_blocked.add(origin(skipped.url))

    def _add_redirect(self, redirect: Redirect) -> None:
        self._counters["redirect"] += 1
        reason = redirect.rejected
        self.redirects.add((redirect.url, redirect.status, redirect.target, reason or ""))
        if reason is None:
            return
        self._add_rejected(redirect.url, (RejectedLink(redirect.target, reason),))
        if reason is Reason.ROBOTS:
            self.robots_blocked.add(origin(redirect.target))
        elif reason is Reason.OTHER_SITE:
            self.off_site.add((redirect.url, redirect.target))

    def _add_rejected(self, referrer: str, links: Iterable[RejectedLink]) -> None:
        add = self.rejections.add
        for url, reason in links:
            self.rejected[reason] += 1
            add(referrer, url, reason)


def _kind(page: Page) -> str:
    if page.status == _NOT_MODIFIED:
        return "unchanged"
    if not page.ok:
        return "error"
    return "html" if is_html(page) else "other"


def _login_scheme(headers: httpx.Headers) -> str:
    """Return the first scheme of authentication that a 401 names; "" for Basic, and if none is."""
    challenges = ",".join(headers.get_list("www-authenticate"))[:_MAX_CHALLENGES]
    schemes = _schemes(_quoted.sub('""', challenges))
    if not schemes or any(scheme.lower() == "basic" for scheme in schemes):
        return ""
    return str(schemes[0])


def _flaws(page: Page) -> str:
    beyond = f" ({page.links_beyond:,} left out)"
    return ", ".join(
        flaw + (beyond if flaw is Reason.TOO_MANY_LINKS and page.links_beyond else "")
        for flaw in page.flaws
        if flaw not in NOT_WHOLE
    )
