"""Trio, and nothing else, runs a crawl: checked where one is opened."""

from __future__ import annotations

import trio


def check_in_trio(what: str) -> None:
    """Raise RuntimeError, naming the bridge for asyncio, unless Trio runs this task."""
    # Not `in_trio_run`: where Trio is a guest of asyncio, that holds in asyncio's tasks too.
    if not trio.lowlevel.in_trio_task():
        raise RuntimeError(
            f"{what} runs under Trio: open it in trio.run(), "
            "or in a program under asyncio with trio_crawler.bridged()"
        )
