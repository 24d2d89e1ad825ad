"""Red links: links of a wiki to pages that do not exist yet."""

from __future__ import annotations

import re
from heapq import nsmallest

from trio_crawler.ledger.ledger import RED_LINK, Ledger, numbers_of
from trio_crawler.model import Reason
from trio_crawler.report.readable import readable
from trio_crawler.report.visible import count

_LISTED = 20

# MediaWiki: /index.php?title=Name&action=edit&redlink=1, and veaction=edit.
_is_red = re.compile(r"\?(?:[^#]*&)?redlink=1(?:&|$)").search
# DokuWiki: /doku.php?id=name, with rel=nofollow if there is no such page.
_PLAIN = "doku.php?id="
_is_plain = re.compile(r"/doku\.php\?id=[^&]+$").search


def is_red_link(url: str, *, nofollow: bool = False) -> bool:
    """Whether a link says by its URL that the wiki has no such page.

    That is said by `redlink=1` (MediaWiki); and with `nofollow`, which is whether the link has
    rel=nofollow, by the address of a page of DokuWiki.
    """
    if RED_LINK in url:
        return _is_red(url) is not None
    return nofollow and _PLAIN in url and _is_plain(url) is not None


def missing_section(ledger: Ledger, full: bool) -> list[str]:
    """Return a section of the pages that do not exist yet, each with a page that links to it."""
    by_url, by_rel = set[int](), set[int]()
    for number, url in enumerate(ledger.urls.urls):
        if RED_LINK in url or _PLAIN in url:
            if is_red_link(url):
                by_url.add(number)
            elif is_red_link(url, nofollow=True):
                # Such a page may exist: then a link to it is not red, although it says nofollow.
                end = ledger.end(number)
                if end is None or not end.good:
                    by_rel.add(number)
    if not by_url and not by_rel:
        return []
    urls, referrers = ledger.urls.urls, dict[int, str]()
    for each in ledger.outlinks():
        hits = by_url.intersection(each.followed)
        for reason, packed in each.rejected.items():
            wanted = by_url | by_rel if reason == Reason.REL_NOFOLLOW else by_url
            hits |= wanted.intersection(numbers_of(packed))
        page = urls[each.page] if hits else ""
        for number in hits:
            referrers[number] = min(page, referrers.get(number, page))
    if not (total := len(referrers)):
        return []
    found = {urls[number]: page for number, page in referrers.items()}
    listed = sorted(found) if full else nsmallest(_LISTED, found)
    lines = [f"Pages that do not exist yet ({count(total)})"]
    lines += (f"  {readable(url)} from {readable(found[url])}" for url in listed)
    if total > len(listed):
        lines.append(f"  and {count(total - len(listed))} more, use -v to list all")
    return lines
