"""The compiled scanner of links, `_scan.c`, if it was built and is not turned off.

▶ `tests/bench/scanner.py`: for the links of a page of 14 KB it takes 25 us, and `fast_links` 74
(PostgreSQL's documentation); for those of a page of 25 KB 41 and 200 us (Apache's). The readers in
Python remain for what it gives up and for machines without a compiler, and are its oracle:
`tests/page/scanner_fuzz.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeAlias

Scanned: TypeAlias = tuple[list[str], list[str], str | None, str | None]
Scan: TypeAlias = Callable[[str, Callable[[str], str], bool, int], Scanned | None]


def _load() -> Scan | None:
    if os.environ.get("TRIO_CRAWLER_PURE"):
        return None
    try:
        from trio_crawler.page.html import _scan
    except ImportError:
        return None
    return _scan.scan


scan = _load()
"""The function `scan` of `_scan.pyi`; None if links are found in Python."""


def has_accelerator() -> bool:
    """Whether a compiled scanner finds the links of pages.

    It does if a C compiler was there when the package was installed, unless the environment
    variable TRIO_CRAWLER_PURE was set when the scanner was imported.
    """
    return scan is not None


has_accelerator.__module__ = "trio_crawler.page"
