"""Trio: the check that it runs the task, and tasks that start whole or not at all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import trio


def check_in_trio(what: str) -> None:
    """Raise RuntimeError, naming the bridge for asyncio, unless Trio runs this task."""
    # Not `in_trio_run`: in Trio's guest mode that is true in the tasks of asyncio, too.
    if not trio.lowlevel.in_trio_task():
        raise RuntimeError(
            f"{what} runs under Trio, not under asyncio: open it in trio.run(main), also in a "
            "notebook, or in a program under asyncio with trio_crawler.bridged()"
        ) from None


@trio.lowlevel.enable_ki_protection
def start_soon(nursery: trio.Nursery, task: Callable[..., Awaitable[Any]], *args: object) -> None:
    """Start a task in a nursery; Ctrl-C waits until it is started.

    Trio does not protect this itself: a KeyboardInterrupt halfway leaves a task that never runs,
    and the nursery waits for it.
    """
    nursery.start_soon(task, *args)
