"""Home links to twenty-four pages, which take a tenth of a second each."""

from __future__ import annotations

from dataclasses import replace

from sites.serving import NOT_THERE, Answer, page

SIZE = 24
PATHS = [f"/{number}" for number in range(1, SIZE + 1)]


def answer(path: str) -> Answer:
    if path == "/":
        return page(*PATHS)
    return replace(page("/"), wait=0.1) if path in PATHS else NOT_THERE
