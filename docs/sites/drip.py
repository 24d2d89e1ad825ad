"""A page that comes a byte at a time, ten in a second, without a pause."""

from __future__ import annotations

from sites.serving import Answer


def answer(path: str) -> Answer:
    return Answer("drip drip drip d", drip=0.1)
