"""An entry: one batch as changes of rows, to be made inside a transaction."""

# ruff: noqa: S608 - all names that are put into SQL are our own.

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trio_crawler.model import Failure, Listing, Page, Redirect, Response, Sitemap
from trio_crawler.store import rows
from trio_crawler.store.batch import Batch
from trio_crawler.store.database import Database, Row
from trio_crawler.store.rows import Dumps


def _insert(table: str, columns: str) -> str:
    marks = ", ".join("?" * len(columns.split(",")))
    return f"INSERT INTO {table} ({columns}) VALUES ({marks})"


_PAGE = _insert("page_", f"number, {rows.PAGE}, exact")
_LINKS = _insert("links_", "number, links, refused")
_REDIRECT = _insert("redirect_", f"number, {rows.REDIRECT}, exact")
_FAILURE = _insert("failure_", f"number, {rows.FAILURE}, exact")
_SKIP = _insert("skip_", "number, reason")
_SITEMAP = _insert(
    "sitemaps", "walk, url, kind, entries, admitted, flaws, detail, referrer, refused, exact"
)
_LISTING = (
    "INSERT OR IGNORE INTO listings (walk, url, sitemap, last_modified, priority) "
    "VALUES (?, ?, ?, ?, ?)"
)
_ROBOTS = (
    "INSERT OR REPLACE INTO robots (origin, fetched, status, headers, body) VALUES (?, ?, ?, ?, ?)"
)


class Entry:
    """Make the changes of one batch; `make` may be called again, after a rollback.

    `unchanged` has, by URL, the number of the page that a 304 stands for.
    """

    def __init__(
        self, database: Database, walk: int, first: int, batch: Batch, unchanged: Mapping[str, int]
    ) -> None:
        self._database = database
        self._walk = walk
        self._first = first
        self._batch = batch
        self._unchanged = unchanged
        self._digests: dict[int, bytes | None] = {}

    def make(self, careful: bool) -> None:
        """Make the changes; if not `careful`, of what a table can hold as it is.

        Else it raises UnicodeEncodeError or OverflowError.
        """
        self._admit(careful)
        self._settle(careful)
        self._sitemaps(careful)
        self._robots(careful)

    def _admit(self, careful: bool) -> None:
        batch, many = self._batch, self._database.many
        if batch.admitted:
            many(
                "INSERT INTO urls (number, url, purpose, depth, redirects, referrer, priority, "
                f"tries, ended, walk) VALUES (?, ?, ?, ?, ?, ?, ?, 0, 0, {self._walk:d})",
                map(_near, batch.admitted) if careful else batch.admitted,
            )
        if batch.tried:
            waiting = ((tries, number) for number, tries in batch.tried)
            many("UPDATE urls SET tries = ? WHERE number = ?", waiting)
        for redirects, which in batch.fuller:
            self._fuller(redirects, which)

    def _fuller(self, redirects: int, which: int | str) -> None:
        if isinstance(which, int):
            sql = "UPDATE urls SET redirects = ? WHERE number = ?"
            self._database.do(sql, redirects, which)
        else:
            # Without an index, which would cost every URL something.
            sql = "UPDATE urls SET redirects = ? WHERE number >= ? AND url = ?"
            self._database.do(sql, redirects, self._first, rows.near(which))

    def _settle(self, careful: bool) -> None:
        settled, many = self._batch.settled, self._database.many
        if not settled:
            return
        many("UPDATE urls SET ended = 1 WHERE number = ?", [(number,) for number, _, _ in settled])
        if pages := self._pages(careful):
            many(_PAGE, [(*row[:-3], row[-1]) for row in pages])
            many(_LINKS, [(row[0], *row[-3:-1]) for row in pages if row[-3] or row[-2]])
        for sql, found in self._others(careful):
            if found:
                many(sql, found)

    def _pages(self, careful: bool) -> list[Row]:
        dumps: Dumps = rows.careful if careful else rows.fast
        found = []
        for number, fetched, page in self._batch.settled:
            if isinstance(page, Page):
                same_as, digest = self._content(number, page)
                values = rows.of_page(page, fetched, same_as, digest, dumps)
                found.append(_row(number, values, careful))
        return found

    def _content(self, number: int, page: Page) -> tuple[int | None, bytes | None]:
        """Return which page a 304 stands for, and the digest of the body."""
        same_as = self._unchanged.get(page.url) if page.status == 304 else None
        if number not in self._digests:
            self._digests[number] = rows.digest_of(page) if same_as is None else self._old(same_as)
        return same_as, self._digests[number]

    def _old(self, number: int) -> bytes | None:
        found = self._database.rows("SELECT digest FROM page_ WHERE number = ?", number)
        return found[0][0] if found else None

    def _others(self, careful: bool) -> Iterator[tuple[str, list[Row]]]:
        redirects, failures, skips = [], [], []
        for number, fetched, outcome in self._batch.settled:
            if isinstance(outcome, Redirect):
                redirects.append(_row(number, rows.of_redirect(outcome, fetched), careful))
            elif isinstance(outcome, Failure):
                failures.append(_row(number, rows.of_failure(outcome, fetched), careful))
            elif not isinstance(outcome, Page):
                skips.append((number, outcome.reason))
        yield from ((_REDIRECT, redirects), (_FAILURE, failures), (_SKIP, skips))

    def _sitemaps(self, careful: bool) -> None:
        done, many = self._batch.sitemaps, self._database.many
        if not done:
            return
        many("UPDATE urls SET ended = 1 WHERE number = ?", [(number,) for number, _, _ in done])
        found = [_sitemap(sitemap, careful) for _, sitemap, _ in done if sitemap is not None]
        many(_SITEMAP, [(self._walk, *row) for row in found])
        said = [_listing(self._walk, *each) for _, _, listings in done for each in listings]
        many(_LISTING, map(_near, said) if careful else said)

    def _robots(self, careful: bool) -> None:
        found = [_answer(*each) for each in self._batch.robots]
        if found:
            self._database.many(_ROBOTS, map(_near, found) if careful else found)


def enter_run(database: Database, run: int, seconds: float, retries: int) -> None:
    """Note how long a run has taken, and its tries beyond the first since the last note."""
    sql = "UPDATE runs SET seconds = ?, retries = retries + ? WHERE run = ?"
    database.do(sql, seconds, retries, run)


def _row(number: int, values: rows.Values, careful: bool) -> Row:
    held, exact = rows.storable(values) if careful else (values, None)
    return (number, *held, exact)


def _near(row: Row) -> Row:
    return tuple(map(rows.near, row))


def _sitemap(sitemap: Sitemap, careful: bool) -> Row:
    dumps: Dumps = rows.careful if careful else rows.fast
    values = (
        sitemap.url,
        sitemap.kind,
        sitemap.entries,
        sitemap.admitted,
        dumps(sitemap.flaws) if sitemap.flaws else None,
        sitemap.detail,
        sitemap.referrer,
        dumps(sitemap.refused) if sitemap.refused else None,
    )
    held, exact = rows.storable(values) if careful else (values, None)
    return (*held, exact)


def _listing(walk: int, key: str, said: Listing) -> Row:
    return (walk, key, *said)


def _answer(origin: str, fetched: float, answer: Response) -> Row:
    pairs = [(key.decode("latin-1"), value.decode("latin-1")) for key, value in answer.headers.raw]
    return (origin, fetched, answer.status, rows.fast(pairs), answer.body)
