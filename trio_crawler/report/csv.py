"""Outcomes as CSV: one line for each URL, for spreadsheets."""

from __future__ import annotations

from typing import Any, assert_never

from trio_crawler.model import Failure, Outcome, Page, Redirect, Skipped
from trio_crawler.report.cells import Cell, record

COLUMNS = (
    "kind",
    "url",
    "status",
    "reason",
    "detail",
    "content_type",
    "charset",
    "title",
    "size",
    "depth",
    "referrer",
    "target",
    "tries",
    "seconds",
    "links",
    "refused",
    "canonical",
    "robots",
    "duplicate_of",
    "flaws",
    "phase",
)
HEAD = record(COLUMNS)
"""The line of the columns' names."""


def row(outcome: Outcome) -> bytes:
    """Encode one outcome as a line of CSV, with the columns of `CSV_HEAD`.

    `kind` is page, redirect, failure or skipped; what a kind has not is empty. `size` is in
    bytes, `seconds` to the millisecond; `links` counts the distinct links inside the scope,
    `refused` those outside it. Several robots directives or flaws are parted by spaces. `target`
    is where a redirect leads to, `reason` why that was not admitted, or why a URL has no page.
    """
    told = _told(outcome)
    return record(map(told.get, COLUMNS))


def _told(outcome: Outcome) -> dict[str, Cell]:
    match outcome:
        case Page():
            return _page(outcome)
        case Redirect():
            about = {"status": outcome.status, "reason": outcome.refused}
            return _way(outcome, "redirect", target=outcome.target, **about)
        case Failure():
            why = {"reason": outcome.reason, "detail": outcome.detail, "phase": outcome.phase}
            return _way(outcome, "failure", target=outcome.target, **why)
        case Skipped():
            return _way(outcome, "skipped", reason=outcome.reason)
        case _:
            assert_never(outcome)


def _page(page: Page) -> dict[str, Cell]:
    return _way(
        page,
        "page",
        status=page.status,
        content_type=page.content_type,
        charset=page.charset,
        title=page.title,
        size=page.size,
        links=len(page.links),
        refused=len(page.refused),
        canonical=page.canonical,
        robots=" ".join(page.robots),
        duplicate_of=page.duplicate_of,
        flaws=" ".join(page.flaws),
    )


def _way(outcome: Outcome, kind: str, **more: Any) -> dict[str, Cell]:
    told = {"kind": kind, "url": outcome.url, **more}
    told |= {"depth": outcome.depth, "referrer": outcome.referrer}
    if not isinstance(outcome, Skipped):
        told |= {"tries": outcome.tries, "seconds": round(outcome.seconds, 3)}
    return told
