"""A site without an end: each page links to two new ones, and takes 0.1 s."""

from __future__ import annotations

from dataclasses import replace

from sites.serving import NOT_THERE, Answer, page


def answer(path: str) -> Answer:
    name = path.removeprefix("/") or "0"
    if not name.isdecimal():
        return NOT_THERE
    number = int(name)
    return replace(page(f"/{2 * number + 1}", f"/{2 * number + 2}"), wait=0.1)
