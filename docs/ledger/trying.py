"""Run a small program of either side in virtual time, and say how it ended."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from functools import update_wrapper, wraps
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.lowlevel

from virtual import Stuck, run_asyncio, run_trio

WAITS = "waits for ever"


Main = Callable[[], Awaitable[str]]


def said_by(run: Callable[[Main], str], main: Main) -> Callable[[], str]:
    """Return what runs a program, and returns what it says, or that everybody in it waits."""

    @wraps(main)
    def program() -> str:
        try:
            return run(main)
        except Stuck:
            return WAITS

    return program


def on_asyncio(main: Main) -> Callable[[], str]:
    """Let a program run on asyncio, in virtual time."""

    async def quiet() -> str:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        return await main()

    return update_wrapper(said_by(run_asyncio, quiet), main)


def on_trio(main: Main) -> Callable[[], str]:
    """Let a program run on Trio, in virtual time."""
    return said_by(run_trio, main)


class Nursery:
    """A task group of AnyIO that also counts its tasks, as a nursery does."""

    def __init__(self) -> None:
        self._group = anyio.create_task_group()
        self.child_tasks: set[object] = set()

    async def __aenter__(self) -> Nursery:
        await self._group.__aenter__()
        self.cancel_scope, self.start = self._group.cancel_scope, self._group.start
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        return await self._group.__aexit__(*error)

    def start_soon(
        self, work: Callable[..., Awaitable[object]], *args: Any
    ) -> None:
        self.child_tasks.add(task := object())

        async def counted() -> None:
            try:
                await work(*args)
            finally:
                self.child_tasks.discard(task)

        self._group.start_soon(counted)


ANYIO = SimpleNamespace(
    BusyResourceError=anyio.BusyResourceError,
    CancelScope=anyio.CancelScope,
    Event=anyio.Event,
    current_time=anyio.current_time,
    fail_after=anyio.fail_after,
    lowlevel=anyio.lowlevel,
    move_on_after=anyio.move_on_after,
    open_memory_channel=anyio.create_memory_object_stream,
    open_nursery=Nursery,
    run=anyio.run,  # on asyncio, unless it is told otherwise
    sleep=anyio.sleep,
    sleep_forever=anyio.sleep_forever,
    testing=SimpleNamespace(wait_all_tasks_blocked=anyio.wait_all_tasks_blocked),
)
"""Trio's names, as AnyIO has them."""


def on_anyio(program: Callable[[], str]) -> str:
    """Return what a program for Trio says on asyncio, with AnyIO's names in place of Trio's."""
    module = vars(sys.modules[program.__module__])
    theirs = {name: module[name] for name in ("trio", "on_trio") if name in module}
    module.update(
        {name: {"trio": ANYIO, "on_trio": on_asyncio}[name] for name in theirs}
    )
    main = getattr(program, "__wrapped__", None)
    try:
        return on_asyncio(main)() if main else program()
    finally:
        module.update(theirs)


def names(error: BaseException) -> str:
    """Return the kinds of the errors in a group, or of the one that there is."""
    inner: Any = getattr(error, "exceptions", [error])
    return " and ".join(sorted(type(each).__name__ for each in inner))
