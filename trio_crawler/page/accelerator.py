"""The compiled readers of pages, if they were built and are not turned off.

▶ `tests/bench/scanner.py`, for a page of 28 KB (SQLite's documentation): `html/_scan.c` takes
35 us for its links, and the tokenizer 363; `_text.c` takes 80 us for the digest of its text, and
Python 525. The tags of a page of python3-doc that may point somewhere take 222 us, and in Python
1,112. The readers in Python remain for what the scanner gives up and for machines without a
compiler, and are the oracles: `tests/rigs/scanner_fuzz.py` and `tests/rigs/text_fuzz.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from trio_crawler.arguments import public

Scanned: TypeAlias = tuple[bool, list[str], list[str], str | None, str | None]
Scan: TypeAlias = Callable[..., Scanned | None]
Tags: TypeAlias = Callable[..., "list[tuple[str, int, int, int, int, int, bool]] | None"]

_Urls: TypeAlias = "dict[str, bytearray | None]"
_Rest: TypeAlias = "dict[Any, tuple[int, Any]]"
Pointing: TypeAlias = (
    "tuple[_Urls, _Urls, dict[Any, _Urls], _Rest, set[str], str | None, str | None, bytes]"
)
Targets: TypeAlias = Callable[..., "Pointing | None"]


class Text(Protocol):
    """The functions of `_text.pyi`."""

    def outline(self, source: bytes, /) -> tuple[int, list[tuple[int, int]]]: ...
    def words(
        self,
        source: bytes,
        signals: frozenset[bytes],
        hints: bytes,
        around: int,
        change: Callable[[bytes], bytes],
        /,
    ) -> tuple[bytes, list[tuple[int, int]], bytes]: ...
    def hints(self, signals: frozenset[bytes], /) -> bytes: ...


def _load() -> tuple[Scan, Tags, Targets, Text] | tuple[None, None, None, None]:
    if os.environ.get("TRIO_CRAWLER_PURE"):
        return None, None, None, None
    try:
        from trio_crawler.page import _text
        from trio_crawler.page.html import _scan
    except ImportError:
        return None, None, None, None
    return _scan.scan, _scan.tags, _scan.targets, _text


scan, tags, targets, text = _load()
"""The functions of `_scan.pyi`, and `_text.pyi`; each None if pages are read in Python."""


@public("trio_crawler.page")
def has_accelerator() -> bool:
    """Whether compiled readers find the links of pages and digest their text.

    They do if a C compiler was there when the package was installed, unless the environment
    variable TRIO_CRAWLER_PURE was set when they were imported.
    """
    return scan is not None
