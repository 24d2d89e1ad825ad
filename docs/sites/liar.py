"""The site `plain`, but /5 is not in the charset it states, and comes late."""

from __future__ import annotations

from sites import plain
from sites.serving import Answer


def answer(path: str) -> Answer:
    if path == "/5":
        return Answer("<title>Café</title>".encode("latin-1"), wait=0.7)
    return plain.answer(path)
