"""Limits: how far a crawl goes, and what one URL may cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

MAX_BYTES = 10 * 1024 * 1024
"""What a body may have, unless it is said otherwise."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bound a crawl and each URL in it; every figure can be changed, none can be forgotten.

    `max_pages` counts pages, whatever their status, and failures; a redirect gives its place
    to its target. With `max_depth` the crawl goes level by level, so that a page's depth is
    its true distance from a seed. `max_seconds` ends the admission and lets what is in flight
    finish. `timeout` (seconds) and `max_bytes` (of a body, as sent and as decoded) are for one
    attempt at one URL, everything included.

    Raises ValueError, naming the limit, for a figure that cannot be meant.
    """

    max_depth: float = math.inf
    max_pages: float = math.inf
    max_seconds: float = math.inf
    max_redirects: int = 10
    max_tries: int = 4
    max_links: int = 100_000
    max_bytes: int = MAX_BYTES
    timeout: float = 30.0

    def __post_init__(self) -> None:
        _at_least(0, max_depth=self.max_depth, max_redirects=self.max_redirects)
        _at_least(1, max_pages=self.max_pages, max_tries=self.max_tries)
        _at_least(1, max_links=self.max_links, max_bytes=self.max_bytes)
        _above_zero(max_seconds=self.max_seconds, timeout=self.timeout)


def _at_least(least: int, **figures: float) -> None:
    for name, figure in figures.items():
        if not figure >= least:
            raise ValueError(f"{name} must be {least} or more, not {figure}")


def _above_zero(**figures: float) -> None:
    for name, figure in figures.items():
        if not figure > 0:
            raise ValueError(f"{name} must be more than 0, not {figure}")
