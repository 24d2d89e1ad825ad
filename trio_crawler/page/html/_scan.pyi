from collections.abc import Callable
from typing import Any

from trio_crawler.page.accelerator import Pointing

def tags(
    text: str, ends: frozenset[str] = ..., lines: str | None = ..., /
) -> list[tuple[str, int, int, int, int, int, bool]] | None: ...
def targets(
    body: bytes,
    decode: Callable[[str], str],
    element: Callable[[str | None, str, str, str], Any],
    elements: dict[bytes, Any],
    /,
    *joining: object,
) -> Pointing | None: ...
def scan(
    body: bytes,
    decode: Callable[[str], str],
    max_links: int,
    own: str = ...,
    home: str = ...,
    root: int = ...,
    known: dict[str, str] = ...,
    shared: dict[str, str] = ...,
    longest: int = ...,
    most: int = ...,
    other: Callable[[str, str], str] = ...,
    room: int = ...,
    /,
) -> tuple[bool, list[str], list[str], str | None, str | None] | None: ...
