"""The batch: what has changed in a crawl, to be written by one transaction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trio_crawler.model import Listing, Outcome, Response, Sitemap

if TYPE_CHECKING:
    from trio_crawler.store.streams import Stream


@dataclass(slots=True)
class Batch:
    """Gather changes; the times are seconds since 1970, a number is that of a URL.

    `admitted` URLs are new: number, URL, "page" or "sitemap", depth, redirects left, referrer and
    priority. Numbers rise. `settled` ones have their outcome, whose URL, depth and referrer are
    those of the number. `sitemaps` are done: what came of it (None if it led elsewhere), and what
    it says of which URLs; the number is 0 for one that was not asked for. `tried` ones wait to be
    tried again, after so many tries. `fuller` names, by number or URL, what may take more
    redirects than it was admitted with. `robots` are the answers for the robots.txt of origins.
    `writes` are outcomes for streams. `retries` counts tries beyond the first.
    """

    admitted: list[tuple[int, str, str, int, int, str | None, float | None]] = field(
        default_factory=list
    )
    settled: list[tuple[int, float, Outcome]] = field(default_factory=list)
    sitemaps: list[tuple[int, Sitemap | None, list[tuple[str, Listing]]]] = field(
        default_factory=list
    )
    tried: list[tuple[int, int]] = field(default_factory=list)
    fuller: list[tuple[int, int | str]] = field(default_factory=list)
    robots: list[tuple[str, float, Response]] = field(default_factory=list)
    writes: list[tuple[Stream, list[Outcome]]] = field(default_factory=list)
    retries: int = 0
