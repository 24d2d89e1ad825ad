"""The store: a crawl directory that is open for one crawl to write to.

It tells what earlier walks have found, and a refresh need not ask for again.
"""

# ruff: noqa: S608 - all names that are put into SQL are our own.

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import msgspec
from msgspec.structs import replace

from trio_crawler.model import (
    REDIRECTS,
    Checked,
    Outcome,
    Page,
    Reason,
    Response,
    Statistics,
    Validator,
)
from trio_crawler.page.links import READ
from trio_crawler.page.media import MARKUP
from trio_crawler.page.read import Facts
from trio_crawler.policy.settings import Checks, HostStatistics
from trio_crawler.store import rows, runs
from trio_crawler.store.database import (
    BUSY_TIMEOUT,
    PRIVATE_DIRECTORY,
    BadRow,
    Count,
    Database,
    Digest,
    Latin1,
    Number,
    Origin,
    Time,
    Url,
    checked,
    decoded,
    open_to_write,
)
from trio_crawler.store.errors import StoreError, file_errors, printable
from trio_crawler.store.schema import REFERRER
from trio_crawler.store.streams import Head, Lock, Stream, StreamSet
from trio_crawler.store.walk import Walk, last_number, made_outcomes, named_url
from trio_crawler.store.writer import Batch, write_batch

_HEADERS = msgspec.json.Decoder(list[tuple[Latin1, Latin1]])
_ROBOTS_ROW: Any = tuple[Origin, Time, Count, str, bytes]
# A 304 refers to an earlier page with content, so its page is good.
_WHOLE = "coalesce(page_.flaws, '') NOT LIKE '%\"too_large\"%'"
_GOOD = "(page_.status BETWEEN 200 AND 299 OR page_.same_as NOT NULL)"
_VALIDATOR_ROW: Any = tuple[Url, int, Latin1 | None, Latin1 | None, Digest, Time, int]
_CHECK_ROW: Any = tuple[Url, Number, Count | None, str | None, str | None, str | None, int, int]
_FOUND_ROW: Any = tuple[Url, Count, str | None, str | None, bytes | None]
_MOST_HOPS = 100


class Known(NamedTuple):
    """The number of a check of an earlier walk, and whether the places at its end are known."""

    number: int
    places: bool


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
        durable: bool = False,
    ) -> Store:
        """Lock a directory, created if it does not exist, and begin a run in it.

        `meaning` (JSON) defines the crawl: if options of the same names are stored, their values
        must be equal. With `refresh` the run begins the next walk if the last one is finished.
        `settings` (JSON) are stored with the run. While another program has locked the database,
        each statement waits for `busy_timeout` seconds. With `durable` each transaction is on the
        disk when it ends, also if the machine loses power then. Raises StoreError, or
        DifferentCrawl; then no data of the crawl has changed.
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
            if durable:
                database.execute("PRAGMA synchronous = FULL")
            walk, run = runs.begin(database, meaning, refresh, settings)
            store = cls(path, lock, database, walk, run)
            on_error.pop_all()
        return store

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

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

    def take(self, path: Path, copy: Callable[[Database], int]) -> int:
        """Attach another database as `part`, and `copy` from it in one transaction."""
        self._database.execute("ATTACH ? AS part", os.fspath(path))
        try:
            with self._database.transaction():
                return copy(self._database)
        finally:
            self._database.execute("DETACH part")

    def latest(self, most: int) -> set[int]:
        """Return the numbers of the URLs that ended last, at most so many of each kind."""
        found = set[int]()
        for table in ("page_", "redirect_", "failure_"):
            sql = f"SELECT number FROM {table} ORDER BY fetched DESC LIMIT ?"
            found.update(number for (number,) in self._database.read(tuple[Number], sql, most))
        # Those without a time are few.
        sql = "SELECT number FROM skip_ UNION SELECT number FROM urls WHERE purpose = 'sitemap'"
        return found.union(number for (number,) in self._database.read(tuple[Number], sql))

    def robots(self) -> Iterator[tuple[str, float, Response]]:
        """Yield the last response for the robots.txt of each origin of all walks, and its time."""
        sql = "SELECT origin, fetched, status, headers, body FROM robots"
        for origin, fetched, status, headers, body in self._database.read(_ROBOTS_ROW, sql):
            with self._database.store_errors():
                pairs = decoded(_HEADERS, headers)
            fields = [(key.encode("latin-1"), value.encode("latin-1")) for key, value in pairs]
            yield origin, fetched, Response(status, httpx.Headers(fields), body)

    def validators(self, checks: Checks) -> Iterator[tuple[str, int, Validator]]:
        """Yield URL, number and validator of each page that was good in an earlier walk.

        Pages without a validator are left out, and those that were cut: with a greater limit more
        of them may be read now. So are pages whose links were not stored, if the crawl has
        `checks`. The number is that of the page with the content, from the last walk in which it
        was good.
        """
        sql = (
            "SELECT url, coalesce(of.number, page_.number), coalesce(page_.etag, of.etag), "
            "coalesce(page_.last_modified, of.last_modified), page_.digest, "
            "max(0, coalesce(of.fetched - of.seconds, page_.fetched - page_.seconds)), "
            "max(page_.number) FROM page_ "
            "JOIN urls USING (number) LEFT JOIN page_ AS of ON of.number = page_.same_as "
            f"WHERE page_.number < ? AND {_GOOD} AND {_WHOLE} "
            f"AND {_with_links(checks)} GROUP BY url"
        )
        for portion in self._database.portions(_VALIDATOR_ROW, sql, self.walk.first):
            for url, number, *known, _ in portion:
                if any(known[:2]):
                    yield url, number, Validator(*known)

    def fine_checks(self, max_age: float) -> Iterator[tuple[str, Known]]:
        """Yield the URLs outside the crawl whose last check in an earlier walk was fine.

        That was at most `max_age` seconds ago, and the answer was a success (2xx), or a redirect
        that led to one. A URL that was not asked for itself is left out.
        """
        now = time.time()
        sql = (
            "SELECT urls.url, check_.number, status, reason, target, rejected, "
            "found_.targets NOT NULL, max(check_.number) FROM check_ JOIN urls USING (number) "
            "LEFT JOIN found_ USING (number) WHERE check_.number < ? AND fetched BETWEEN ? AND ? "
            "AND check_.tries > 0 GROUP BY urls.url"
        )
        ends: dict[str, Known] = {}
        hops: dict[str, tuple[int, str]] = {}
        for portion in self._database.portions(
            _CHECK_ROW, sql, self.walk.first, now - max_age, now
        ):
            for url, number, status, reason, target, rejected, places, _ in portion:
                if reason is not None or rejected is not None or status is None:
                    continue
                if target is None and 200 <= status < 300:
                    ends[url] = Known(number, bool(places))
                elif target is not None and status in REDIRECTS:
                    hops[url] = number, target
        yield from ends.items()
        for url, (number, target) in hops.items():
            for _ in range(_MOST_HOPS):
                if target not in hops:
                    break
                _, target = hops[target]
            if target in ends:
                yield url, Known(number, ends[target].places)

    def check(self, number: int) -> Checked:
        """Return the answer to a check of an earlier walk, and the places there, by its number."""
        sql = (
            "SELECT url, status, target, fragment, targets FROM check_ JOIN urls USING (number) "
            "LEFT JOIN found_ USING (number) WHERE number = ?"
        )
        found = self._database.read(_FOUND_ROW, sql, number)
        with self._database.store_errors():
            if not found:
                raise BadRow(f"the check {number} is missing")
            url, status, target, fragment, packed = found[0]
            places = rows.stored_places(packed)
            return Checked(url, status, target=target, targets=places, fragment=fragment or "")

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
            try:
                self._transact(batch, lengths, careful=False)
            except (UnicodeEncodeError, OverflowError):
                # Only now are lone surrogates and huge integers looked for: they are rare.
                self._transact(batch, lengths, careful=True)
        except BaseException as error:
            name = printable(self._directory)
            self._broken = StoreError(f"{name}: nothing is written after {error!r}")
            if isinstance(error, StoreError):
                self._broken = error
            self._streams.roll_back()
            raise
        self._streams.commit(lengths)
        for _, _, outcome in batch.settled:
            self._unchanged.pop(outcome.url, None)

    def _transact(self, batch: Batch, lengths: Mapping[str, int], *, careful: bool) -> None:
        with self._database.transaction():
            number = self.walk.number
            write_batch(self._database, number, batch, self._unchanged, careful=careful)
            self._streams.record(lengths, settled=bool(batch.settled))
            seconds = time.monotonic() - self._began
            # So a kill loses at most a second of the duration.
            if batch.retries or seconds >= self._recorded + 1:
                sql = "UPDATE runs SET seconds = ?, retries = retries + ? WHERE run = ?"
                self._database.execute(sql, seconds, batch.retries, self.run)
                self._recorded = seconds

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


def _with_links(checks: Checks) -> str:
    """Return the condition that what these checks need of a page was stored."""
    if not checks.any:
        return "1"
    stored = "SELECT {} FROM found_ WHERE found_.number = coalesce(page_.same_as, page_.number)"
    links, places = (f"coalesce(({stored.format(each)}), 0)" for each in ("1", "targets NOT NULL"))
    others, markup = (f"page_.content_type NOT IN {tuple(sorted(of))}" for of in (READ, MARKUP))
    if checks.fragments:
        return f"({others} OR {places} OR ({markup} AND {links}))"
    return f"({others} OR {links})"


def stored_facts(database: Database, number: int) -> tuple[str, int, Facts] | None:
    """Return the URL, the number and the facts of the page with a number; None if there is none.

    For a 304 these are the number and the facts of the page that it refers to.
    """
    own = ", ".join(f"page_.{name}" for name in rows.PAGE.split(", "))
    sql = (
        f"SELECT number, urls.url, depth, {REFERRER}, page_.digest, "
        f"{own}, links_.links, links_.rejected "
        "FROM page_ LEFT JOIN links_ USING (number) JOIN urls USING (number) "
        "WHERE number = (SELECT coalesce(same_as, number) FROM page_ WHERE number = ?)"
    )
    make = partial(rows.page, named=partial(named_url, database))
    for row in database.rows(sql, number):
        with database.store_errors():
            ((found, page),) = made_outcomes([row[:4] + row[5:]], rows.PAGE_ROW, make)
            digest = checked(Digest, row[4])
            sql = f"SELECT {rows.FOUND} FROM found_ WHERE number = ?"
            for packed in database.rows(sql, found):
                page = replace(page, **rows.found_fields(page, packed))
            sql = "SELECT facts FROM facts_ WHERE number = ?"
            for (text,) in database.read(tuple[str], sql, found):
                page = replace(page, facts=rows.stored_page_facts(text))
        return page.url, found, _facts(page, digest)
    return None


def _facts(page: Page, digest: bytes | None) -> Facts:
    """Return the facts that were read from a page, as far as its outcome has them.

    The order of the links differs: the admitted links come first, then the rejected ones. Links
    with rel=nofollow are only known as such if they were rejected for it.
    """
    bad = [url for url, reason in page.rejected if reason is Reason.BAD_URL]
    rejected = [url for url, reason in page.rejected if reason is not Reason.BAD_URL]
    return Facts(
        page.content_type,
        page.charset,
        page.title,
        tuple(dict.fromkeys((*page.links, *rejected))),
        tuple(bad),
        page.links_beyond,
        page.flaws,
        frozenset(url for url, reason in page.rejected if reason is Reason.REL_NOFOLLOW),
        page.canonical,
        page.robots,
        anchors=page.anchors,
        digest=digest,
        kept=page.facts,
        found=page.found,
        targets=page.targets,
    )
