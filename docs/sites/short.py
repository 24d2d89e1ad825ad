"""The site `plain`, slow but for /2, which promises more bytes than it sends."""

from __future__ import annotations

from dataclasses import replace

from sites import plain
from sites.serving import Answer


def answer(path: str) -> Answer:
    said = plain.answer(path)
    if path == "/2":
        return replace(said, promise=len(said.body) + 1000, wait=0.15)
    return replace(said, wait=0 if path == "/" else 0.4)
