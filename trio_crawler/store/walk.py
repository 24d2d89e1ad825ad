"""Read one walk of a crawl directory; a walk is one pass over the site."""

# ruff: noqa: S608 - all names that are put into SQL are our own.

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from operator import itemgetter
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from trio_crawler.model import (
    Checked,
    Failure,
    Listing,
    Outcome,
    Redirect,
    RejectedLink,
    Sitemap,
    Skipped,
    Statistics,
)
from trio_crawler.store import rows
from trio_crawler.store.database import (
    BadRow,
    Count,
    Database,
    Number,
    Row,
    Time,
    Url,
    checked,
    decoded,
    increasing,
)
from trio_crawler.store.schema import REFERRER

PORTION = 5_000
"""The most rows of URLs that one query reads."""

_OUTCOMES = 500
_MAX_NUMBER = 2**63 - 1

WaitingRow: TypeAlias = tuple[int, str, str, int, int, str | None, float | None, int, int]
"""The values of `Batch.admitted`, then the tries, and 1 for a URL that was admitted again."""

_O = TypeVar("_O", bound=Outcome)
MakeOutcome: TypeAlias = Callable[[str, int, str | None, rows.Values], Outcome]


def _made(kind: Any, columns: str) -> MakeOutcome:
    return partial(rows.other, kind, columns.split(", "))


_KINDS: tuple[tuple[str, str, Any, MakeOutcome | None], ...] = (
    ("page_", f"{rows.PAGE}, links_.links, links_.rejected", rows.PAGE_ROW, None),
    ("redirect_", rows.REDIRECT, rows.REDIRECT_ROW, _made(Redirect, rows.REDIRECT)),
    ("failure_", rows.FAILURE, rows.FAILURE_ROW, _made(Failure, rows.FAILURE)),
    ("skip_", "reason", rows.SKIP_ROW, _made(Skipped, "reason")),
    ("check_", rows.CHECK, rows.CHECK_ROW, _made(Checked, rows.CHECK)),
)
_URL_ROW: Any = tuple[int, Url, int]
_TIME_ROW: Any = tuple[int, Url, Time]
_REDIRECTED_ROW: Any = tuple[int, Url, Count]
_PURPOSE: Any = Literal["page", "sitemap", "check", "fragments"]
_OTHER_ROW: Any = tuple[Url, Literal["sitemap", "check", "fragments"]]
_ADMITTED: Any = (int, Url, _PURPOSE, Count, int, str | None, float | None)
_WAITING_ROW: Any = tuple[(*_ADMITTED, Count, Literal[0, 1])]
_TEXT_ROW: Any = tuple[int, Url, str | None, bytes, int]
_REJECTED_ROW: Any = tuple[int, str]
_BODY_ROW: Any = tuple[int, Url, bytes, Time]
_SUMS: Any = tuple[int | None, ...]
_LISTING_ROW: Any = tuple[str, str | None, float | None]
_KEYED_LISTING_ROW: Any = tuple[str, str, str | None, float | None]
_SITEMAP_ROW: Any = tuple[
    str, str, Count, Count, str | None, str, str | None, str | None, Literal[0, 1] | bool
]


class Walk:
    """One walk by its number: a pass over the site, in one run or more.

    Methods that yield portions run one query for each, and keep none open in between, so the crawl
    may write meanwhile. All results are sorted by number, which is the order of admission. Every
    method raises StoreError if the database cannot be read.
    """

    def __init__(self, database: Database, number: int) -> None:
        self.number = number
        self._database = database
        sql = "SELECT (SELECT first FROM walks WHERE walk = ?)"
        (self.first,) = database.read_one(tuple[int], sql, number)
        # Numbers increase over all walks, so each walk has a range of them.
        sql = "SELECT min(first) FROM walks WHERE walk > ?"
        (after,) = database.read_one(tuple[int | None], sql, number)
        self.last = _MAX_NUMBER if after is None else after - 1

    def began(self) -> float:
        """Return when the walk began, in seconds since 1970; 0 for the first walk."""
        sql = "SELECT started FROM walks WHERE walk = ?"
        return (
            self._database.read_one(tuple[Time], sql, self.number)[0] if self.number > 1 else 0.0
        )

    def statistics(self, except_run: int | None = None) -> Statistics:
        """Return the statistics of the walk; the seconds of one run may be left out."""
        pages, size, rejected = self._sums("count(*), sum(size), sum(rejected)", "page_")
        redirects, unfollowed = self._sums("count(*), count(rejected)", "redirect_")
        (failures,) = self._sums("count(*)", "failure_")
        (skipped,) = self._sums("count(*)", "skip_")
        (checked,) = self._sums("count(*)", "check_")
        admitted, ended = self._sums("count(*), sum(ended)", "urls", "AND purpose <> 'sitemap'")
        retries, seconds = self._database.read_one(
            tuple[int | None, float | None],
            "SELECT sum(retries), sum(seconds) FILTER (WHERE run IS NOT ?) FROM runs "
            "WHERE walk = ?",
            except_run,
            self.number,
        )
        return Statistics(
            admitted=admitted or 0,
            pages=pages or 0,
            redirects=redirects or 0,
            failures=failures or 0,
            skipped=skipped or 0,
            checked=checked or 0,
            waiting=(admitted or 0) - (ended or 0),
            retries=retries or 0,
            rejected=(rejected or 0) + (unfollowed or 0),
            bytes=size or 0,
            seconds=seconds or 0.0,
        )

    def _sums(self, sums: str, table: str, where: str = "") -> tuple[int | None, ...]:
        return self._database.read_one(
            _SUMS,
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

    def _portions(self, kind: Any, columns: str, where: str) -> Iterator[list[Any]]:
        """Yield rows of the table urls; the first of the columns is the number."""
        return self._by_number(
            kind,
            f"SELECT {columns} FROM urls WHERE number > ? AND number <= ? "
            f"AND {where} ORDER BY number LIMIT ?",
        )

    def _by_number(self, kind: Any, sql: str) -> Iterator[list[Any]]:
        after = self.first - 1
        while found := self._database.read(kind, sql, after, self.last, PORTION):
            with self._database.store_errors():
                after = increasing(after, found[-1][0])
            yield found

    def urls(self) -> Iterator[list[tuple[int, str, int]]]:
        """Yield number, URL and redirects left of all pages, with and without an outcome.

        Each URL comes once: not again if it was admitted again.
        """
        where = "purpose = 'page' AND again IS NULL"
        return self._portions(_URL_ROW, "number, url, redirects", where)

    def again(self) -> list[tuple[str, int, bool]]:
        """Return the URLs that were admitted again: number, and whether there is an outcome."""
        sql = (
            "SELECT url, number, ended FROM urls "
            "WHERE number BETWEEN ? AND ? AND again NOT NULL AND purpose = 'page'"
        )
        found = self._database.read(tuple[Url, int, int], sql, self.first, self.last)
        return [(url, number, bool(ended)) for url, number, ended in found]

    def others(self) -> list[tuple[str, str]]:
        """Return the URLs of sitemaps and of checks that were admitted, each with its purpose."""
        sql = "SELECT url, purpose FROM urls WHERE number BETWEEN ? AND ? AND purpose <> 'page'"
        return self._database.read(_OTHER_ROW, sql, self.first, self.last)

    def redirected(self) -> Iterator[tuple[str, int]]:
        """Yield URL and depth of each page that was answered with a redirect."""
        sql = (
            "SELECT number, url, depth FROM redirect_ JOIN urls USING (number) "
            "WHERE number > ? AND number <= ? ORDER BY number LIMIT ?"
        )
        for portion in self._by_number(_REDIRECTED_ROW, sql):
            yield from ((url, depth) for _, url, depth in portion)

    def texts_before(self) -> Iterator[tuple[str, str | None, bytes]]:
        """Yield URL, title and text digest of the pages of the walk before, if there is one."""
        if self.number > 1:
            before = Walk(self._database, self.number - 1)
            yield from (text[:3] for text in before.texts())

    def texts(self) -> Iterator[tuple[str, str | None, bytes, bool]]:
        """Yield URL, title and text digest of each page, and whether it was fetched twice."""
        sql = (
            "SELECT number, url, title, text_digest, repeated_.number NOT NULL FROM page_ "
            "JOIN urls USING (number) LEFT JOIN repeated_ USING (number) "
            "WHERE number > ? AND number <= ? AND text_digest NOT NULL AND text_blocks NOT NULL "
            "ORDER BY number LIMIT ?"
        )
        for portion in self._by_number(_TEXT_ROW, sql):
            yield from ((*page, bool(twice)) for _, *page, twice in portion)

    def repeated(self) -> int:
        """Return how many pages were fetched twice."""
        return self._sums("count(*)", "repeated_")[0] or 0

    def waiting(self) -> Iterator[list[WaitingRow]]:
        """Yield the URLs without an outcome, in portions."""
        columns = (
            f"number, url, purpose, depth, redirects, {REFERRER}, priority, tries, again NOT NULL"
        )
        return self._portions(_WAITING_ROW, columns, "NOT ended")

    def outcomes(self, *, found: bool = True, brief: bool = False) -> Iterator[Outcome]:
        """Yield the outcomes; the pages have no bodies.

        Unless `found`, they are without all that a page points to, and without its places. With
        `brief` they are without headers and anchors.
        """
        make_page = partial(rows.page, named=partial(named_url, self._database), brief=brief)
        after = self.first - 1
        while (last := self._last_of_portion(after)) is not None:
            outcomes: list[tuple[int, Outcome]] = []
            for table, columns, kind, make in _KINDS:
                how = (table, columns, kind, make or make_page)
                outcomes += self._read_outcomes(after, last, *how)
            outcomes.sort(key=itemgetter(0))
            sql = "SELECT number FROM urls WHERE number > ? AND number <= ? AND again NOT NULL"
            again = set(self._database.read(tuple[int], sql, after, last))
            packed = self._found(after, last) if found else {}
            sql = "SELECT number, facts FROM facts_ WHERE number > ? AND number <= ?"
            facts = dict(self._database.read(tuple[int, str], sql, after, last))
            for number, outcome in outcomes:
                more: dict[str, Any] = {"again": True} if (number,) in again else {}
                if number in packed:
                    # One by one: in memory the links of a page take ten times as much.
                    with self._database.store_errors():
                        more |= rows.found_fields(outcome, packed.pop(number))
                if number in facts:
                    with self._database.store_errors():
                        more["facts"] = rows.stored_page_facts(facts[number])
                yield replace(outcome, **more) if more else outcome
            after = last

    def times(self) -> Iterator[tuple[str, float]]:
        """Yield each URL that was asked for, with the time of its outcome."""
        for table in ("page_", "redirect_", "failure_", "check_"):
            sql = (
                f"SELECT number, url, fetched FROM {table} JOIN urls USING (number) "
                f"WHERE number > ? AND number <= ? AND {table}.tries ORDER BY number LIMIT ?"
            )
            for portion in self._by_number(_TIME_ROW, sql):
                yield from ((url, fetched) for _, url, fetched in portion)

    def _found(self, after: int, last: int) -> dict[int, Row]:
        """Return the rows of all that pages point to, by the numbers of the outcomes."""
        columns = ", ".join(f"found_.{name}" for name in rows.FOUND.split(", "))
        sql = (
            f"SELECT page_.number, {columns} FROM page_ "
            "JOIN found_ ON found_.number = coalesce(page_.same_as, page_.number) "
            "WHERE page_.number > ? AND page_.number <= ? "
            f"UNION ALL SELECT check_.number, {columns} FROM check_ JOIN found_ USING (number) "
            "WHERE check_.number > ? AND check_.number <= ?"
        )
        return {row[0]: row[1:] for row in self._database.rows(sql, after, last, after, last)}

    def _last_of_portion(self, after: int) -> int | None:
        """Return the last of the next numbers after one; None if there are none."""
        sql = (
            "SELECT max(number) FROM (SELECT number FROM urls "
            "WHERE number > ? AND number <= ? ORDER BY number LIMIT ?)"
        )
        (last,) = self._database.read_one(tuple[int | None], sql, after, self.last, _OUTCOMES)
        with self._database.store_errors():
            return None if last is None else increasing(after, last)

    def _read_outcomes(
        self,
        after: int,
        last: int,
        table: str,
        columns: str,
        kind: Any,
        make: MakeOutcome,
    ) -> list[tuple[int, Outcome]]:
        links = "LEFT JOIN links_ USING (number)" if table == "page_" else ""
        columns = ", ".join(
            name if "." in name else f"{table}.{name}" for name in columns.split(", ")
        )
        sql = (
            f"SELECT number, urls.url, depth, {REFERRER}, {columns} "
            f"FROM {table} {links} JOIN urls USING (number) WHERE number > ? AND number <= ?"
        )
        stored = self._database.rows(sql, after, last)
        with self._database.store_errors():
            return made_outcomes(stored, kind, make)

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
            yield from self._database.read(tuple[Url, str], sql, self.first, self.last, full)

    def bodies(self, *, originals: bool = False) -> Iterator[list[tuple[str, bytes, float]]]:
        """Yield URL, SHA-1 and time of the request of each body that was received, in portions.

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
            "SELECT number, url, digest, max(0, fetched - seconds) FROM page_ "
            "JOIN urls USING (number) "
            f"WHERE number > ? AND number <= ? AND digest NOT NULL AND {which} "
            "ORDER BY number LIMIT ?"
        )
        for portion in self._by_number(_BODY_ROW, sql):
            yield [(url, digest, began) for _, url, digest, began in portion]

    def rejected(self) -> Iterator[list[str]]:
        """Yield the rejected links of pages and redirects, as JSON, in portions."""
        sql = (
            "SELECT number, rejected FROM links_ WHERE number > ? AND number <= ? "
            "AND rejected NOT NULL ORDER BY number LIMIT ?"
        )
        for portion in self._by_number(_REJECTED_ROW, sql):
            yield [text for _, text in portion]
        yield [
            rows.to_json([row])
            for row in self._database.read(
                tuple[str, str],
                "SELECT target, rejected FROM redirect_ "
                "WHERE number BETWEEN ? AND ? AND rejected NOT NULL",
                self.first,
                self.last,
            )
        ]

    def sitemaps(self) -> list[Sitemap]:
        """Return the sitemaps, in the order in which they were read."""
        columns = "url, kind, entries, admitted, flaws, detail, referrer, rejected, fetched"
        sql = f"SELECT {columns} FROM sitemaps WHERE walk = ? ORDER BY id"
        stored = self._database.rows(sql, self.number)
        with self._database.store_errors():
            return [_sitemap(row) for row in stored]

    def listings(self) -> dict[str, Listing]:
        """Return the sitemap entries of URLs, by the seen keys of the URLs."""
        sql = "SELECT url, sitemap, last_modified, priority FROM listings WHERE walk = ?"
        found = self._database.read(_KEYED_LISTING_ROW, sql, self.number)
        return {url: Listing(*entry) for url, *entry in found}

    def listing(self, key: str) -> Listing | None:
        """Return the sitemap entry of the URL with a seen key, or None."""
        sql = "SELECT sitemap, last_modified, priority FROM listings WHERE walk = ? AND url = ?"
        found = self._database.read(_LISTING_ROW, sql, self.number, rows.column_value(key))
        return Listing(*found[0]) if found else None


_REJECTED = msgspec.json.Decoder(list[RejectedLink])


_OUTCOME_TABLES = ("page_", "redirect_", "failure_", "skip_", "check_")
_LAST_ROW: Any = tuple[Number, int]


def last_number(database: Database) -> int:
    """Return the highest number of a URL in any walk; 0 if there is none."""
    others = ", ".join(
        f"(SELECT coalesce(max(number), 0) FROM {each})" for each in _OUTCOME_TABLES
    )
    sql = f"SELECT (SELECT coalesce(max(number), 0) FROM urls), max({others})"
    number, ended = database.read_one(_LAST_ROW, sql)
    with database.store_errors():
        if ended > number:
            raise BadRow(f"an outcome of URL {ended}, but {number} URLs")
    return int(number)


def made_outcomes(
    stored: list[Row], kind: Any, make: Callable[[str, int, str | None, rows.Values], _O]
) -> list[tuple[int, _O]]:
    """Return number and outcome of rows of a kind. Raises BadRow."""
    # ▶ All at once: to check each row alone takes 20 us more.
    found: Any = checked(list[kind], stored)
    return [(row[0], make(row[1], row[2], row[3], row[4:])) for row in found]


def _sitemap(row: Row) -> Sitemap:
    values = checked(_SITEMAP_ROW, row)
    url, kind, entries, admitted, flaws, detail, referrer, rejected, fetched = values
    if fetched or kind:
        # Only of one that was rejected the URL may be anything.
        checked(Url, url)
    links = () if rejected is None else tuple(decoded(_REJECTED, rejected))
    about = (rows.parse_reasons(flaws), detail, referrer, links, bool(fetched))
    return Sitemap(url, kind, entries, admitted, *about)


def named_url(database: Database, number: int) -> str:
    """Return the URL with a number. Raises BadRow if there is none."""
    found = database.read(tuple[Url], "SELECT url FROM urls WHERE number = ?", number)
    if not found:
        raise BadRow(f"a link has the number {number}, which no URL has")
    return found[0][0]
