"""Versions: what earlier walks know of a page, for a request that asks whether it has changed."""

# ruff: noqa: S608 - all names that are put into SQL are our own.

from __future__ import annotations

from collections.abc import Iterator

from trio_crawler.model import Page, Reason, Validator
from trio_crawler.page.read import Facts
from trio_crawler.store import rows
from trio_crawler.store.database import Database

# A 304 stands for a page with content, and tells that this was still good.
_GOOD = "(page_.status BETWEEN 200 AND 299 OR page_.same_as NOT NULL)"


def validators(database: Database, first: int) -> Iterator[tuple[str, int, Validator]]:
    """Give each URL with a validator whose page was good before the number `first`.

    The number is that of the page with the content, of the last time that it was good.
    """
    sql = (
        "SELECT url, coalesce(of.number, page_.number), coalesce(page_.etag, of.etag), "
        "coalesce(page_.last_modified, of.last_modified), max(page_.number) "
        "FROM page_ JOIN urls USING (number) LEFT JOIN page_ AS of ON of.number = page_.same_as "
        f"WHERE page_.number < ? AND {_GOOD} GROUP BY url"
    )
    for portion in database.stream(sql, first):
        for url, number, etag, last_modified, _ in portion:
            if etag or last_modified:
                yield url, number, Validator(etag, last_modified)


def page_at(database: Database, number: int) -> tuple[int, Page] | None:
    """Give the page at a number, or that which it stands for, and the number of that."""
    sql = (
        f"SELECT number, url, depth, referrer, {_columns()} "
        "FROM page_ LEFT JOIN links_ USING (number) JOIN urls USING (number) "
        "WHERE number = (SELECT coalesce(same_as, number) FROM page_ WHERE number = ?)"
    )
    for found, url, depth, referrer, *values, exact in database.rows(sql, number):
        were = rows.exactly(tuple(values), exact)
        return found, rows.page(url, depth, referrer, were)
    return None


def _columns() -> str:
    own = ", ".join(f"page_.{name}" for name in f"{rows.PAGE}, exact".split(", ")[:-1])
    return f"{own}, links_.links, links_.refused, page_.exact"


def facts_of(page: Page, digest: bytes | None = None) -> Facts:
    """Give what a page with this body said, as far as its outcome tells.

    Its links come in another order: those that were followed, then those that were not. Which
    ones were marked nofollow is known of those that were refused for it.
    """
    bad = [url for url, reason in page.refused if reason is Reason.BAD_URL]
    refused = [url for url, reason in page.refused if reason is not Reason.BAD_URL]
    return Facts(
        page.content_type,
        page.charset,
        page.title,
        tuple(dict.fromkeys((*page.links, *refused))),
        tuple(bad),
        page.links_beyond,
        page.flaws,
        frozenset(url for url, reason in page.refused if reason is Reason.REL_NOFOLLOW),
        page.canonical,
        page.robots,
        anchors=page.anchors,
        digest=digest,
    )
