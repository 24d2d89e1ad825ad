"""The links that a crawl left out because it is a guest: nofollow of any form, and robots.txt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from trio_crawler.model import Outcome, Page, Reason, Skipped
from trio_crawler.reason import Kind, of_kind
from trio_crawler.report.visible import count

_MAX_COUNTED = 100_000
_GUEST = of_kind(Kind.GUEST)
# These links would not have been followed anyway.
_OUTSIDE = of_kind(Kind.OUTSIDE)
_SENTENCES = {
    Reason.META_NOFOLLOW: "{asks} crawlers not to follow {its} links (robots meta nofollow)",
    Reason.HEADER_NOFOLLOW: "{asks} crawlers not to follow {its} links (X-Robots-Tag nofollow)",
    Reason.REL_NOFOLLOW: "{asks} crawlers not to follow links (rel=nofollow)",
    Reason.ROBOTS: "robots.txt disallows links{of}",
}
_START = {"asks": "The start page asks", "its": "its", "of": " of the start page"}
_STARTS = {"asks": "The start pages ask", "its": "their", "of": " of the start pages"}
_PAGES = {"asks": "Pages ask", "its": "their", "of": ""}


class LeftOut:
    """The distinct links that were left out for the sake of the host, by reason.

    `known` says whether a URL with this hash is in the crawl, since some other link to it was
    followed. At most 100,000 links are counted.
    """

    def __init__(self, known: Callable[[int], bool]) -> None:
        self._known = known
        # By the hash of the URL: a site decides how long its URLs are.
        self._links: dict[int, Reason] = {}
        self._skipped = 0
        self._pages = 0
        self._beyond = False
        self._other = False

    def add(self, outcome: Outcome) -> None:
        """Record an outcome."""
        barred = isinstance(outcome, Skipped) and outcome.reason is Reason.ROBOTS
        if outcome.depth and barred:
            # The robots.txt of its host was not known when it was found.
            self._skipped += 1
        elif outcome.depth:
            self._beyond = True
        if not isinstance(outcome, Page):
            return
        self._pages += 1
        for url, reason in outcome.rejected:
            if reason in _GUEST:
                self._add_link(hash(url), reason)
            elif reason not in _OUTSIDE:
                self._other = True

    @property
    def all(self) -> bool:
        """Whether the start pages have links, and all of them were left out.

        Links that lead outside of the crawl do not count.
        """
        return bool(self._pages and not self._beyond and not self._other and self._counts())

    def lines(self, seeds: int) -> list[str]:
        """Return a line for each reason, if more links were left out than pages were fetched.

        Also if no URL but the `seeds` was fetched.
        """
        counts = self._counts()
        if not self._pages or (self._beyond and counts.total() <= self._pages):
            return []
        words = _PAGES if self._beyond else _START if seeds == 1 else _STARTS
        beside = f", beside {count(self._pages, 'page')} fetched" if self._beyond else ""
        return [
            f"{_SENTENCES[reason].format(**words)}: {_links(number)} not followed{beside}; "
            + ("--ignore-robots" if reason is Reason.ROBOTS else "--ignore-nofollow")
            + (" follows it" if number == 1 else " follows them")
            for reason, number in sorted(counts.items(), key=_most_first)
        ]

    def _add_link(self, key: int, reason: Reason) -> None:
        if key in self._links or len(self._links) < _MAX_COUNTED:
            # The smallest, so that the order of the outcomes does not matter.
            self._links[key] = min(reason, self._links.get(key, reason))

    def _counts(self) -> Counter[Reason]:
        links = self._links.items()
        counts = Counter(reason for key, reason in links if not self._known(key))
        if self._skipped:
            counts[Reason.ROBOTS] += self._skipped
        return counts


def _most_first(item: tuple[Reason, int]) -> tuple[int, str]:
    return -item[1], item[0]


def _links(number: int) -> str:
    more = " or more" if number >= _MAX_COUNTED else ""
    return f"{count(number)}{more} {'link' if number == 1 else 'links'}"
