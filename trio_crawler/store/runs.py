"""Runs: the starts of the program on one crawl directory, and the walk that each belongs to."""

# ruff: noqa: S608 - all names that are put into SQL are our own.

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trio_crawler.model import Fault, Reason
from trio_crawler.policy.politeness import HostStatistics
from trio_crawler.reasons import Phase
from trio_crawler.store import rows
from trio_crawler.store.database import Database, Row
from trio_crawler.store.errors import DifferentCrawl, StoreError
from trio_crawler.store.faults import shown
from trio_crawler.store.walk import Walk


@dataclass(frozen=True, slots=True)
class Run:
    """Tell of one start of a crawl.

    The times are seconds since 1970. `ended` is None for a run that was killed or still goes on;
    `seconds` is how long it took, as far as is known, and `how` it ended. `workers` is None if
    the settings do not tell.
    """

    number: int
    walk: int
    started: float
    ended: float | None
    seconds: float
    how: str
    workers: int | None
    settings: Mapping[str, Any]


def begin(
    database: Database,
    meaning: Mapping[str, Any] | None,
    refresh: bool,
    settings: Mapping[str, Any] | None,
) -> tuple[int, int]:
    """Begin a run, and a walk if it takes one; return the walk and the run.

    Raises StoreError if the last walk has to be ended first, DifferentCrawl if the stored meaning
    is another one.
    """
    with database.transaction():
        _compare(database, meaning or {})
        walk = _walk(database, refresh)
        ((run,),) = database.rows(
            "INSERT INTO runs (walk, started, seconds, how, retries, settings) "
            "VALUES (?, ?, 0, '', 0, ?) RETURNING run",
            walk,
            time.time(),
            _json(settings or {}),
        )
    return walk, run


def _walk(database: Database, refresh: bool) -> int:
    (last,) = database.row("SELECT max(walk) FROM walks")
    if last is None:
        return _begin_walk(database, 1)
    if not refresh:
        return int(last)
    walk = Walk(database, last)
    ended = database.rows("SELECT 1 FROM runs WHERE walk = ? AND ended NOT NULL LIMIT 1", last)
    if not walk.waits and (walk.begun or ended):
        return _begin_walk(database, last + 1)
    if last == 1 and walk.begun:
        raise StoreError(
            f"{shown(database.path.parent)}: the crawl there is not finished: "
            "let it go on without --refresh first"
        )
    return int(last)


def _begin_walk(database: Database, walk: int) -> int:
    (number,) = database.row("SELECT coalesce(max(number), 0) FROM urls")
    sql = "INSERT INTO walks (walk, first, started) VALUES (?, ?, ?)"
    database.do(sql, walk, number + 1, time.time())
    return walk


def _compare(database: Database, meaning: Mapping[str, Any]) -> None:
    try:
        given = json.loads(json.dumps(dict(meaning)))
    except TypeError as error:
        raise TypeError(f"meaning must be what JSON can hold: {error}") from None
    stored = meaning_of(database)
    differ = [key for key in given if key in stored and given[key] != stored[key]]
    if differ:
        named = "; ".join(
            f"{key} was {_json(stored[key])}, now it is {_json(given[key])}" for key in differ
        )
        raise DifferentCrawl(
            f"{shown(database.path.parent)}: it holds another crawl ({named}): "
            "give another directory, or delete this one to start anew"
        )
    merged = _json({**stored, **given})
    database.do("INSERT OR REPLACE INTO crawl (key, value) VALUES ('meaning', ?)", merged)


def meaning_of(database: Database) -> dict[str, Any]:
    """Give the options that a crawl was made with."""
    found = database.rows("SELECT value FROM crawl WHERE key = 'meaning'")
    stored: dict[str, Any] = json.loads(found[0][0]) if found else {}
    return stored


def end(
    database: Database, run: int, how: str, hosts: Iterable[HostStatistics], seconds: float
) -> None:
    """Note the end of a run, and how it leaves the hosts."""
    marks = ", ".join("?" * 12)
    with database.transaction():
        database.do(
            "UPDATE runs SET ended = ?, how = ?, seconds = ? WHERE run = ?",
            time.time(),
            rows.near(how),
            seconds,
            run,
        )
        database.do("DELETE FROM hosts")
        database.many(f"INSERT INTO hosts VALUES ({marks})", map(_host_row, hosts))


def _host_row(host: HostStatistics) -> Row:
    about = (host.scheme, host.host, host.waiting, host.flying, host.limit, host.delay)
    given_up: tuple[str | None, ...] = (None, None, None)
    if isinstance(host.given_up, Fault):
        fault = host.given_up
        given_up = (fault.reason, rows.near(fault.detail), fault.phase)
    elif host.given_up is not None:
        given_up = (host.given_up, None, None)
    return (*about, host.rest, host.latency, host.failures, *given_up)


def hosts_of(database: Database) -> list[HostStatistics]:
    """Give the hosts as the last run that ended has left them."""
    found = database.rows("SELECT * FROM hosts ORDER BY rowid")
    return [_host(*row) for row in found]


def _host(*row: Any) -> HostStatistics:
    scheme, host, waiting, flying, most, delay, rest, latency, failures, *why = row
    about = (scheme, host, waiting, flying, most, delay, rest, latency, failures)
    return HostStatistics(*about, _given_up(*why))


def _given_up(reason: str | None, detail: str | None, phase: str | None) -> Reason | Fault | None:
    if reason is None:
        return None
    if detail is None:
        return Reason(reason)
    return Fault(Reason(reason), detail, Phase(phase) if phase else None)


def runs_of(database: Database) -> list[Run]:
    """Give all runs, the first one first."""
    columns = "run, walk, started, ended, seconds, how, settings"
    return [_run(*row) for row in database.rows(f"SELECT {columns} FROM runs ORDER BY run")]


def _run(
    number: int,
    walk: int,
    started: float,
    ended: float | None,
    seconds: float,
    how: str,
    settings: str,
) -> Run:
    told = json.loads(settings)
    return Run(number, walk, started, ended, seconds, how, told.get("workers"), told)


def _json(value: Any) -> str:
    # ASCII: a lone surrogate of a file name must not end a crawl.
    return json.dumps(dict(value) if isinstance(value, Mapping) else value, default=str)
