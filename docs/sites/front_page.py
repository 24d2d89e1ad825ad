"""The plain site, but its first page is not in the charset that it states."""

from __future__ import annotations

from sites import plain
from sites.serving import Answer


def answer(path: str) -> Answer:
    if path == "/":
        return Answer('<title>Café</title><a href="/1">1</a>'.encode("latin-1"))
    return plain.answer(path)
