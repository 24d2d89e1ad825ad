"""The site `plain`, with one page that takes an hour."""

from __future__ import annotations

from dataclasses import replace

from sites import plain
from sites.serving import Answer


def answer(path: str) -> Answer:
    said = plain.answer(path)
    return replace(said, wait=3600.0) if path == "/12" else said
