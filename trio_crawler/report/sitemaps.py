"""What became of the sitemaps, and how a site's pages and its sitemaps differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from trio_crawler.model import Listing, Sitemap
from trio_crawler.page.urls import authority
from trio_crawler.report.sections import section
from trio_crawler.report.shortlist import Shortlist
from trio_crawler.report.units import count
from trio_crawler.report.visible import visible

Listings: TypeAlias = Callable[[str], Listing | None]
Urls: TypeAlias = Shortlist[tuple[str]]


def summary(sitemaps: Sequence[Sitemap], most: int | None, why: bool = False) -> list[str]:
    """Count the sitemaps and what they list, and name those that could not be read whole.

    With `why` what they list and may not is named, too.
    """
    if not sitemaps:
        return []
    # What an index names are sitemaps.
    pages = [sitemap for sitemap in sitemaps if sitemap.kind != "index"]
    entries = _entries(sum(sitemap.entries for sitemap in pages))
    new = f"{count(sum(sitemap.admitted for sitemap in pages))} of them new"
    refused = sorted({(each.reason, each.url) for sitemap in pages for each in sitemap.refused})
    beside = f", {count(len(refused))} refused" if refused else ""
    hint = " (--why lists them)" if refused and not why else ""
    lines = [f"Sitemaps: {count(len(sitemaps), 'sitemap')}, {entries}, {new}{beside}{hint}"]
    if why:
        lines += [f"  {reason} {visible(url)}" for reason, url in refused]
    flawed = sorted((sitemap for sitemap in sitemaps if sitemap.flaws), key=_url)
    for sitemap in flawed[:most]:
        lines += _flawed(sitemap)
    beyond = len(flawed) - len(flawed[:most])
    return lines + ([f"  and {count(beyond)} more, use -v to list all"] if beyond else [])


def orphans(found: Iterable[str], listing: Listings, most: int | None, early: bool) -> list[str]:
    """List the pages that only a sitemap leads to, among those that no page links to."""
    return _told("Orphans", _shortlist((url for url in found if listing(url)), most), early)


def unlisted(
    pages: Sequence[str],
    sitemaps: Sequence[Sitemap],
    listing: Listings,
    most: int | None,
    early: bool,
) -> list[str]:
    """List the pages that no sitemap lists, of hosts that have one."""
    found = [page for page in pages if not listing(page)]
    hosts = {authority(sitemap.url) for sitemap in sitemaps if sitemap.kind not in ("", "index")}
    if len(found) < len(pages):
        # A host's sitemap may lie on another host.
        hosts.update(authority(page) for page in pages if listing(page))
    return _told("Unlisted", _shortlist((p for p in found if authority(p) in hosts), most), early)


def _shortlist(urls: Iterable[str], most: int | None) -> Urls:
    kept: Urls = Shortlist(most)
    for url in urls:
        kept.add((url,))
    return kept


def _told(title: str, found: Urls, early: bool) -> list[str]:
    lines = (visible(url) for (url,) in found.items)
    return section(f"{title} so far" if early else title, found.total, lines, found.beyond)


def _flawed(sitemap: Sitemap) -> list[str]:
    named = "(given)" if sitemap.referrer is None else f"from {visible(sitemap.referrer)}"
    detail = [visible(sitemap.detail)] if sitemap.detail else []
    about = [*detail, named]
    flaws = ", ".join(sitemap.flaws)
    return [f"  {flaws} {visible(sitemap.url)}", *(f"      {line}" for line in about)]


def _entries(number: int) -> str:
    return f"{count(number)} {'entry' if number == 1 else 'entries'}"


def _url(sitemap: Sitemap) -> str:
    return sitemap.url
