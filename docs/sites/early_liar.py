"""The site `plain`, but /2 belies its charset, and comes before others."""

from __future__ import annotations

from dataclasses import replace

from sites import plain
from sites.serving import Answer


def answer(path: str) -> Answer:
    if path == "/2":
        return Answer("<title>Café</title>".encode("latin-1"), wait=0.2)
    return replace(plain.answer(path), wait=0.0 if path == "/" else 1.0)
