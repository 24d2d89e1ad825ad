"""Home comes at once and links to eight pages; each of them is held back for a while."""

from __future__ import annotations

from dataclasses import replace

from sites.serving import NOT_THERE, Answer, page

SIZE = 9


def answer(path: str) -> Answer:
    if path == "/":
        return page(*(f"/{number}" for number in range(1, SIZE)))
    if not path[1:].isdecimal():
        return NOT_THERE
    return replace(page("/"), wait=1.5)
