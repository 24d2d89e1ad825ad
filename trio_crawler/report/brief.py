"""One line for one outcome: what a verbose crawl prints as it goes."""

from __future__ import annotations

from typing import assert_never

from trio_crawler.model import Failure, Outcome, Page, Redirect, Skipped
from trio_crawler.report.units import duration, size
from trio_crawler.report.visible import visible

_TITLE = 80


def brief(outcome: Outcome) -> str:
    """Tell one outcome in one line, with nothing in it that a terminal could obey.

    URLs are whole; a title is cut after 80 characters.
    """
    match outcome:
        case Page():
            return _page(outcome)
        case Redirect(url=url, status=status, target=target, refused=refused):
            why = f" ({refused})" if refused else ""
            return f"{status}  {visible(url)} -> {visible(target)}{why}"
        case Failure(url=url, reason=reason, detail=detail, phase=phase):
            why = f"{reason} ({phase})" if phase else reason
            return f"fail {why} {visible(url)}" + (f": {visible(detail)}" if detail else "")
        case Skipped(url=url, reason=reason):
            return f"skip {reason} {visible(url)}"
        case _:
            assert_never(outcome)


def _page(page: Page) -> str:
    taken = f"{size(page.size):>10} {duration(page.seconds):>8}"
    line = f"{page.status}  {taken}  {visible(page.url)}{_title(page)}"
    if "noindex" in page.robots:
        line += " (noindex)"
    return f"{line} (same as {visible(page.duplicate_of)})" if page.duplicate_of else line


def _title(page: Page) -> str:
    if not page.title:
        return ""
    title = page.title if len(page.title) <= _TITLE else page.title[: _TITLE - 1] + "…"
    return f'  "{visible(title)}"'
