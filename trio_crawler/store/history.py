"""Read a crawl directory: its runs and walks, outcomes and changes; merge several into one."""

# ruff: noqa: S608 - all names that are put into SQL are our own.

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, Self

import httpx
from msgspec.structs import replace

from trio_crawler.arguments import (
    ArgumentError,
    check_flag,
    check_function,
    check_iterable,
    check_kind,
    check_path,
    check_whole,
    public,
)
from trio_crawler.model import Listing, Outcome, Purpose, Sitemap, Statistics
from trio_crawler.page.urls import normalise, seen_key
from trio_crawler.policy.settings import HostStatistics
from trio_crawler.store.changes import Change, compare_walks
from trio_crawler.store.database import NAME, Database, open_to_read
from trio_crawler.store.errors import DifferentCrawl, StoreError, file_errors, printable
from trio_crawler.store.runs import End, Run, read_hosts, read_meaning, read_runs
from trio_crawler.store.store import Store
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


_TIMED = ("page_", "redirect_", "failure_", "check_")
_BY_NUMBER = ("urls", *_TIMED, "skip_", "links_", "found_", "facts_", "repeated_")
_SITEMAP = "walk, url, kind, entries, admitted, flaws, detail, referrer, rejected, fetched"

_ONE = "merge the directories of one crawl"


@public("trio_crawler.store")
class Merged(NamedTuple):
    """The number of `urls` of a merged directory, and of those that were in two: `twice`."""

    urls: int
    twice: int


@public("trio_crawler.store")
def merge(
    out: str | Path, directories: Sequence[str | Path], check: Callable[[], None] = lambda: None
) -> Merged:
    """Merge the directories of workers of one crawl into `out`, which must have no crawl.

    The store of the crawl has numbered the URLs, so no two have one number. A URL that is in two
    directories was fetched twice, since its worker ended before it could tell the store: the later
    outcome counts. `check` is called between two directories, and may raise; then `out` has the
    first ones. Raises StoreError, which is DifferentCrawl for directories of different crawls.

    >>> web = Web({"/": html("/a"), "/a": html()})
    >>> async def kept() -> None:
    ...     async with SqliteFrontier("one", meaning={}) as frontier:
    ...         await Crawler([web.url], fetch=web, frontier=frontier).crawl()
    >>> trio.run(kept)
    >>> merge("all", ["one"]) == Merged(urls=2, twice=0)
    True
    """
    check_path("out", out)
    check_function("check", check, "a function")
    check_iterable("directories", directories, "paths")
    if not directories or isinstance(directories, str):
        raise ArgumentError("directories", " must be a list of at least one path")
    for directory in directories:
        check_path("each of directories", directory)
    place = Path(out) / NAME
    with file_errors(place):
        if place.exists():
            raise StoreError(f"{printable(Path(out))}: it has a crawl already: give a new one")
    meaning: Mapping[str, Any] | None = None
    hosts: dict[str, HostStatistics] = {}
    seconds, paths, last = 0.0, list[Path](), list[Run]()
    for part in map(Path, directories):
        with closing(open_to_read(part)) as database:
            meaning = read_meaning(database) if meaning is None else meaning
            DifferentCrawl.check(printable(part), meaning, read_meaning(database), _ONE)
            runs = read_runs(database)
            seconds = max(seconds, sum(run.seconds for run in runs))
            last += runs[-1:]
            for name, host in read_hosts(database).items():
                hosts[name] = _sum(hosts[name], host) if name in hosts else host
            paths.append(database.path)
    # A worker that has finished knows that the whole crawl is over. Others may be of earlier runs.
    ends = {run.how for run in last}
    how = next((each for each in (End.FINISHED, End.SPENT) if each in ends), End.STOPPED)
    settings = {} if not last else dict(last[0].settings)
    if "workers" in settings:
        settings["workers"] = sum(run.workers or 0 for run in last if run.how == how)
    with Store.open(out, meaning=meaning or {}, settings=settings) as store:
        twice = 0
        for path in paths:
            check()
            twice += store.take(path, _take)
        store.end(how, hosts.values(), seconds)
        return Merged(store.walk.statistics().admitted, twice)


def _sum(one: HostStatistics, other: HostStatistics) -> HostStatistics:
    """Return a host that two workers have asked, one after the other."""
    return replace(
        other,
        pages=one.pages + other.pages,
        failed=one.failed + other.failed,
        bytes=one.bytes + other.bytes,
        refused=one.refused + other.refused,
    )


def _take(database: Database) -> int:
    """Copy the rows of the attached `part`; return the number of URLs that were there already."""
    database.execute("CREATE TEMP TABLE IF NOT EXISTS stays (number INTEGER PRIMARY KEY)")
    database.execute("DELETE FROM stays")
    (twice,) = database.row("SELECT count(*) FROM part.urls JOIN main.urls USING (number)")
    if twice:
        times = " UNION ALL ".join(f"SELECT number, fetched FROM {{0}}.{each}" for each in _TIMED)
        ours, theirs = times.format("main"), times.format("part")
        # An answer replaces a skip, and a later answer an earlier one.
        database.execute(
            f"INSERT INTO stays SELECT ours.number FROM ({ours}) AS ours "
            f"LEFT JOIN ({theirs}) AS theirs USING (number) "
            "WHERE ours.number IN (SELECT number FROM part.urls) "
            "AND (theirs.fetched IS NULL OR theirs.fetched <= ours.fetched)"
        )
        for table in _BY_NUMBER:
            database.execute(
                f"DELETE FROM main.{table} WHERE number IN (SELECT number FROM part.urls) "
                "AND number NOT IN (SELECT number FROM stays)"
            )
    for table in _BY_NUMBER:
        database.execute(
            f"INSERT INTO main.{table} SELECT * FROM part.{table} "
            "WHERE number NOT IN (SELECT number FROM stays)"
        )
    database.execute("INSERT OR REPLACE INTO main.robots SELECT * FROM part.robots")
    database.execute("INSERT OR IGNORE INTO main.listings SELECT * FROM part.listings")
    database.execute(
        f"INSERT INTO main.sitemaps ({_SITEMAP}) SELECT {_SITEMAP} FROM part.sitemaps "
        "WHERE url NOT IN (SELECT url FROM main.sitemaps)"
    )
    return int(twice)
