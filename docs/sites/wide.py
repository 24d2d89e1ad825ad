"""The root links to two thousand pages, which take longer than anyone waits."""

from __future__ import annotations

from dataclasses import replace

from sites.serving import Answer, page

SIZE = 2000


def answer(path: str) -> Answer:
    if path == "/":
        return page(*(f"/{n}" for n in range(SIZE)))
    return replace(page("/"), wait=30.0)
