"""Indexable: the pages that a search engine is meant to list."""

from __future__ import annotations

from trio_crawler.model import Page
from trio_crawler.page.urls import seen_key

_HTML = ("text/html", "application/xhtml+xml")
NOT_MODIFIED = 304


def is_html(page: Page) -> bool:
    """Tell whether a page is HTML by its Content-Type."""
    return page.content_type.partition(";")[0].strip().lower() in _HTML


def is_well(page: Page) -> bool:
    """Tell whether a page is there: 2xx, or in a crawl that refreshes as it was before (304)."""
    return page.ok or page.status == NOT_MODIFIED


def is_elsewhere(page: Page) -> bool:
    """Tell whether a page names another one as its canonical page."""
    return bool(page.canonical) and seen_key(page.canonical or "") != seen_key(page.url)


def is_indexable(page: Page) -> bool:
    """Tell whether a page is HTML and well, and neither a duplicate nor asks not to be listed."""
    if not is_html(page) or not is_well(page):
        return False
    return not (page.duplicate_of or "noindex" in page.robots or is_elsewhere(page))
