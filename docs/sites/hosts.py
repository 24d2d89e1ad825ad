"""Two hosts: `slow` wants 10 s between two requests, `fast` wants nothing."""

from __future__ import annotations

from collections.abc import Iterator

from sites.serving import Answer

REST = {"slow": 10.0, "fast": 0.0}  # seconds


def urls() -> Iterator[str]:
    """Give the URLs of both as links come: mixed, one slow to ten fast."""
    for n in range(20):
        yield f"http://slow/{n}"
        yield from (f"http://fast/{m}" for m in range(10 * n, 10 * n + 10))


def answer(path: str) -> Answer:
    return Answer(f"<title>{path}</title>", wait=0.1)
