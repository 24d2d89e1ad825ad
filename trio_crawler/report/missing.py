"""Red links: links of a wiki to pages that do not exist yet."""

from __future__ import annotations

import re
from heapq import nsmallest

from trio_crawler.model import Outcome, Page, Reason
from trio_crawler.page.url_set import UrlSet
from trio_crawler.report.readable import readable
from trio_crawler.report.summary import is_good
from trio_crawler.report.visible import count

_LISTED = 20
_KEPT = 10_000

# MediaWiki: /index.php?title=Name&action=edit&redlink=1, and veaction=edit.
_RED = "redlink=1"
_is_red = re.compile(r"\?(?:[^#]*&)?redlink=1(?:&|$)").search
# DokuWiki: /doku.php?id=name, with rel=nofollow if there is no such page.
_PLAIN = "doku.php?id="
_is_plain = re.compile(r"/doku\.php\?id=[^&]+$").search


def is_red_link(url: str, *, nofollow: bool = False) -> bool:
    """Whether a link says by its URL that the wiki has no such page.

    That is said by `redlink=1` (MediaWiki); and with `nofollow`, which is whether the link has
    rel=nofollow, by the address of a page of DokuWiki.
    """
    if _RED in url:
        return _is_red(url) is not None
    return nofollow and _PLAIN in url and _is_plain(url) is not None


class MissingPages:
    """The red links of a crawl, each with a page that links to it.

    The first 10,000 are kept, by their URLs; all are counted.
    """

    def __init__(self) -> None:
        self._referrers: dict[str, str] = {}
        self._seen = UrlSet()
        self._total = 0
        # Pages of DokuWiki that exist: a link to them is not red, although it says nofollow.
        self._fetched = UrlSet()

    def __repr__(self) -> str:
        return f"<MissingPages: {self._total}>"

    def add(self, outcome: Outcome) -> None:
        """Record one outcome."""
        if not isinstance(outcome, Page):
            return
        if _PLAIN in outcome.url and is_good(outcome):
            self._fetched.add(outcome.url)
        # ▶ One string is searched ten times as fast as its hundred parts.
        if _RED in "\n".join(outcome.links):
            for url in outcome.links:
                if is_red_link(url):
                    self._keep(url, outcome.url)
        for url, reason in outcome.rejected:
            if is_red_link(url, nofollow=reason is Reason.REL_NOFOLLOW):
                self._keep(url, outcome.url)

    def _keep(self, url: str, page: str) -> None:
        if url not in self._seen:
            self._seen.add(url)
            self._total += 1
        known = self._referrers
        known[url] = min(page, known.get(url, page))
        if len(known) > 2 * _KEPT:
            self._referrers = {each: known[each] for each in nsmallest(_KEPT, known)}

    def lines(self, full: bool) -> list[str]:
        """Return a section of the pages that do not exist yet."""
        found = sorted(url for url in self._referrers if url not in self._fetched)
        total = self._total - (len(self._referrers) - len(found))
        if not total:
            return []
        listed = found if full else found[:_LISTED]
        lines = [f"Pages that do not exist yet ({count(total)})"]
        lines += (f"  {readable(url)} from {readable(self._referrers[url])}" for url in listed)
        if total > len(listed):
            how = "" if full else ", use -v to list all"
            lines.append(f"  and {count(total - len(listed))} more{how}")
        return lines
