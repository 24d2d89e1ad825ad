"""Write a batch of changes as rows, inside a transaction."""

# ruff: noqa: S608 - all names that are put into SQL are our own.

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from trio_crawler.model import (
    Checked,
    Failure,
    Listing,
    Outcome,
    Page,
    Redirect,
    Response,
    Sitemap,
    Skipped,
)
from trio_crawler.store import rows
from trio_crawler.store.database import Database, Row

if TYPE_CHECKING:
    from trio_crawler.store.streams import Stream


@dataclass(slots=True)
class Batch:
    """Changes of a crawl, to be written in one transaction.

    Each number is the number of a URL; times are seconds since 1970.

    - `admitted`, new URLs: number, URL, purpose, depth, redirects left, the URL or the
      number of the referrer, and priority; numbers increase;
    - `again`, the numbers of those among `admitted` whose URLs were admitted before;
    - `found`, by the number of a page the numbers of the URLs that it links to: with these its
      links are stored;
    - `repeated`, pages that were fetched twice, among `settled`: number, the blocks of the text at
      the second fetch, whether its title was another, and the shapes of links that only one had;
    - `settled`, URLs with an outcome: number, time and the outcome, which has the URL, depth and
      referrer of that number;
    - `sitemaps`, finished sitemaps: number (0 if it was not requested), the sitemap (None if it
      redirects), and its entries by seen key;
    - `tried`, URLs that wait for a retry: number and tries made;
    - `raised_redirects`, redirect budgets raised after admission: redirects left and number;
    - `robots`, responses for robots.txt: origin, time and response;
    - `writes`, outcomes for streams;
    - `retries`, the number of tries beyond the first.
    """

    admitted: list[tuple[int, str, str, int, int, str | int | None, float | None]] = field(
        default_factory=list
    )
    again: list[int] = field(default_factory=list)
    found: dict[int, dict[str, int]] = field(default_factory=dict)
    repeated: list[tuple[int, bytes, bool, tuple[str, ...]]] = field(default_factory=list)
    settled: list[tuple[int, float, Outcome]] = field(default_factory=list)
    sitemaps: list[tuple[int, Sitemap | None, list[tuple[str, Listing]]]] = field(
        default_factory=list
    )
    tried: list[tuple[int, int]] = field(default_factory=list)
    raised_redirects: list[tuple[int, int]] = field(default_factory=list)
    robots: list[tuple[str, float, Response]] = field(default_factory=list)
    writes: list[tuple[Stream, list[Outcome]]] = field(default_factory=list)
    retries: int = 0


def _insert(table: str, columns: str) -> str:
    marks = ", ".join("?" * len(columns.split(",")))
    return f"INSERT INTO {table} ({columns}) VALUES ({marks})"


_PAGE = _insert("page_", f"number, {rows.PAGE}, text_digest, text_size, text_blocks")
_LINKS = _insert("links_", "number, links, rejected")
_SKIP = _insert("skip_", "number, reason")
_OTHERS: Mapping[type[Outcome], str] = {
    Redirect: _insert("redirect_", f"number, {rows.REDIRECT}"),
    Failure: _insert("failure_", f"number, {rows.FAILURE}"),
    Checked: _insert("check_", f"number, {rows.CHECK}"),
}
_FACTS = _insert("facts_", "number, facts")
_FOUND = _insert("found_", f"number, {rows.FOUND}")
_REPEATED = _insert("repeated_", "number, blocks, retitled, links")
_SITEMAP = _insert(
    "sitemaps",
    "walk, url, kind, entries, admitted, flaws, detail, referrer, rejected, fetched",
)
_LISTING = (
    "INSERT OR IGNORE INTO listings (walk, url, sitemap, last_modified, priority) "
    "VALUES (?, ?, ?, ?, ?)"
)
_ROBOTS = (
    "INSERT OR REPLACE INTO robots (origin, fetched, status, headers, body) VALUES (?, ?, ?, ?, ?)"
)

_Digests: TypeAlias = tuple[bytes | None, bytes | None, int | None, bytes | None]
"""The digest of a body; the digest, the size and the blocks of its text."""


class BatchWriter:
    """The rows of one batch; `write` may be called again after a rollback.

    `unchanged` has, by URL, the number of the page that a 304 refers to.
    """

    def __init__(
        self, database: Database, walk: int, batch: Batch, unchanged: Mapping[str, int]
    ) -> None:
        self._database = database
        self._walk = walk
        self._batch = batch
        self._unchanged = unchanged
        self._digests: dict[int, _Digests] = {}

    def write(self, careful: bool) -> None:
        """Write the batch; the caller begins and commits the transaction.

        Unless `careful`, raises UnicodeEncodeError or OverflowError for a value that a column
        cannot hold. `careful` stores the nearest value.
        """
        self._write_admitted(careful)
        self._write_settled(careful)
        self._write_sitemaps(careful)
        answers = [_robots_row(*each) for each in self._batch.robots]
        stored = map(_column_values, answers) if careful else answers
        self._database.execute_many(_ROBOTS, stored)

    def _write_admitted(self, careful: bool) -> None:
        batch, many = self._batch, self._database.execute_many
        admitted = map(_admitted, batch.admitted)
        many(
            "INSERT INTO urls (number, url, purpose, depth, redirects, priority, referrer, "
            "source, tries, ended, walk) "
            f"VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, 0, {self._walk:d})",
            map(_column_values, admitted) if careful else admitted,
        )
        many("UPDATE urls SET again = 1 WHERE number = ?", [(each,) for each in batch.again])
        waiting = ((tries, number) for number, tries in batch.tried)
        many("UPDATE urls SET tries = ? WHERE number = ?", waiting)
        many("UPDATE urls SET redirects = ? WHERE number = ?", batch.raised_redirects)

    def _write_settled(self, careful: bool) -> None:
        settled, many = self._batch.settled, self._database.execute_many
        many("UPDATE urls SET ended = 1 WHERE number = ?", [(number,) for number, _, _ in settled])
        pages = self._pages(careful)
        texts = [self._digests[row[0]][1:] for row in pages]
        many(_PAGE, [(*r[:-2], *text) for r, text in zip(pages, texts, strict=True)])
        many(_LINKS, [(row[0], *row[-2:]) for row in pages if row[-2] or row[-1]])
        many(_FOUND, self._found())
        kept = [(number, page.facts) for number, _, page in settled if isinstance(page, Page)]
        many(_FACTS, [(number, rows.facts_value(each)) for number, each in kept if each])
        repeated = self._batch.repeated
        many(_REPEATED, [(*row[:-1], rows.to_json(row[-1])) for row in repeated])
        for sql, others in self._others(careful).items():
            many(sql, others)

    def _pages(self, careful: bool) -> list[Row]:
        encode: rows.EncodeJson = rows.any_to_json if careful else rows.to_json
        found = []
        for number, fetched, page in self._batch.settled:
            if isinstance(page, Page):
                same_as, (digest, *_) = self._content(number, page)
                numbers = self._batch.found.get(number, {})
                values = rows.page_values(page, fetched, same_as, digest, encode, numbers)
                found.append(_row(number, values, careful))
        return found

    def _found(self) -> Iterator[Row]:
        """Yield the rows of what pages point to; that of a 304 is stored with its content."""
        for number, _, outcome in self._batch.settled:
            values = rows.found_values(outcome)
            if values is not None and not (
                isinstance(outcome, Page) and self._content(number, outcome)[0]
            ):
                yield (number, *values)

    def _content(self, number: int, page: Page) -> tuple[int | None, _Digests]:
        """Return the number of the page that a 304 refers to, and the digests of the body."""
        same_as = self._unchanged.get(page.url) if page.status == 304 else None
        if number not in self._digests:
            self._digests[number] = (
                (rows.body_digest(page), *rows.text_values(page))
                if same_as is None
                else self._stored_digests(same_as)
            )
        return same_as, self._digests[number]

    def _stored_digests(self, number: int) -> _Digests:
        sql = "SELECT digest, text_digest, text_size, text_blocks FROM page_ WHERE number = ?"
        for digest, text_digest, size, blocks in self._database.rows(sql, number):
            return digest, text_digest, size, blocks
        return None, None, None, None

    def _others(self, careful: bool) -> Mapping[str, list[Row]]:
        """Return the rows of the outcomes that are no pages, by their statement."""
        found = defaultdict[str, list[Row]](list)
        for number, fetched, outcome in self._batch.settled:
            if isinstance(outcome, Skipped):
                found[_SKIP].append((number, outcome.reason))
            elif not isinstance(outcome, Page):
                values = rows.other_values(outcome, fetched)
                found[_OTHERS[type(outcome)]].append(_row(number, values, careful))
        return found

    def _write_sitemaps(self, careful: bool) -> None:
        done, many = self._batch.sitemaps, self._database.execute_many
        many("UPDATE urls SET ended = 1 WHERE number = ?", [(number,) for number, _, _ in done])
        found = [_sitemap(sitemap, careful) for _, sitemap, _ in done if sitemap is not None]
        many(_SITEMAP, [(self._walk, *row) for row in found])
        entries = [(self._walk, key, *entry) for _, _, found in done for key, entry in found]
        many(_LISTING, map(_column_values, entries) if careful else entries)


def _row(number: int, values: rows.Values, careful: bool) -> Row:
    return (number, *(_column_values(values) if careful else values))


def _admitted(row: Row) -> Row:
    """Return the values of a new URL, with its referrer as a URL or as a number."""
    *about, referrer, priority = row
    where = (None, referrer) if isinstance(referrer, int) else (referrer, None)
    return (*about, priority, *where)


def _column_values(row: Row) -> Row:
    return tuple(map(rows.column_value, row))


def _sitemap(sitemap: Sitemap, careful: bool) -> Row:
    encode: rows.EncodeJson = rows.any_to_json if careful else rows.to_json
    values = (
        sitemap.url,
        sitemap.kind,
        sitemap.entries,
        sitemap.admitted,
        encode(sitemap.flaws) if sitemap.flaws else None,
        sitemap.detail,
        sitemap.referrer,
        encode(sitemap.rejected) if sitemap.rejected else None,
        sitemap.fetched,
    )
    return _column_values(values) if careful else values


def _robots_row(origin: str, fetched: float, answer: Response) -> Row:
    pairs = [
        (key.decode("latin-1"), value.decode("latin-1"))
        for key, value in answer.headers.raw
        if key.lower() != b"set-cookie"
    ]
    return (origin, fetched, answer.status, rows.to_json(pairs), answer.body)
