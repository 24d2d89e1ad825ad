"""Read a crawl directory: its runs and walks, their outcomes, and their changes."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Self

import httpx

from trio_crawler.arguments import check_flag, check_kind, check_path, check_whole, public
from trio_crawler.model import Listing, Outcome, Purpose, Sitemap, Statistics
from trio_crawler.page.urls import normalise, seen_key
from trio_crawler.policy.settings import HostStatistics
from trio_crawler.store.changes import Change, compare_walks
from trio_crawler.store.errors import StoreError, printable
from trio_crawler.store.opening import open_to_read
from trio_crawler.store.runs import Run, read_hosts, read_meaning, read_runs
from trio_crawler.store.streams import is_own_file
from trio_crawler.store.walk import Walk


@public("trio_crawler")
class History:
    """The contents of a crawl directory, also while a crawl writes to it; `with` closes it.

    A walk is one pass over the site; the first is 1. Methods with `walk=None` read the last walk.
    Nothing in the directory is changed, and it may be read-only. One thread at a time may use a
    History.

    Creating it raises StoreError if the directory has no crawl; every method raises StoreError if
    the directory cannot be read.

    >>> web = Web({"/": html("/a"), "/a": html()})
    >>> async def kept() -> None:
    ...     async with SqliteFrontier("site", meaning={}) as frontier:
    ...         await Crawler([web.url], fetch=web, frontier=frontier).crawl()
    >>> trio.run(kept)
    >>> history = History("site")
    >>> history.walks, history.runs[-1].how, history.statistics().pages
    (1, <End.FINISHED: 'finished'>, 2)
    >>> history.close()
    """

    def __init__(self, directory: str | Path) -> None:
        check_path("directory", directory)
        self._directory = Path(directory)
        self._database = open_to_read(self._directory)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<History of {printable(self._directory)}>"

    def close(self) -> None:
        """Close the directory; may be called again."""
        self._database.close()

    @property
    def runs(self) -> list[Run]:
        """All runs of all walks, oldest first."""
        return read_runs(self._database)

    @property
    def walks(self) -> int:
        """The number of walks, including one that is not finished."""
        (last,) = self._database.read_one(tuple[int | None], "SELECT max(walk) FROM walks")
        return last or 0

    @property
    def meaning(self) -> Mapping[str, Any]:
        """The options that define this crawl; a run with other values raises DifferentCrawl."""
        return read_meaning(self._database)

    def owns(self, path: str | Path) -> bool:
        """Whether `path` is a file of the crawl: its database, its lock, or one of its streams."""
        check_path("path", path)
        return is_own_file(self._directory, self._database, path)

    def outcomes(self, walk: int | None = None, *, brief: bool = False) -> Iterator[Outcome]:
        """Yield the outcomes of a walk, in the order of admission; the pages have no bodies.

        With `brief` the pages have no headers, `anchors`, `found` and `targets` either: a report
        needs none of them, and to read them takes longer than all the rest.
        """
        check_flag("brief", brief)
        return self._walk(walk).outcomes(found=not brief, brief=brief)

    def times(self, walk: int | None = None) -> Iterator[tuple[str, float]]:
        """Yield the URLs of a walk that were asked for, each with the Unix time of its outcome."""
        return self._walk(walk).times()

    def statistics(self, walk: int | None = None) -> Statistics:
        """Return the statistics of a walk, over all its runs."""
        return self._walk(walk).statistics()

    def sitemaps(self, walk: int | None = None) -> list[Sitemap]:
        """Return the sitemaps of a walk, in the order in which they were read."""
        return self._walk(walk).sitemaps()

    def listing(self, url: str | httpx.URL, walk: int | None = None) -> Listing | None:
        """Return the sitemap entry of a URL that has an outcome, or None.

        Raises ValueError if the URL is invalid by the WHATWG URL Standard.
        """
        check_kind("url", url, (str, httpx.URL), "a URL as a str or httpx.URL")
        return self._walk(walk).listing(seen_key(normalise(url)))

    def hosts(self) -> Mapping[str, HostStatistics]:
        """Return the hosts of the last walk by name, at the end of the last run that asked them.

        Their counts are the sums of all runs of the walk that were not killed.
        """
        return read_hosts(self._database)

    def waiting(self, walk: int | None = None) -> Iterator[str]:
        """Yield the URLs of a walk that wait for a later run, in the order of admission."""
        for rows in self._walk(walk).waiting():
            yield from (url for _, url, purpose, *_ in rows if purpose == Purpose.PAGE)

    def repeated(self, walk: int | None = None) -> int:
        """Return how many pages of a walk were fetched twice, to learn what differs each time."""
        return self._walk(walk).repeated()

    def changes(self) -> Iterator[Change]:
        """Yield the changes from the last walk but one to the last; none if there is one walk.

        If the last walk is not finished, only the URLs that have an outcome are compared.
        """
        last = self.walks
        if last > 1:
            # A connection of its own, because it creates a temporary table.
            with closing(open_to_read(self._directory)) as database:
                yield from compare_walks(database, last - 1, last)

    def _walk(self, walk: int | None) -> Walk:
        last = self.walks
        if walk is None:
            return Walk(self._database, last)
        check_whole("walk", walk, least=1)
        if walk > last:
            raise StoreError(
                f"{printable(self._directory)}: it has {last} walks, and no walk {walk}"
            )
        return Walk(self._database, walk)
