"""Links as CSV: one line for each link of each page, for spreadsheets and graphs."""

from __future__ import annotations

from collections.abc import Iterator

from trio_crawler.model import Anchor, Outcome, Page, Redirect
from trio_crawler.report.cells import Cell, record, records

HEAD = record(("page", "url", "kind", "text", "reason"))
"""The line of the columns' names."""

_UNKNOWN = Anchor("", "")


def rows(outcome: Outcome) -> bytes:
    """Encode the links of one outcome as lines of CSV; none where there are none.

    `page` leads to `url` by an element called `kind` ("a", "area"), with the `text` that its first
    anchor shows; both are empty for a crawl that kept no anchors. `reason` says why the link was
    refused, and is empty where it was followed. Those that were followed come first. A redirect
    is a line too, of the kind "redirect".
    """
    return records(_links(outcome))


def _links(outcome: Outcome) -> Iterator[tuple[Cell, ...]]:
    if isinstance(outcome, Redirect):
        yield outcome.url, outcome.target, "redirect", "", outcome.refused
    elif isinstance(outcome, Page):
        anchor = outcome.anchors.get
        for url in outcome.links:
            yield outcome.url, url, *anchor(url, _UNKNOWN), None
        for url, reason in outcome.refused:
            yield outcome.url, url, *anchor(url, _UNKNOWN), reason
