"""Bounds on the bodies that a fetch reads, by the purposes of jobs."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from trio_crawler.model import Purpose
from trio_crawler.net.http1.wire import MAX_BYTES
from trio_crawler.policy.robots import MAX_BYTES as ROBOTS_BYTES

__all__ = ["MAX_BYTES", "ROBOTS_BYTES", "SITEMAP_BYTES", "SMALL_BYTES", "Bounds", "bounds_within"]

SITEMAP_BYTES = 50 * 1024 * 1024
"""The default bound on the bytes of a sitemap (sitemaps.org)."""

SMALL_BYTES = 64 * 1024
"""A body of at most this many bytes is read even if nothing needs it, to keep the connection."""


class Bounds(NamedTuple):
    """Bounds on the body of a response.

    A body of more than `max_bytes` is a fault, or is cut there with `truncate`; after `enough`
    bytes as sent no more is read. Without `errors` the body of an error response (400 and up) is
    not read. With `pages` bodies that a crawl does not need are not.
    """

    max_bytes: int
    truncate: bool = False
    enough: float = inf
    errors: bool = True
    pages: bool = False


def bounds_within(max_bytes: int) -> dict[Purpose, Bounds]:
    """Return the bounds for each purpose, of a fetch that reads at most `max_bytes` of a page."""
    # A limit below the default, or above 50 MiB, applies to sitemaps too.
    sitemap = max_bytes if max_bytes < MAX_BYTES else max(max_bytes, SITEMAP_BYTES)
    return {
        **dict.fromkeys(Purpose, Bounds(max_bytes, truncate=True, pages=True)),
        Purpose.ROBOTS: Bounds(ROBOTS_BYTES, truncate=True, enough=ROBOTS_BYTES, errors=False),
        Purpose.SITEMAP: Bounds(sitemap, errors=False),
    }
