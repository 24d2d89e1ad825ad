"""The store: an open crawl directory, which one crawl writes to."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from trio_crawler.model import (
    Listing,
    Outcome,
    Response,
    Sitemap,
    Statistics,
    Validator,
)
from trio_crawler.page.read import Facts
from trio_crawler.policy.politeness import HostStatistics
from trio_crawler.store import database, runs, versions
from trio_crawler.store.batch import Batch
from trio_crawler.store.database import Database
from trio_crawler.store.errors import StoreError
from trio_crawler.store.faults import of_files, shown
from trio_crawler.store.files import Lock
from trio_crawler.store.shelf import Shelf
from trio_crawler.store.streams import Stream
from trio_crawler.store.walk import Walk, robots
from trio_crawler.store.writer import Entry, enter_run


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
        self._shelf = Shelf(directory, opened)
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
        with ExitStack() as unless_it_opens:
            held = Lock(path)
            unless_it_opens.callback(held.release)
            opened = database.opened(path)
            unless_it_opens.callback(opened.close)
            store = cls(path, held, opened, *runs.begin(opened, meaning, refresh, settings))
            unless_it_opens.pop_all()
        return store

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
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
        """Give URL, SHA-1 and time of each body that came, in portions.

        With `originals` only HTML pages that came well, or have not changed since an earlier
        walk, and are no duplicates of others.
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

        See `Shelf`: a file that is there and not of this crawl is left alone.
        """
        return self._shelf.open(path, encode, head, rest)

    def write(self, batch: Batch) -> None:
        """Write a batch: its streams, then all else in one transaction.

        When it raises, nothing of it counts, and this store is not written to any more: each
        later call raises the same.
        """
        if self._broken is not None:
            raise self._broken
        try:
            if self._lock.gone:
                raise StoreError(f"{shown(self._directory)}: somebody removed it meanwhile")
            lengths = self._shelf.append(batch.writes)
            self._enter(batch, lengths)
        except BaseException as error:
            self._break(error)
            raise
        self._shelf.commit(lengths)
        for _, _, outcome in batch.settled:
            self._unchanged.pop(outcome.url, None)

    def _enter(self, batch: Batch, lengths: Mapping[str, int]) -> None:
        entry = Entry(self._database, self.walk, self._walk.first, batch, self._unchanged)
        try:
            self._transact(entry, batch, lengths, careful=False)
        except (UnicodeEncodeError, OverflowError):
            # Lone surrogates or huge integers, which are rare: looking for them costs more.
            self._transact(entry, batch, lengths, careful=True)

    def _transact(
        self, entry: Entry, batch: Batch, lengths: Mapping[str, int], *, careful: bool
    ) -> None:
        with self._database.transaction():
            entry.make(careful)
            self._shelf.enter(lengths, settled=bool(batch.settled))
            self._enter_run(batch.retries)

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
        self._shelf.cut_back()

    def end(self, how: str, hosts: Iterable[HostStatistics], seconds: float) -> None:
        """Note that the run ends, how, and how it leaves the hosts."""
        if self._broken is None:
            runs.end(self._database, self.run, how, hosts, seconds)
            self._shelf.end()

    def close(self) -> None:
        """Close everything and let others have the directory; may be called again."""
        self._shelf.close()
        self._database.close()
        self._lock.release()
