"""Runs: each start of the program on a crawl directory is a run, and belongs to a walk."""

# ruff: noqa: S608 - all names that are put into SQL are our own.

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec
from msgspec.structs import replace

from trio_crawler.arguments import public
from trio_crawler.model import Fault, Phase, Purpose, Reason
from trio_crawler.policy.settings import HostStatistics, HostWait
from trio_crawler.store.database import Database, Number, Row, Time, checked, parsed
from trio_crawler.store.errors import DifferentCrawl, StoreError, printable
from trio_crawler.store.rows import column_value
from trio_crawler.store.walk import Walk, last_number


@public("trio_crawler.store")
class End(StrEnum):
    """How a run ended; the column `how` of the table `runs` has the value.

    `FINISHED`: every URL has its outcome. `STOPPED`: `Crawler.stop` was called (the command does
    on Ctrl-C), or the time budget was used up. `SPENT`: the page budget was used up. `CUT_SHORT`:
    an exception or a cancellation ended the crawl.

    >>> web = Web({"/": html("/a"), "/a": html()})
    >>> async def kept() -> None:
    ...     async with SqliteFrontier("site", meaning={}) as frontier:
    ...         limits = Limits(max_pages=1)
    ...         await Crawler([web.url], fetch=web, frontier=frontier, limits=limits).crawl()
    >>> trio.run(kept)
    >>> with closing(History("site")) as history:
    ...     print(history.runs[-1].how is End.SPENT, list(history.waiting()))
    True ['http://site.test/a']
    """

    FINISHED = "finished"
    STOPPED = "stopped"
    SPENT = "spent"
    CUT_SHORT = "cut short"


@public("trio_crawler.store")
@dataclass(frozen=True, slots=True)
class Run:
    """One start of a crawl.

    `number` counts the starts, and `walk` the walks of the site: a refresh begins another one.
    `started` and `ended` are in seconds since 1970; `seconds` is the duration. For a run that was
    killed or is still running, `ended` and `how` are None, and `seconds` is the last duration that
    was recorded. `workers` is None if the settings have no number of workers. `reason` is why
    nothing more was fetched: the argument of `Crawler.stop`, or the budget that was used up. It is
    None for a run that finished, and for one that only an exception or a cancellation ended.
    """

    number: int
    walk: int
    started: float
    ended: float | None
    seconds: float
    how: End | None
    workers: int | None
    settings: Mapping[str, Any]
    reason: Reason | None


def begin(
    database: Database,
    meaning: Mapping[str, Any] | None,
    refresh: bool,
    settings: Mapping[str, Any] | None,
) -> tuple[int, int]:
    """Begin a run, and a walk if needed; return the numbers of the walk and of the run.

    Raises StoreError if the last walk must be finished first, and DifferentCrawl if another
    meaning is stored.
    """
    with database.transaction():
        _check_meaning(database, meaning or {})
        walk = _choose_walk(database, refresh)
        ((run,),) = database.rows(
            "INSERT INTO runs (walk, started, seconds, how, retries, settings) "
            "VALUES (?, ?, 0, '', 0, ?) RETURNING run",
            walk,
            time.time(),
            _json(settings or {}),
        )
    return walk, run


def _choose_walk(database: Database, refresh: bool) -> int:
    (last,) = database.read_one(tuple[Number | None], "SELECT max(walk) FROM walks")
    if last is None:
        return _begin_walk(database, 1)
    if not refresh:
        return int(last)
    walk = Walk(database, last)
    ended = database.rows("SELECT 1 FROM runs WHERE walk = ? AND ended NOT NULL LIMIT 1", last)
    if not walk.unfinished and (walk.begun or ended):
        return _begin_walk(database, last + 1)
    if last == 1 and walk.begun:
        raise StoreError(
            f"{printable(database.path.parent)}: the crawl there is not finished: "
            "let it finish without --refresh first"
        )
    return int(last)


def _begin_walk(database: Database, walk: int) -> int:
    number = last_number(database)
    sql = "INSERT INTO walks (walk, first, started) VALUES (?, ?, ?)"
    database.execute(sql, walk, number + 1, time.time())
    return walk


def _check_meaning(database: Database, meaning: Mapping[str, Any]) -> None:
    try:
        given = json.loads(json.dumps(dict(meaning)))
    except TypeError as error:
        raise TypeError(f"meaning must have values that JSON can represent: {error}") from None
    stored = read_meaning(database)
    DifferentCrawl.check(printable(database.path.parent), stored, given)
    merged = _json({**stored, **given})
    database.execute("INSERT OR REPLACE INTO crawl (key, value) VALUES ('meaning', ?)", merged)


def read_meaning(database: Database) -> dict[str, Any]:
    """Return the options that define the crawl."""
    found = database.read(tuple[str], "SELECT value FROM crawl WHERE key = 'meaning'")
    with database.store_errors():
        return parsed(dict[str, Any], found[0][0]) if found else {}


def end(
    database: Database,
    run: int,
    how: End,
    hosts: Iterable[HostStatistics],
    seconds: float,
    reason: Reason | None,
) -> None:
    """Record the end of a run, its reason, and the statistics of the hosts at that moment.

    The hosts of earlier runs of its walk are kept, and counts are summed up.
    """
    with database.transaction():
        database.execute(
            "UPDATE runs SET ended = ?, how = ?, seconds = ?, reason = ? WHERE run = ?",
            time.time(),
            how,
            seconds,
            reason,
            run,
        )
        (walk,) = database.read_one(tuple[int], "SELECT walk FROM runs WHERE run = ?", run)
        known = _hosts_of(database, walk)
        for host in hosts:
            before = known.get(host.name)
            known[host.name] = host if before is None else _merged(before, host)
        database.execute("DELETE FROM hosts")
        marks = ", ".join("?" * _HOST_COLUMNS)
        # A sum with a damaged count may be too large for its column.
        found = (tuple(map(column_value, _host_row(host, walk))) for host in known.values())
        database.execute_many(f"INSERT INTO hosts VALUES ({marks})", found)


_FAULT_FIELDS = ("reason", "detail", "phase", "about")


class _Why(msgspec.Struct):
    """Why a host was given up, as it is stored."""

    reason: Reason
    detail: str | None = None
    phase: Phase | None = None
    about: Purpose | None = None


_HOST_STATE: Any = (str, int, int, int, float, float, float, int, str | None)
_HOST_ROW: Any = tuple.__class_getitem__((*_HOST_STATE, int, int, int, HostWait, float, int))
_HOST_NAMES = (
    "name, waiting, in_flight, max_in_flight, delay, rest, latency, failures, given_up, pages, "
    "failed, bytes, waits_for, asked, refused"
)
# With the walk.
_HOST_COLUMNS = 16
_RUN_ROW: Any = tuple[int, int, Time, Time | None, float, str, str, Reason | None]


def _host_row(host: HostStatistics, walk: int) -> Row:
    given_up = {
        scheme: {name: getattr(why, name) for name in _FAULT_FIELDS}
        if isinstance(why, Fault)
        else {"reason": why}
        for scheme, why in host.given_up.items()
    }
    about = (host.name, host.waiting, host.in_flight, host.limit, host.delay, host.rest)
    why = json.dumps(given_up) if given_up else None
    counts = (host.pages, host.failed, host.bytes, host.waits_for, host.asked, host.refused)
    return (*about, host.latency, host.failures, why, walk, *counts)


def _merged(before: HostStatistics, now: HostStatistics) -> HostStatistics:
    """Return the statistics of a host in two runs: the state of the later one, and the sums."""
    return replace(
        now,
        latency=now.latency or before.latency,
        pages=before.pages + now.pages,
        failed=before.failed + now.failed,
        bytes=before.bytes + now.bytes,
    )


def read_hosts(database: Database) -> dict[str, HostStatistics]:
    """Return the hosts of the last walk by name, each with the sums of all runs of the walk."""
    (walk,) = database.read_one(tuple[int | None], "SELECT max(walk) FROM walks")
    return _hosts_of(database, walk or 0)


def _hosts_of(database: Database, walk: int) -> dict[str, HostStatistics]:
    sql = f"SELECT {_HOST_NAMES} FROM hosts WHERE walk = ? ORDER BY rowid"
    found = database.read(_HOST_ROW, sql, walk)
    with database.store_errors():
        return {name: _host(name, *about) for name, *about in found}


def _host(*row: Any) -> HostStatistics:
    found = parsed(dict[str, _Why], row[8]) if row[8] else {}
    given_up = {
        scheme: why.reason
        if why.detail is None
        else Fault(why.reason, why.detail, why.phase, why.about)
        for scheme, why in found.items()
    }
    values: Any = (*row[:8], given_up, *row[9:])
    return HostStatistics(*values)


def read_runs(database: Database) -> list[Run]:
    """Return all runs, the first run first."""
    columns = "run, walk, started, ended, seconds, how, settings, reason"
    found = database.read(_RUN_ROW, f"SELECT {columns} FROM runs ORDER BY run")
    with database.store_errors():
        return [_run(*row) for row in found]


def _run(
    number: int,
    walk: int,
    started: float,
    ended: float | None,
    seconds: float,
    how: str,
    settings_json: str,
    reason: Reason | None,
) -> Run:
    settings = parsed(dict[str, Any], settings_json)
    end = checked(End, how) if how else None
    workers = settings.get("workers")
    workers = workers if isinstance(workers, int) else None
    return Run(number, walk, started, ended, seconds, end, workers, settings, reason)


def _json(value: Any) -> str:
    # ASCII, since a lone surrogate in a file name must not end a crawl.
    return json.dumps(dict(value) if isinstance(value, Mapping) else value, default=str)
