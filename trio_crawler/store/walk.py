"""One walk of a crawl directory, read back."""

# ruff: noqa: S608 - all names that are put into SQL are our own.

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import httpx
import msgspec

from trio_crawler.model import (
    Listing,
    Outcome,
    Reason,
    Refused,
    Response,
    Sitemap,
    Statistics,
)
from trio_crawler.store import rows
from trio_crawler.store.database import Database, Row

PORTION = 5_000
"""Rows of URLs that are read at once."""

_NUMBERS = 500
_BEYOND = 2**63 - 1

Make: TypeAlias = Callable[[str, int, str | None, rows.Values], Outcome]
_KINDS: tuple[tuple[str, str, Make], ...] = (
    ("page_", f"{rows.PAGE}, links_.links, links_.refused, exact", rows.page),
    ("redirect_", f"{rows.REDIRECT}, exact", rows.redirect),
    ("failure_", f"{rows.FAILURE}, exact", rows.failure),
    ("skip_", "reason, NULL", rows.skipped),
)


class Walk:
    """Read one walk; raises StoreError.

    What gives portions asks for one after the other, and keeps nothing open between them: the
    crawl may go on meanwhile. Everything comes by number, which is the order of admission.
    """

    def __init__(self, database: Database, walk: int) -> None:
        self.walk = walk
        self._database = database
        (self.first,) = database.row("SELECT first FROM walks WHERE walk = ?", walk)
        # Numbers rise through all walks, so each has a range of them.
        (after,) = database.row("SELECT min(first) FROM walks WHERE walk > ?", walk)
        self.last = _BEYOND if after is None else after - 1

    def statistics(self, but_run: int | None = None) -> Statistics:
        """Count it; of the seconds those of one run may be left out."""
        pages, size, refused = self._sums("count(*), sum(size), sum(refused)", "page_")
        redirects, unfollowed = self._sums("count(*), count(refused)", "redirect_")
        (failures,) = self._sums("count(*)", "failure_")
        (skipped,) = self._sums("count(*)", "skip_")
        admitted, ended = self._sums("count(*), sum(ended)", "urls", "AND purpose = 'page'")
        retries, seconds = self._database.row(
            "SELECT sum(retries), sum(seconds) FILTER (WHERE run IS NOT ?) FROM runs "
            "WHERE walk = ?",
            but_run,
            self.walk,
        )
        return Statistics(
            admitted=admitted,
            pages=pages,
            redirects=redirects,
            failures=failures,
            skipped=skipped,
            waiting=admitted - (ended or 0),
            retries=retries or 0,
            refused=(refused or 0) + unfollowed,
            bytes=size or 0,
            seconds=seconds or 0.0,
        )

    def _sums(self, sums: str, table: str, where: str = "") -> Row:
        return self._database.row(
            f"SELECT {sums} FROM {table} WHERE number BETWEEN ? AND ? {where}",
            self.first,
            self.last,
        )

    @property
    def begun(self) -> bool:
        """Tell whether any URL was admitted."""
        sql = "SELECT 1 FROM urls WHERE number BETWEEN ? AND ? LIMIT 1"
        return bool(self._database.rows(sql, self.first, self.last))

    @property
    def waits(self) -> bool:
        """Tell whether any URL has no outcome."""
        sql = "SELECT 1 FROM urls WHERE number BETWEEN ? AND ? AND NOT ended LIMIT 1"
        return bool(self._database.rows(sql, self.first, self.last))

    def _portions(self, columns: str, where: str) -> Iterator[list[Row]]:
        """Give rows of `urls`, of which the number is the first column."""
        return self._by_number(
            f"SELECT {columns} FROM urls WHERE number > ? AND number <= ? "
            f"AND {where} ORDER BY number LIMIT ?"
        )

    def _by_number(self, sql: str) -> Iterator[list[Row]]:
        after = self.first - 1
        while found := self._database.rows(sql, after, self.last, PORTION):
            yield found
            after = found[-1][0]

    def urls(self) -> Iterator[list[Row]]:
        """Give number, URL and redirects of each page's URL, whether it has ended or not."""
        return self._portions("number, url, redirects", "purpose = 'page'")

    def sitemap_urls(self) -> list[str]:
        """Give the URLs of all sitemaps, whether they were asked for or not yet."""
        sql = "SELECT url FROM urls WHERE number BETWEEN ? AND ? AND purpose = 'sitemap'"
        return [url for (url,) in self._database.rows(sql, self.first, self.last)]

    def waiting(self) -> Iterator[list[Row]]:
        """Give what is to be asked for; the columns are those of `Store.waiting`."""
        columns = "number, url, purpose, depth, redirects, referrer, priority, tries"
        return self._portions(columns, "NOT ended")

    def outcomes(self) -> Iterator[Outcome]:
        """Give the outcomes, the pages without bodies."""
        after = self.first - 1
        while True:
            last = min(self.last, self._last_number())
            if after >= last:
                return
            found: list[tuple[int, Outcome]] = []
            for kind in _KINDS:
                found += self._made(after, after + _NUMBERS, *kind)
            found.sort(key=_number)
            yield from (outcome for _, outcome in found)
            after += _NUMBERS

    def _made(
        self, after: int, last: int, table: str, columns: str, make: Make
    ) -> Iterator[tuple[int, Outcome]]:
        links = "LEFT JOIN links_ USING (number)" if table == "page_" else ""
        columns = ", ".join(
            name if "." in name or name == "NULL" else f"{table}.{name}"
            for name in columns.split(", ")
        )
        sql = (
            f"SELECT number, url, depth, referrer, {columns} "
            f"FROM {table} {links} JOIN urls USING (number) WHERE number > ? AND number <= ?"
        )
        for number, url, depth, referrer, *values, exact in self._database.rows(
            sql, after, min(last, self.last)
        ):
            were = rows.exactly(tuple(values), exact)
            yield number, make(url, depth, referrer, were)

    def _last_number(self) -> int:
        (number,) = self._database.row("SELECT max(number) FROM urls")
        return number or 0

    def hops(self) -> Iterator[tuple[str, str]]:
        """Give where redirects led that were followed, if others had led to them."""
        (most,) = self._database.row(
            "SELECT max(redirects) FROM urls WHERE number BETWEEN ? AND ?", self.first, self.last
        )
        for table, where in (("redirect_", "refused IS NULL"), ("failure_", "target IS NOT NULL")):
            sql = (
                f"SELECT url, target FROM {table} JOIN urls USING (number) "
                f"WHERE number BETWEEN ? AND ? AND redirects < ? AND {where}"
            )
            yield from self._database.rows(sql, self.first, self.last, most)

    def bodies(self, *, originals: bool = False) -> Iterator[list[Row]]:
        """Give URL, SHA-1 and time of each body that came, in portions.

        With `originals` only HTML pages that came well, or have not changed since an earlier
        walk, and are no duplicates of others.
        """
        which = "same_as IS NULL"
        if originals:
            which = (
                "(status BETWEEN 200 AND 299 OR same_as NOT NULL) AND duplicate_of IS NULL "
                "AND content_type LIKE '%html%'"
            )
        sql = (
            "SELECT number, url, digest, fetched FROM page_ JOIN urls USING (number) "
            f"WHERE number > ? AND number <= ? AND digest NOT NULL AND {which} "
            "ORDER BY number LIMIT ?"
        )
        for portion in self._by_number(sql):
            yield [row[1:] for row in portion]

    def refused(self) -> Iterator[list[str]]:
        """Give what pages and redirects led to and was not followed, as JSON, in portions."""
        sql = (
            "SELECT number, refused FROM links_ WHERE number > ? AND number <= ? "
            "AND refused NOT NULL ORDER BY number LIMIT ?"
        )
        for portion in self._by_number(sql):
            yield [text for _, text in portion]
        yield [
            rows.fast([row])
            for row in self._database.rows(
                "SELECT target, refused FROM redirect_ "
                "WHERE number BETWEEN ? AND ? AND refused NOT NULL",
                self.first,
                self.last,
            )
        ]

    def sitemaps(self) -> list[Sitemap]:
        """Give what came of sitemaps, in that order."""
        columns = "url, kind, entries, admitted, flaws, detail, referrer, refused, exact"
        sql = f"SELECT {columns} FROM sitemaps WHERE walk = ? ORDER BY id"
        return [_sitemap(row) for row in self._database.rows(sql, self.walk)]

    def listings(self) -> dict[str, Listing]:
        """Give what sitemaps say of URLs, by the keys that were given."""
        sql = "SELECT url, sitemap, last_modified, priority FROM listings WHERE walk = ?"
        return {url: Listing(*said) for url, *said in self._database.rows(sql, self.walk)}

    def listing(self, key: str) -> Listing | None:
        """Give what sitemaps say of one URL."""
        sql = "SELECT sitemap, last_modified, priority FROM listings WHERE walk = ? AND url = ?"
        found = self._database.rows(sql, self.walk, rows.near(key))
        return Listing(*found[0]) if found else None


_REFUSED = msgspec.json.Decoder(list[Refused])


def robots(database: Database) -> Iterator[tuple[str, float, Response]]:
    """Give the last answer for the robots.txt of each origin, and when it came."""
    for origin, fetched, status, headers, body in database.rows(
        "SELECT origin, fetched, status, headers, body FROM robots"
    ):
        yield origin, fetched, Response(status, httpx.Headers(_pairs(headers)), body)


def _pairs(headers: str) -> list[tuple[bytes, bytes]]:
    found: list[tuple[str, str]] = msgspec.json.decode(headers)
    return [(key.encode("latin-1"), value.encode("latin-1")) for key, value in found]


def _sitemap(row: Row) -> Sitemap:
    values: Any = rows.exactly(row[:-1], row[-1])
    url, kind, entries, admitted, flaws, detail, referrer, refused = values
    found = () if refused is None else tuple(rows.read(_REFUSED, refused))
    about = (tuple(map(Reason, rows.words(flaws))), detail, referrer, found)
    return Sitemap(url, kind, entries, admitted, *about)


def _number(found: tuple[int, Outcome]) -> int:
    return found[0]
