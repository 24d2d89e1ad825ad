"""Changes: what a walk found otherwise than the one before."""

# ruff: noqa: S608 - all names that are put into SQL are our own.

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from trio_crawler.store import rows
from trio_crawler.store.database import Database
from trio_crawler.store.walk import PORTION, Walk

_NOT_MET = "no page links to it any more"
_ENDS = """urls LEFT JOIN page_ ON page_.number = urls.number
    LEFT JOIN page_ AS content ON content.number = page_.same_as
    LEFT JOIN redirect_ ON redirect_.number = urls.number
    LEFT JOIN failure_ ON failure_.number = urls.number
    LEFT JOIN skip_ ON skip_.number = urls.number"""
_STATE = """page_.status, page_.digest, coalesce(content.size, page_.size), redirect_.target,
    failure_.reason, skip_.reason"""
_REFUSED = msgspec.json.Decoder(list[tuple[Any, ...]])


class Change(NamedTuple):
    """Say what became of a URL from one walk to the next.

    `kind` is "new" for one that was not met before, "gone" for one that worked before (a page of
    2xx, or a redirect) and now is an error or not met any more, "unchanged" for one that says the
    same as before, and "changed" for the others. `detail` says how, in a few words; a URL that is
    new and works, or is unchanged, has none.
    """

    url: str
    kind: str
    detail: str = ""


class State(NamedTuple):
    """Say how a URL ended in a walk: one of status, target, failure and skip is there."""

    status: int | None
    digest: bytes | None
    size: int | None
    target: str | None
    failure: str | None
    skip: str | None

    @property
    def good(self) -> bool:
        """Tell whether it was a page."""
        return self.status is not None and (200 <= self.status < 300 or self.status == 304)

    @property
    def works(self) -> bool:
        """Tell whether it was a page, or led to another URL."""
        return self.good or self.target is not None

    @property
    def told(self) -> str:
        """Say in a word what it was."""
        if self.target is not None:
            return f"redirects to {self.target}"
        return "a page" if self.good else self.failure or str(self.status)

    @property
    def group(self) -> str:
        """Name what it belongs with: errors of one class of status mean the same."""
        if self.works:
            return self.told
        return "failure" if self.failure else f"{(self.status or 0) // 100}xx"


def compared(before: State | None, now: State) -> tuple[str, str] | None:
    """Return kind and detail of a change; None if nothing can be said."""
    if now.skip is not None:
        return ("gone", f"not asked for: {now.skip}") if before and before.works else None
    if before is None or before.skip is not None:
        return "new", "" if now.good else now.told
    if before.works and not now.works:
        return "gone", now.told
    if not (before.good and now.good):
        if before.group == now.group:
            return "unchanged", ""
        return "changed", f"{now.told}, before: {before.told}"
    if now.status == 304 or now.digest == before.digest:
        return "unchanged", ""
    return "changed", f"{now.size:,} bytes, before: {before.size:,}"


def changes(database: Database, before: int, now: int) -> Iterator[Change]:
    """Compare two walks, URL by URL in the order of the later one, then what that did not meet.

    Of a walk that is not finished only what has ended is compared. The database gets a temporary
    table of the earlier walk, and is asked for portions: the crawl may go on meanwhile.
    """
    old, new = Walk(database, before), Walk(database, now)
    complete = not new.waits
    _keep(database, old)
    after = new.first - 1
    while found := database.rows(_COMPARED, after, new.last, PORTION):
        for _, url, ended, known, *states in found:
            was, state = State(*states[:6]), State(*states[6:])
            change = compared(was if known else None, state) if ended else None
            if change is not None:
                yield Change(url, *change)
        after = found[-1][0]
    if complete:
        yield from _left(database, new)


def _keep(database: Database, old: Walk) -> None:
    database.do(
        "CREATE TEMP TABLE old (url PRIMARY KEY, status, digest, size, target, failure, skip) "
        "WITHOUT ROWID"
    )
    database.do(
        f"INSERT OR REPLACE INTO temp.old SELECT urls.url, {_STATE} FROM {_ENDS} "
        "WHERE urls.number BETWEEN ? AND ? AND purpose = 'page' AND ended",
        old.first,
        old.last,
    )


_COMPARED = f"""SELECT urls.number, urls.url, ended, old.url NOT NULL, old.status, old.digest,
    old.size, old.target, old.failure, old.skip, {_STATE}
    FROM {_ENDS} LEFT JOIN temp.old ON old.url = urls.url
    WHERE urls.number > ? AND urls.number <= ? AND purpose = 'page' ORDER BY urls.number LIMIT ?"""


def _left(database: Database, new: Walk) -> Iterator[Change]:
    """Say what became of the URLs that a finished walk did not meet."""
    found = database.rows(
        "SELECT * FROM temp.old WHERE skip IS NULL AND url NOT IN "
        "(SELECT url FROM urls WHERE number BETWEEN ? AND ?)",
        new.first,
        new.last,
    )
    why = _refused(database, new, {url for url, *_ in found}) if found else {}
    for url, *state in found:
        was = State(*state)
        detail = f"not followed any more: {why[url]}" if url in why else _NOT_MET
        if was.works:
            yield Change(url, "gone", detail)
        else:
            yield Change(url, "changed", f"{detail}, before: {was.told}")


def _refused(database: Database, walk: Walk, urls: set[str]) -> dict[str, str]:
    """Tell for which reason some URLs were not followed."""
    why: dict[str, str] = {}
    for portion in walk.refused():
        for text in portion:
            for url, reason, *_ in rows.read(_REFUSED, text):
                if url in urls:
                    why.setdefault(url, reason)
    return why
