"""Run a small program of either side in virtual time, and say how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from virtual import Stuck, run_asyncio, run_trio

WAITS = "waits for ever"


def on_asyncio(main: Callable[[], Awaitable[str]]) -> str:
    """Return what the program says, or that everybody in it waits."""

    async def quiet() -> str:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        return await main()

    try:
        return run_asyncio(quiet)
    except Stuck:
        return WAITS


def on_trio(main: Callable[[], Awaitable[str]]) -> str:
    """Return what the program says, or that everybody in it waits."""
    try:
        return run_trio(main)
    except Stuck:
        return WAITS


def names(error: BaseException) -> str:
    """Return the kinds of the errors in a group, or of the one that there is."""
    inner: Any = getattr(error, "exceptions", [error])
    return " and ".join(sorted(type(each).__name__ for each in inner))
