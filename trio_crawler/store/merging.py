"""Merge the crawl directories of workers that shared a crawl into one."""

# ruff: noqa: S608 - all names that are put into SQL are our own.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from trio_crawler.arguments import (
    ArgumentError,
    check_function,
    check_iterable,
    check_path,
    public,
)
from trio_crawler.policy.settings import HostStatistics
from trio_crawler.store.database import Database
from trio_crawler.store.errors import DifferentCrawl, StoreError, file_errors, printable
from trio_crawler.store.opening import NAME, open_to_read
from trio_crawler.store.runs import End, Run, read_hosts, read_meaning, read_runs
from trio_crawler.store.store import Store

_TIMED = ("page_", "redirect_", "failure_", "check_")
_BY_NUMBER = ("urls", *_TIMED, "skip_", "links_", "found_", "facts_", "repeated_")
_SITEMAP = "walk, url, kind, entries, admitted, flaws, detail, referrer, rejected, fetched, exact"

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
