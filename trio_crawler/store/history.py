"""The history: a crawl directory for those who read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from trio_crawler.model import Listing, Outcome, Sitemap, Statistics
from trio_crawler.page.urls import seen_key
from trio_crawler.policy.politeness import HostStatistics
from trio_crawler.store import runs
from trio_crawler.store.changes import Change, changes
from trio_crawler.store.errors import StoreError
from trio_crawler.store.faults import shown
from trio_crawler.store.opening import opened_to_read
from trio_crawler.store.runs import Run as Run
from trio_crawler.store.shelf import owns
from trio_crawler.store.walk import Walk


class History:
    """Read a crawl directory, also while a crawl writes to it; `with` closes it.

    Nothing of the crawl is changed, and the directory may be read only. A walk is one way through
    the site, the first is 1; where none is named, the last is meant. One thread at a time may use
    it. Everything raises StoreError, if only for a directory without a crawl.
    """

    def __init__(self, directory: str | Path) -> None:
        self._directory = Path(directory)
        self._database = opened_to_read(self._directory)

    def __enter__(self) -> History:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<History of {shown(self._directory)}>"

    def close(self) -> None:
        """Close it; may be called again."""
        self._database.close()

    @property
    def runs(self) -> list[Run]:
        """Return all runs, of all walks."""
        return runs.runs_of(self._database)

    @property
    def walks(self) -> int:
        """Return how many walks there are, with the one that may not be finished."""
        (last,) = self._database.row("SELECT max(walk) FROM walks")
        return last or 0

    @property
    def meaning(self) -> Mapping[str, Any]:
        """Return the options that make this crawl what it is."""
        return runs.meaning_of(self._database)

    def owns(self, path: str | Path) -> bool:
        """Tell whether a file is the crawl's own: its database, its lock, or a stream of it."""
        return owns(self._directory, self._database, path)

    def outcomes(self, walk: int | None = None) -> Iterator[Outcome]:
        """Give the outcomes in the order of admission, the pages without bodies."""
        return self._walk(walk).outcomes()

    def statistics(self, walk: int | None = None) -> Statistics:
        """Count a walk, over all its runs."""
        return self._walk(walk).statistics()

    def sitemaps(self, walk: int | None = None) -> list[Sitemap]:
        """Return what came of the sitemaps."""
        return self._walk(walk).sitemaps()

    def listing(self, url: str, walk: int | None = None) -> Listing | None:
        """Return what the sitemaps say of a URL of an outcome."""
        return self._walk(walk).listing(seen_key(url))

    def hosts(self) -> list[HostStatistics]:
        """Return the hosts as the last run that came to its end has left them."""
        return runs.hosts_of(self._database)

    def changes(self) -> Iterator[Change]:
        """Compare the last walk with the one before; nothing comes if there is none.

        Of a walk that is not finished only what has ended is compared.
        """
        now = self.walks
        if now > 1:
            # Of its own: it takes a temporary table.
            with closing(opened_to_read(self._directory)) as database:
                yield from changes(database, now - 1, now)

    def _walk(self, walk: int | None) -> Walk:
        last = self.walks
        if walk is None:
            walk = last
        if not 1 <= walk <= last:
            raise StoreError(f"{shown(self._directory)}: it has {last} walks, and no walk {walk}")
        return Walk(self._database, walk)
