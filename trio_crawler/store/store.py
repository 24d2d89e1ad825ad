"""The store: an open crawl directory, which one crawl writes to."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from trio_crawler.model import (
    Listing,
    Outcome,
    Response,
    Sitemap,
    Statistics,
    Validator,
)
from trio_crawler.page import Facts
from trio_crawler.policy.politeness import HostStatistics
from trio_crawler.store import database, lock, runs, versions
from trio_crawler.store.batch import Batch
from trio_crawler.store.database import Database
from trio_crawler.store.entry import Entry, enter_run
from trio_crawler.store.errors import StoreError
from trio_crawler.store.faults import of_files, shown
from trio_crawler.store.lock import Lock
from trio_crawler.store.streams import Stream
from trio_crawler.store.walk import Walk, robots

_OWN = frozenset({database.NAME, f"{database.NAME}-wal", f"{database.NAME}-shm", lock.NAME})


class Store:
    """Hold one open crawl directory: its lock, its database, its streams.

    Any thread may use it, one at a time. `walk` and `run` are numbers; `resumed` tells whether an
    earlier run of the same walk has left URLs. Everything raises StoreError.
    """

    def __init__(self, directory: Path, held: Lock, opened: Database, walk: int, run: int) -> None:
        self.walk = walk
        self.run = run
        self._directory = directory
        self._lock = held
        self._database = opened
        self._walk = Walk(opened, walk)
        self.resumed = self._walk.begun
        self._began = time.monotonic()
        self._noted = -1.0
        self._streams: dict[str, Stream] = {}
        self._left = False
        self._unchanged: dict[str, int] = {}
        self._broken: StoreError | None = None

    @classmethod
    def open(
        cls,
        directory: str | Path,
        *,
        meaning: Mapping[str, Any] | None = None,
        refresh: bool = False,
        settings: Mapping[str, Any] | None = None,
    ) -> Store:
        """Take a directory, made if there is none, and begin a run in it.

        `meaning` (JSON) says what makes it this crawl and no other: what of it is stored must be
        equal. With `refresh` the run begins the next walk if the last one has ended. `settings`
        (JSON) are kept with the run. Raises StoreError, or DifferentCrawl; then nothing of the
        crawl has changed.
        """
        path = Path(directory)
        with of_files(path):
            path.mkdir(parents=True, exist_ok=True)
        held = Lock(path)
        try:
            opened = database.opened(path)
            try:
                return cls(path, held, opened, *runs.begin(opened, meaning, refresh, settings))
            except BaseException:
                opened.close()
                raise
        except BaseException:
            held.release()
            raise

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Store {shown(self._directory)}: run {self.run} of walk {self.walk}>"

    def counts(self) -> Statistics:
        """Count this walk by what is written; the seconds are those of earlier runs."""
        return self._walk.statistics(but_run=self.run)

    def urls(self) -> Iterator[list[tuple[int, str, int]]]:
        """Give number, URL and redirects left of all pages' URLs, ended or not, in portions."""
        return self._walk.urls()

    def waiting(
        self,
    ) -> Iterator[list[tuple[int, str, str, int, int, str | None, float | None, int]]]:
        """Give what has no outcome, in portions: as `Batch.admitted` has it, and the tries."""
        return self._walk.waiting()

    def began(self) -> float:
        """Return when this walk began, in seconds since 1970; 0 for the first one."""
        sql = "SELECT started FROM walks WHERE walk = ?"
        return float(self._database.row(sql, self.walk)[0]) if self.walk > 1 else 0.0

    def last_number(self) -> int:
        """Return the highest number of a URL, of all walks; 0 if there is none."""
        (number,) = self._database.row("SELECT coalesce(max(number), 0) FROM urls")
        return int(number)

    def sitemap_urls(self) -> list[str]:
        """Give the URLs of the sitemaps of this walk that were asked for, or wait for it."""
        return self._walk.sitemap_urls()

    def hops(self) -> Iterator[tuple[str, str]]:
        """Give URL and target of the redirects that came after other redirects."""
        return self._walk.hops()

    def bodies(self, *, originals: bool = False) -> Iterator[list[tuple[str, bytes, float]]]:
        """Give URL, SHA-1 and time of each HTML page that came well, in portions.

        With `originals` those that are duplicates of others are left out, and those that have
        not changed since an earlier walk are among them.
        """
        return self._walk.bodies(originals=originals)

    def robots(self) -> Iterator[tuple[str, float, Response]]:
        """Give the last answer for each origin's robots.txt, of any walk, and when it came."""
        return robots(self._database)

    def sitemaps(self) -> list[Sitemap]:
        """Give what came of the sitemaps."""
        return self._walk.sitemaps()

    def listings(self) -> dict[str, Listing]:
        """Give what the sitemaps say of URLs, by their seen keys."""
        return self._walk.listings()

    def validators(self) -> Iterator[tuple[str, int, Validator]]:
        """Give by what each URL can be asked that was good in an earlier walk.

        The number is the one that `facts` takes.
        """
        return versions.validators(self._database, self._walk.first)

    def facts(self, number: int) -> Facts | None:
        """Give what the page at a number said, for a 304.

        The next 304 that is written for the same URL stands for that page.
        """
        found = versions.page_at(self._database, number)
        if found is None:
            return None
        number, page = found
        self._unchanged[page.url] = number
        (digest,) = self._database.row("SELECT digest FROM page_ WHERE number = ?", number)
        return versions.facts_of(page, digest)

    def outcomes(self) -> Iterator[Outcome]:
        """Give the outcomes of this walk by number, the pages without bodies."""
        return self._walk.outcomes()

    def stream(
        self,
        path: str | Path,
        encode: Callable[[Outcome], bytes],
        head: Callable[[], bytes] = bytes,
        rest: Callable[[], bytes] = bytes,
    ) -> Stream:
        """Open a file whose records are written with the outcomes that they tell of.

        It is known again by the path that leads from the directory to it, so both may be moved
        together. What is there and not of this crawl is left alone.
        """
        name = self._name(path)
        if name in _OWN:
            raise StoreError(f"{shown(path)}: the crawl itself needs it: give another path")
        sql = "SELECT length, tail, behind FROM streams WHERE path = ?"
        found = self._database.rows(sql, name)
        length, tail, behind = found[0] if found else (None, None, None)
        if behind:
            raise StoreError(
                f"{shown(path)}: a run has gone on without it, so records are missing: "
                "give another path"
            )
        if any(stream.is_file(path) for stream in self._streams.values()):
            raise StoreError(f"{shown(path)}: it is given twice: give another path")
        stream = Stream(Path(path), length, tail, encode, head, rest)
        self._streams[name] = stream
        if length is None:
            # Before anything is in it: what a killed run has left there is the crawl's own.
            self._database.do("INSERT INTO streams (path, length, behind) VALUES (?, 0, 0)", name)
        return stream

    def _name(self, path: str | Path) -> str:
        with of_files(Path(path)):
            whole, inside = Path(path).resolve(), self._directory.resolve()
        # A path need not be UTF-8.
        return os.path.relpath(whole, inside).encode("utf-8", "backslashreplace").decode()

    def write(self, batch: Batch) -> None:
        """Write a batch: its streams, then all else in one transaction.

        When it raises, nothing of it counts, and this store is not written to any more: each
        later call raises the same.
        """
        if self._broken is not None:
            raise self._broken
        pieces = self._pieces(batch)
        try:
            lengths = {name: self._streams[name].append(data) for name, data in pieces.items()}
            self._enter(batch, lengths)
        except BaseException as error:
            self._break(error)
            raise
        for name in lengths:
            self._streams[name].commit()
        for _, _, outcome in batch.settled:
            self._unchanged.pop(outcome.url, None)

    def _pieces(self, batch: Batch) -> dict[str, bytes]:
        """Make the bytes for each stream by its name; a new one gets its head in any case."""
        given: dict[int, list[Outcome]] = {}
        for stream, outcomes in batch.writes:
            given.setdefault(id(stream), []).extend(outcomes)
        pieces = {
            name: stream.records(given.get(id(stream), []))
            for name, stream in self._streams.items()
        }
        return {name: data for name, data in pieces.items() if data}

    def _enter(self, batch: Batch, lengths: Mapping[str, int]) -> None:
        entry = Entry(self._database, self.walk, self._walk.first, batch, self._unchanged)
        with self._database.transaction():
            entry.make()
            if lengths:
                sql = "UPDATE streams SET length = ?, tail = ? WHERE path = ?"
                written = ((at, self._streams[name].tail, name) for name, at in lengths.items())
                self._database.many(sql, written)
            if batch.settled:
                self._leave_behind()
            self._enter_run(batch.retries)

    def _leave_behind(self) -> None:
        """Note which streams of earlier runs lack what this one settles."""
        if not self._left:
            for (name,) in self._database.rows("SELECT path FROM streams"):
                if name not in self._streams:
                    self._database.do("UPDATE streams SET behind = 1 WHERE path = ?", name)
            self._left = True

    def _enter_run(self, retries: int) -> None:
        """Note how far the run has come, so that a kill takes no more than a second from it."""
        seconds = time.monotonic() - self._began
        if retries or seconds >= self._noted + 1:
            enter_run(self._database, self.run, seconds, retries)
            self._noted = seconds

    def _break(self, error: BaseException) -> None:
        """Take no more, and cut the streams back to what the database says, if it still does."""
        self._broken = StoreError(f"{shown(self._directory)}: nothing is written after {error!r}")
        if isinstance(error, StoreError):
            self._broken = error
        try:
            lengths: dict[str, int] = dict(self._database.rows("SELECT path, length FROM streams"))
        except StoreError:
            return
        for name, stream in self._streams.items():
            stream.cut_back(lengths.get(name, 0))

    def end(self, how: str, hosts: Iterable[HostStatistics], seconds: float) -> None:
        """Note that the run ends, how, and how it leaves the hosts."""
        if self._broken is None:
            runs.end(self._database, self.run, how, hosts, seconds)

    def close(self) -> None:
        """Close everything and let others have the directory; may be called again."""
        for stream in self._streams.values():
            stream.close()
        self._streams.clear()
        self._database.close()
        self._lock.release()
