"""The site `plain`, but for /2 the server hangs up, after all others."""

from __future__ import annotations

from sites import plain
from sites.serving import Answer


def answer(path: str) -> Answer:
    if path == "/2":
        return Answer(hang_up=True, wait=0.7)
    return plain.answer(path)
