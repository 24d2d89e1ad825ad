"""The store: a crawl directory that is open for one crawl to write to."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from trio_crawler.model import Checked, Outcome, Reason, Response, Statistics, Validator
from trio_crawler.page.read import Facts
from trio_crawler.policy.settings import Checks, HostStatistics
from trio_crawler.store import runs
from trio_crawler.store.database import BadRow, Database
from trio_crawler.store.earlier import Known, fine_checks, stored_check, stored_facts, validators
from trio_crawler.store.errors import StoreError, file_errors, printable
from trio_crawler.store.files import PRIVATE_DIRECTORY, Lock
from trio_crawler.store.opening import BUSY_TIMEOUT, open_to_write
from trio_crawler.store.streams import Head, Stream, StreamSet
from trio_crawler.store.walk import Walk, last_number, stored_robots
from trio_crawler.store.writer import Batch, BatchWriter, record_progress


class Store:
    """An open crawl directory: its lock, its database and its streams.

    `walk` reads the current walk; `run` is the number of this run; `resumed` is whether an earlier
    run of the same walk admitted URLs. Any thread may use a Store, but only one at a time. Every
    method raises StoreError if the directory cannot be used any more.
    """

    def __init__(
        self, directory: Path, lock: Lock, database: Database, walk: int, run: int
    ) -> None:
        self.walk = Walk(database, walk)
        self.run = run
        self.resumed = self.walk.begun
        self._directory = directory
        self._lock = lock
        self._database = database
        self._began = time.monotonic()
        self._recorded = -1.0
        self._streams = StreamSet(directory, database)
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
        busy_timeout: float = BUSY_TIMEOUT,
    ) -> Store:
        """Lock a directory, created if it does not exist, and begin a run in it.

        `meaning` (JSON) defines the crawl: if options of the same names are stored, their values
        must be equal. With `refresh` the run begins the next walk if the last one is finished.
        `settings` (JSON) are stored with the run. While another program has locked the database,
        each statement waits for `busy_timeout` seconds. Raises StoreError, or DifferentCrawl; then
        no data of the crawl has changed.
        """
        path = Path(directory)
        with file_errors(path):
            # A directory that exists keeps its permissions.
            path.mkdir(PRIVATE_DIRECTORY, parents=True, exist_ok=True)
        with ExitStack() as on_error:
            lock = Lock(path)
            on_error.callback(lock.release)
            database = open_to_write(path, busy_timeout)
            on_error.callback(database.close)
            walk, run = runs.begin(database, meaning, refresh, settings)
            store = cls(path, lock, database, walk, run)
            on_error.pop_all()
        return store

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Store {printable(self._directory)}: run {self.run} of walk {self.walk.number}>"

    def statistics(self) -> Statistics:
        """Return the statistics of this walk; the seconds are those of earlier runs."""
        found = self.walk.statistics(except_run=self.run)
        ended = found.pages + found.redirects + found.failures + found.skipped + found.checked
        with self._database.store_errors():
            # Else an outcome would be stored a second time.
            if ended != found.admitted - found.waiting:
                raise BadRow(f"{ended} outcomes of {found.admitted - found.waiting} URLs")
        return found

    def last_number(self) -> int:
        """Return the highest number of a URL in any walk; 0 if there is none."""
        return last_number(self._database)

    def robots(self) -> Iterator[tuple[str, float, Response]]:
        """Yield the last response for the robots.txt of each origin, of any walk, and its time."""
        return stored_robots(self._database)

    def validators(self, checks: Checks) -> Iterator[tuple[str, int, Validator]]:
        """Yield URL, number and validator of each page that was good in an earlier walk.

        Pages whose links were not stored are left out if the crawl has `checks`.
        """
        return validators(self._database, self.walk.first, checks)

    def fine_checks(self, max_age: float) -> Iterator[tuple[str, Known]]:
        """Yield the URLs outside the crawl whose last check in an earlier walk was fine.

        That was at most `max_age` seconds ago.
        """
        return fine_checks(self._database, self.walk.first, max_age)

    def check(self, number: int) -> Checked:
        """Return the answer to a check of an earlier walk, and the places there, by its number."""
        return stored_check(self._database, number)

    def facts(self, number: int) -> Facts | None:
        """Return the facts of the page with a number, for a 304; None if there is no such page.

        The next 304 that is written for the same URL refers to that page.
        """
        found = stored_facts(self._database, number)
        if found is None:
            return None
        url, original, facts = found
        self._unchanged[url] = original
        return facts

    def stream(
        self,
        path: str | Path,
        encode: Callable[[Outcome], bytes],
        head: Head = bytes,
        rest: Callable[[], bytes] = bytes,
        *,
        private: bool = False,
    ) -> Stream:
        """Open a file whose records are written together with their outcomes; see `Stream`.

        A file that exists and does not belong to this crawl is not touched.
        """
        return self._streams.open(path, encode, head, rest, private=private)

    def write(self, batch: Batch) -> None:
        """Write a batch: its streams, then everything else in one transaction.

        If it raises, nothing of the batch counts, and the store is closed to writing: each later
        call raises the same error.
        """
        if self._broken is not None:
            raise self._broken
        try:
            if self._lock.removed:
                raise StoreError(f"{printable(self._directory)}: it was removed during the crawl")
            lengths = self._streams.append(batch.writes)
            self._write_rows(batch, lengths)
        except BaseException as error:
            self._break(error)
            raise
        self._streams.commit(lengths)
        for _, _, outcome in batch.settled:
            self._unchanged.pop(outcome.url, None)

    def _write_rows(self, batch: Batch, lengths: Mapping[str, int]) -> None:
        writer = BatchWriter(self._database, self.walk.number, batch, self._unchanged)
        try:
            self._transact(writer, batch, lengths, careful=False)
        except (UnicodeEncodeError, OverflowError):
            # Only now are lone surrogates and huge integers looked for: they are rare.
            self._transact(writer, batch, lengths, careful=True)

    def _transact(
        self, writer: BatchWriter, batch: Batch, lengths: Mapping[str, int], *, careful: bool
    ) -> None:
        with self._database.transaction():
            writer.write(careful)
            self._streams.record(lengths, settled=bool(batch.settled))
            self._record_progress(batch.retries)

    def _record_progress(self, retries: int) -> None:
        """Record the duration of the run, so that a kill loses at most a second of it."""
        seconds = time.monotonic() - self._began
        if retries or seconds >= self._recorded + 1:
            record_progress(self._database, self.run, seconds, retries)
            self._recorded = seconds

    def _break(self, error: BaseException) -> None:
        """Refuse further writes, and roll the streams back to the lengths in the database."""
        name = printable(self._directory)
        self._broken = StoreError(f"{name}: nothing is written after {error!r}")
        if isinstance(error, StoreError):
            self._broken = error
        self._streams.roll_back()

    def end(
        self,
        how: runs.End,
        hosts: Iterable[HostStatistics],
        seconds: float,
        reason: Reason | None = None,
    ) -> None:
        """Record how and why the run ends, the statistics of the hosts, and its duration."""
        if self._broken is None:
            runs.end(self._database, self.run, how, hosts, seconds, reason)
            self._streams.end()

    def close(self) -> None:
        """Close everything and release the directory; may be called again."""
        self._streams.close()
        self._database.close()
        self._lock.release()
