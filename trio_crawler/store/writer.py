"""Write a batch of changes as rows, inside a transaction."""

# ruff: noqa: S608 - all names that are put into SQL are our own.

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

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
    - `digests`, the SHA-1s of the bodies of those that are known, by number;
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
    digests: dict[int, bytes] = field(default_factory=dict)
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

_ADMITTED = _insert(
    "urls",
    "number, url, purpose, depth, redirects, priority, referrer, source, walk, tries, ended",
)
_WAITING = "UPDATE urls SET tries = ? WHERE number = ?"
_REDIRECTS = "UPDATE urls SET redirects = ? WHERE number = ?"
_AGAIN = "UPDATE urls SET again = 1 WHERE number = ?"
_ENDED = "UPDATE urls SET ended = 1 WHERE number = ?"


def write_batch(
    database: Database, walk: int, batch: Batch, unchanged: Mapping[str, int], *, careful: bool
) -> None:
    """Write a batch of a walk; the caller begins and commits the transaction.

    `unchanged` has, by URL, the number of the page that a 304 refers to. Unless `careful`, raises
    UnicodeEncodeError or OverflowError for a value that a column cannot hold. `careful` stores the
    nearest value.
    """
    encode: rows.EncodeJson = rows.any_to_json if careful else rows.to_json
    made = defaultdict[str, list[Row]](list)
    made[_ADMITTED] = [_admitted(walk, *each) for each in batch.admitted]
    made[_AGAIN] = [(number,) for number in batch.again]
    made[_WAITING] = [(tries, number) for number, tries in batch.tried]
    made[_REDIRECTS] = list[Row](batch.raised_redirects)
    made[_ENDED] = [(each[0],) for each in (*batch.settled, *batch.sitemaps)]
    for number, fetched, outcome in batch.settled:
        same_as = None
        if isinstance(outcome, Page):
            same_as = unchanged.get(outcome.url) if outcome.status == 304 else None
            digest, *text = _digests(database, outcome, same_as, batch.digests.get(number))
            about = rows.page_values(outcome, fetched, same_as, digest, encode)
            made[_PAGE].append((number, *about, *text))
            if outcome.links or outcome.rejected:
                named = batch.found.get(number, {})
                made[_LINKS].append((number, *rows.link_values(outcome, encode, named)))
            if outcome.facts is not None:
                made[_FACTS].append((number, rows.facts_value(outcome.facts)))
        elif isinstance(outcome, Skipped):
            made[_SKIP].append((number, outcome.reason))
        else:
            kind = type(outcome)
            made[_OTHERS[kind]].append((number, *rows.other_values(outcome, fetched)))
        # What a page points to that has not changed is stored with its content.
        found = rows.found_values(outcome) if same_as is None else None
        if found is not None:
            made[_FOUND].append((number, *found))
    made[_REPEATED] = [(*row[:-1], rows.to_json(row[-1])) for row in batch.repeated]
    for _, sitemap, entries in batch.sitemaps:
        if sitemap is not None:
            made[_SITEMAP].append((walk, *_sitemap(sitemap, encode)))
        made[_LISTING] += [(walk, key, *entry) for key, entry in entries]
    made[_ROBOTS] = [_robots_row(*each) for each in batch.robots]
    for sql, values in made.items():
        if values:
            stored = [tuple(map(rows.column_value, row)) for row in values] if careful else values
            database.execute_many(sql, stored)


def _digests(database: Database, page: Page, same_as: int | None, known: bytes | None) -> Row:
    """Return the digest of a body, unless it is `known`; digest, size and blocks of its text.

    A page that has not changed has those of its content.
    """
    if same_as is None:
        return rows.digests(page, known)
    sql = "SELECT digest, text_digest, text_size, text_blocks FROM page_ WHERE number = ?"
    return next(iter(database.rows(sql, same_as)), (None, None, None, None))


def _admitted(
    walk: int,
    number: int,
    url: str,
    purpose: str,
    depth: int,
    redirects: int,
    referrer: str | int | None,
    priority: float | None,
) -> Row:
    """Return the row of a new URL, with its referrer as a URL or as a number."""
    where = (None, referrer) if isinstance(referrer, int) else (referrer, None)
    return (number, url, purpose, depth, redirects, priority, *where, walk, 0, 0)


def _sitemap(sitemap: Sitemap, encode: rows.EncodeJson) -> Row:
    return (
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


def _robots_row(origin: str, fetched: float, answer: Response) -> Row:
    pairs = [
        (key.decode("latin-1"), value.decode("latin-1"))
        for key, value in answer.headers.raw
        if key.lower() != b"set-cookie"
    ]
    return (origin, fetched, answer.status, rows.to_json(pairs), answer.body)
