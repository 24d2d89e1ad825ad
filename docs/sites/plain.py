"""A good site of thirteen pages: all link home and are found from there."""

from __future__ import annotations

from sites.serving import NOT_THERE, Answer, page

SIZE = 13


def answer(path: str) -> Answer:
    name = path.removeprefix("/") or "0"
    if not name.isdecimal() or int(name) >= SIZE:
        return NOT_THERE
    number = int(name)
    children = [n for n in (2 * number + 1, 2 * number + 2) if n < SIZE]
    return page("/", *(f"/{n}" for n in children), f"/{number * 5 % SIZE or ''}")
