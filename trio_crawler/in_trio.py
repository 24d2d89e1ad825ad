"""The check, where a crawl is opened, that Trio runs the task."""

from __future__ import annotations

import trio


def check_in_trio(what: str) -> None:
    """Raise RuntimeError, naming the bridge for asyncio, unless Trio runs this task."""
    # Not `in_trio_run`: in Trio's guest mode that is true in the tasks of asyncio, too.
    if not trio.lowlevel.in_trio_task():
        raise RuntimeError(
            f"{what} runs under Trio: open it in trio.run(), "
            "or in a program under asyncio with trio_crawler.bridged()"
        )
