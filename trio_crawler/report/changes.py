"""What has changed from one walk through a site to the next."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from trio_crawler.report.sections import section
from trio_crawler.report.shortlist import Shortlist
from trio_crawler.report.units import count
from trio_crawler.report.visible import visible

if TYPE_CHECKING:
    from trio_crawler.store.changes import Change

_LISTED = 20
_KINDS = ("new", "changed", "gone")


def changes(found: Iterable[Change], since: float | None, full: bool = False) -> str:
    """Count the changes and list what is new, changed and gone, sorted; what did not is counted.

    `since` is when the walk before began, in seconds of Unix time. Of each kind the first 20 are
    listed, with `full` all. What came from the web is escaped (see `visible`); there is no line
    end after the last line.
    """
    most = None if full else _LISTED
    lists: dict[str, Shortlist[tuple[str, str]]] = {kind: Shortlist(most) for kind in _KINDS}
    unchanged = 0
    for change in found:
        if change.kind in lists:
            lists[change.kind].add((change.url, change.detail))
        else:
            unchanged += 1
    counts = ", ".join(f"{count(lists[kind].total)} {kind}" for kind in _KINDS)
    lines = [f"Changes since {_date(since)}: {counts}, {count(unchanged)} unchanged"]
    for kind, kept in lists.items():
        told = (visible(f"{url} ({why})" if why else url) for url, why in kept.items)
        lines += section(kind.capitalize(), kept.total, told, kept.beyond)
    return "\n".join(lines)


def _date(since: float | None) -> str:
    return f"{datetime.fromtimestamp(since, UTC):%Y-%m-%d %H:%M} UTC" if since else "the last walk"
