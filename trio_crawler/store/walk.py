"""Read one walk of a crawl directory; a walk is one pass over the site."""

# ruff: noqa: S608 - all names that are put into SQL are our own.

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

import httpx
import msgspec

from trio_crawler.model import (
    Listing,
    Outcome,
    Page,
    Reason,
    RejectedLink,
    Response,
    Sitemap,
    Statistics,
    Validator,
)
from trio_crawler.page.read import Facts
from trio_crawler.store import rows
from trio_crawler.store.database import Database, Row
from trio_crawler.store.schema import REFERRER

PORTION = 5_000
"""The most rows of URLs that one query reads."""

_OUTCOMES = 500
_MAX_NUMBER = 2**63 - 1

# A 304 refers to an earlier page with content, so its page is good.
_GOOD = "(page_.status BETWEEN 200 AND 299 OR page_.same_as NOT NULL)"

MakeOutcome: TypeAlias = Callable[[str, int, str | None, rows.Values], Outcome]
_KINDS: tuple[tuple[str, str, MakeOutcome | None], ...] = (
    ("page_", f"{rows.PAGE}, links_.links, links_.rejected, exact", None),
    ("redirect_", f"{rows.REDIRECT}, exact", rows.redirect),
    ("failure_", f"{rows.FAILURE}, exact", rows.failure),
    ("skip_", "reason, NULL", rows.skipped),
)


class Walk:
    """One walk by its number: a pass over the site, in one run or more.

    Methods that yield portions run one query for each, and keep none open in between, so the crawl
    may write meanwhile. All results are sorted by number, which is the order of admission. Every
    method raises StoreError if the database cannot be read.
    """

    def __init__(self, database: Database, number: int) -> None:
        self.number = number
        self._database = database
        (self.first,) = database.row("SELECT first FROM walks WHERE walk = ?", number)
        # Numbers increase over all walks, so each walk has a range of them.
        (after,) = database.row("SELECT min(first) FROM walks WHERE walk > ?", number)
        self.last = _MAX_NUMBER if after is None else after - 1

    def began(self) -> float:
        """Return when the walk began, in seconds since 1970; 0 for the first walk."""
        sql = "SELECT started FROM walks WHERE walk = ?"
        return float(self._database.row(sql, self.number)[0]) if self.number > 1 else 0.0

    def statistics(self, except_run: int | None = None) -> Statistics:
        """Return the statistics of the walk; the seconds of one run may be left out."""
        pages, size, rejected = self._sums("count(*), sum(size), sum(rejected)", "page_")
        redirects, unfollowed = self._sums("count(*), count(rejected)", "redirect_")
        (failures,) = self._sums("count(*)", "failure_")
        (skipped,) = self._sums("count(*)", "skip_")
        admitted, ended = self._sums("count(*), sum(ended)", "urls", "AND purpose = 'page'")
        retries, seconds = self._database.row(
            "SELECT sum(retries), sum(seconds) FILTER (WHERE run IS NOT ?) FROM runs "
            "WHERE walk = ?",
            except_run,
            self.number,
        )
        return Statistics(
            admitted=admitted,
            pages=pages,
            redirects=redirects,
            failures=failures,
            skipped=skipped,
            waiting=admitted - (ended or 0),
            retries=retries or 0,
            rejected=(rejected or 0) + unfollowed,
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
        """Whether any URL was admitted."""
        sql = "SELECT 1 FROM urls WHERE number BETWEEN ? AND ? LIMIT 1"
        return bool(self._database.rows(sql, self.first, self.last))

    @property
    def unfinished(self) -> bool:
        """Whether any URL has no outcome."""
        sql = "SELECT 1 FROM urls WHERE number BETWEEN ? AND ? AND NOT ended LIMIT 1"
        return bool(self._database.rows(sql, self.first, self.last))

    def _portions(self, columns: str, where: str) -> Iterator[list[Row]]:
        """Yield rows of the table urls; the first of the columns is the number."""
        return self._by_number(
            f"SELECT {columns} FROM urls WHERE number > ? AND number <= ? "
            f"AND {where} ORDER BY number LIMIT ?"
        )

    def _by_number(self, sql: str) -> Iterator[list[Row]]:
        after = self.first - 1
        while found := self._database.rows(sql, after, self.last, PORTION):
            yield found
            after = found[-1][0]

    def urls(self) -> Iterator[list[tuple[int, str, int]]]:
        """Yield number, URL and redirects left of all pages, with and without an outcome."""
        return self._portions("number, url, redirects", "purpose = 'page'")

    def sitemap_urls(self) -> list[str]:
        """Return the URLs of the sitemaps that were requested or are waiting."""
        sql = "SELECT url FROM urls WHERE number BETWEEN ? AND ? AND purpose = 'sitemap'"
        return [url for (url,) in self._database.rows(sql, self.first, self.last)]

    def waiting(
        self,
    ) -> Iterator[list[tuple[int, str, str, int, int, str | None, float | None, int]]]:
        """Yield the URLs without an outcome: the values of `Batch.admitted`, and their tries."""
        columns = f"number, url, purpose, depth, redirects, {REFERRER}, priority, tries"
        return self._portions(columns, "NOT ended")

    def outcomes(self) -> Iterator[Outcome]:
        """Yield the outcomes; the pages have no bodies."""
        after = self.first - 1
        while True:
            last = min(self.last, self._last_number())
            if after >= last:
                return
            found: list[tuple[int, Outcome]] = []
            for kind in _KINDS:
                found += self._read_outcomes(after, after + _OUTCOMES, *kind)
            found.sort(key=_number)
            yield from (outcome for _, outcome in found)
            after += _OUTCOMES

    def _read_outcomes(
        self, after: int, last: int, table: str, columns: str, make: MakeOutcome | None
    ) -> Iterator[tuple[int, Outcome]]:
        make = make or partial(rows.page, named=partial(_named, self._database))
        links = "LEFT JOIN links_ USING (number)" if table == "page_" else ""
        columns = ", ".join(
            name if "." in name or name == "NULL" else f"{table}.{name}"
            for name in columns.split(", ")
        )
        sql = (
            f"SELECT number, urls.url, depth, {REFERRER}, {columns} "
            f"FROM {table} {links} JOIN urls USING (number) WHERE number > ? AND number <= ?"
        )
        for number, url, depth, referrer, *values, exact in self._database.rows(
            sql, after, min(last, self.last)
        ):
            originals = rows.merge_exact(tuple(values), exact)
            yield number, make(url, depth, referrer, originals)

    def _last_number(self) -> int:
        (number,) = self._database.row("SELECT max(number) FROM urls")
        return number or 0

    def hops(self) -> Iterator[tuple[str, str]]:
        """Yield URL and target of each redirect that was itself the target of a redirect."""
        (full,) = self._database.row(
            "SELECT max(redirects) FROM urls WHERE number BETWEEN ? AND ?", self.first, self.last
        )
        for table, where in (
            ("redirect_", "rejected IS NULL"),
            ("failure_", "target IS NOT NULL"),
        ):
            sql = (
                f"SELECT url, target FROM {table} JOIN urls USING (number) "
                f"WHERE number BETWEEN ? AND ? AND redirects < ? AND {where}"
            )
            yield from self._database.rows(sql, self.first, self.last, full)

    def bodies(self, *, originals: bool = False) -> Iterator[list[tuple[str, bytes, float]]]:
        """Yield URL, SHA-1 and time of each body that was received, in portions.

        With `originals`, only the bodies of HTML pages that are not duplicates, and that are good
        or unchanged since an earlier walk.
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
            yield [(url, digest, fetched) for _, url, digest, fetched in portion]

    def validators(self) -> Iterator[tuple[str, int, Validator]]:
        """Yield URL, number and validator of each page that was good in an earlier walk.

        Pages without a validator are left out. The number is the number of the page with the
        content, from the last walk in which it was good.
        """
        sql = (
            "SELECT url, coalesce(of.number, page_.number), coalesce(page_.etag, of.etag), "
            "coalesce(page_.last_modified, of.last_modified), max(page_.number) FROM page_ "
            "JOIN urls USING (number) LEFT JOIN page_ AS of ON of.number = page_.same_as "
            f"WHERE page_.number < ? AND {_GOOD} GROUP BY url"
        )
        for portion in self._database.portions(sql, self.first):
            for url, number, etag, last_modified, _ in portion:
                if etag or last_modified:
                    yield url, number, Validator(etag, last_modified)

    def rejected(self) -> Iterator[list[str]]:
        """Yield the rejected links of pages and redirects, as JSON, in portions."""
        sql = (
            "SELECT number, rejected FROM links_ WHERE number > ? AND number <= ? "
            "AND rejected NOT NULL ORDER BY number LIMIT ?"
        )
        for portion in self._by_number(sql):
            yield [text for _, text in portion]
        yield [
            rows.to_json([row])
            for row in self._database.rows(
                "SELECT target, rejected FROM redirect_ "
                "WHERE number BETWEEN ? AND ? AND rejected NOT NULL",
                self.first,
                self.last,
            )
        ]

    def sitemaps(self) -> list[Sitemap]:
        """Return the sitemaps, in the order in which they were read."""
        columns = "url, kind, entries, admitted, flaws, detail, referrer, rejected, fetched, exact"
        sql = f"SELECT {columns} FROM sitemaps WHERE walk = ? ORDER BY id"
        return [_sitemap(row) for row in self._database.rows(sql, self.number)]

    def listings(self) -> dict[str, Listing]:
        """Return the sitemap entries of URLs, by the seen keys of the URLs."""
        sql = "SELECT url, sitemap, last_modified, priority FROM listings WHERE walk = ?"
        return {url: Listing(*entry) for url, *entry in self._database.rows(sql, self.number)}

    def listing(self, key: str) -> Listing | None:
        """Return the sitemap entry of the URL with a seen key, or None."""
        sql = "SELECT sitemap, last_modified, priority FROM listings WHERE walk = ? AND url = ?"
        found = self._database.rows(sql, self.number, rows.column_value(key))
        return Listing(*found[0]) if found else None


_REJECTED = msgspec.json.Decoder(list[RejectedLink])


def stored_robots(database: Database) -> Iterator[tuple[str, float, Response]]:
    """Yield the last response for the robots.txt of each origin of all walks, and its time."""
    for origin, fetched, status, headers, body in database.rows(
        "SELECT origin, fetched, status, headers, body FROM robots"
    ):
        yield origin, fetched, Response(status, httpx.Headers(_pairs(headers)), body)


def _pairs(headers: str) -> list[tuple[bytes, bytes]]:
    found: list[tuple[str, str]] = msgspec.json.decode(headers)
    return [(key.encode("latin-1"), value.encode("latin-1")) for key, value in found]


def _sitemap(row: Row) -> Sitemap:
    values: Any = rows.merge_exact(row[:-1], row[-1])
    url, kind, entries, admitted, flaws, detail, referrer, rejected, fetched = values
    links = () if rejected is None else tuple(rows.parse_json(_REJECTED, rejected))
    about = (tuple(map(Reason, rows.parse_strings(flaws))), detail, referrer, links, bool(fetched))
    return Sitemap(url, kind, entries, admitted, *about)


def _named(database: Database, number: int) -> str:
    """Return the URL with a number."""
    url: str = database.row("SELECT url FROM urls WHERE number = ?", number)[0]
    return url


def _number(found: tuple[int, Outcome]) -> int:
    return found[0]


def stored_facts(database: Database, number: int) -> tuple[str, int, Facts] | None:
    """Return the URL, the number and the facts of the page with a number; None if there is none.

    For a 304 these are the number and the facts of the page that it refers to.
    """
    own = ", ".join(f"page_.{name}" for name in rows.PAGE.split(", "))
    sql = (
        f"SELECT number, urls.url, depth, {REFERRER}, page_.digest, "
        f"{own}, links_.links, links_.rejected, page_.exact "
        "FROM page_ LEFT JOIN links_ USING (number) JOIN urls USING (number) "
        "WHERE number = (SELECT coalesce(same_as, number) FROM page_ WHERE number = ?)"
    )
    for found, url, depth, referrer, digest, *values, exact in database.rows(sql, number):
        originals = rows.merge_exact(tuple(values), exact)
        page = rows.page(url, depth, referrer, originals, partial(_named, database))
        return url, found, _facts(page, digest)
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
    )
