"""The site `plain`, but /2 comes a byte at a time and lasts for minutes."""

from __future__ import annotations

from dataclasses import replace

from sites import plain
from sites.serving import Answer


def answer(path: str) -> Answer:
    said = plain.answer(path)
    if path != "/2":
        return said
    return replace(said, body=f"{said.body}{' ' * 1000}", drip=0.3)
