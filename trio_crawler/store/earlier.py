"""What earlier walks of a crawl directory have found, and a refresh need not ask for again."""

# ruff: noqa: S608 - all names that are put into SQL are our own.

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from trio_crawler.model import REDIRECTS, Checked, Page, Reason, Validator
from trio_crawler.page.links import READ
from trio_crawler.page.media import MARKUP
from trio_crawler.page.read import Facts
from trio_crawler.policy.settings import Checks
from trio_crawler.store import rows
from trio_crawler.store.database import (
    BadRow,
    Count,
    Database,
    Digest,
    Latin1,
    Number,
    Time,
    Url,
    checked,
)
from trio_crawler.store.found import COLUMNS, found_fields, stored_places
from trio_crawler.store.schema import REFERRER
from trio_crawler.store.walk import made_outcomes, named_url

# A 304 refers to an earlier page with content, so its page is good.
_WHOLE = "coalesce(page_.flaws, '') NOT LIKE '%\"too_large\"%'"
_GOOD = "(page_.status BETWEEN 200 AND 299 OR page_.same_as NOT NULL)"
_VALIDATOR_ROW: Any = tuple[Url, int, Latin1 | None, Latin1 | None, Digest, Time, int]
_CHECK_ROW: Any = tuple[Url, Number, Count | None, str | None, str | None, str | None, int, int]
_FOUND_ROW: Any = tuple[Url, Count, str | None, str | None, bytes | None]
_MOST_HOPS = 100


def validators(
    database: Database, first: int, checks: Checks
) -> Iterator[tuple[str, int, Validator]]:
    """Yield URL, number and validator of each page that was good before the URL `first`.

    Pages without a validator are left out, and those that were cut: with a greater limit more
    of them may be read now. So are pages whose links were not stored, if the crawl has `checks`.
    The number is the number of the page with the content, from the last walk in which it was good.
    """
    sql = (
        "SELECT url, coalesce(of.number, page_.number), coalesce(page_.etag, of.etag), "
        "coalesce(page_.last_modified, of.last_modified), page_.digest, "
        "max(0, coalesce(of.fetched - of.seconds, page_.fetched - page_.seconds)), "
        "max(page_.number) FROM page_ "
        "JOIN urls USING (number) LEFT JOIN page_ AS of ON of.number = page_.same_as "
        f"WHERE page_.number < ? AND {_GOOD} AND {_WHOLE} AND {_with_links(checks)} GROUP BY url"
    )
    for portion in database.portions(_VALIDATOR_ROW, sql, first):
        for url, number, *known, _ in portion:
            if any(known[:2]):
                yield url, number, Validator(*known)


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


class Known(NamedTuple):
    """The number of a check of an earlier walk, and whether the places at its end are known."""

    number: int
    places: bool


def fine_checks(database: Database, first: int, max_age: float) -> Iterator[tuple[str, Known]]:
    """Yield the URLs outside the crawl whose last check before the URL `first` was fine.

    That was at most `max_age` seconds ago, and the answer was a success (2xx), or a redirect that
    led to one. A URL that was not asked for itself is left out.
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
    for portion in database.portions(_CHECK_ROW, sql, first, now - max_age, now):
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


def stored_check(database: Database, number: int) -> Checked:
    """Return the answer to a check, and the places there, by the number of the check."""
    sql = (
        "SELECT url, status, target, fragment, targets FROM check_ JOIN urls USING (number) "
        "LEFT JOIN found_ USING (number) WHERE number = ?"
    )
    found = database.read(_FOUND_ROW, sql, number)
    with database.store_errors():
        if not found:
            raise BadRow(f"the check {number} is missing")
        url, status, target, fragment, packed = found[0]
        places = stored_places(packed)
        return Checked(url, status, target=target, targets=places, fragment=fragment or "")


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
    make = partial(rows.page, named=partial(named_url, database))
    for row in database.rows(sql, number):
        with database.store_errors():
            ((found, page),) = made_outcomes([row[:4] + row[5:]], rows.PAGE_ROW, make)
            digest = checked(Digest, row[4])
            sql = f"SELECT {COLUMNS} FROM found_ WHERE number = ?"
            for packed in database.rows(sql, found):
                page = replace(page, **found_fields(page, packed))
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
        found=page.found,
        targets=page.targets,
    )
