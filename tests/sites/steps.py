"""Cancel a piece of work at each of its checkpoints in turn, as the torture tests of curl do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio


class _Countdown(trio.abc.Instrument):
    """Cancel a scope at the n-th time that one of its tasks gives way."""

    def __init__(self, scope: trio.CancelScope, checkpoint: int) -> None:
        self._tasks = {trio.lowlevel.current_task()}
        self._scope = scope
        self._left = checkpoint

    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        if task.parent_nursery and task.parent_nursery.parent_task in self._tasks:
            self._tasks.add(task)

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if task in self._tasks:
            self._left -= 1
            if self._left == 0:
                self._scope.cancel()


async def cancelled_at(checkpoint: int, work: Callable[[], Awaitable[object]]) -> bool:
    """Run `work`, cancelled at its n-th checkpoint; tell whether that ended it."""
    with trio.CancelScope() as scope:
        countdown = _Countdown(scope, checkpoint)
        trio.lowlevel.add_instrument(countdown)
        try:
            await work()
        finally:
            trio.lowlevel.remove_instrument(countdown)
    return scope.cancelled_caught


async def until(true: Callable[[], bool], seconds: float = 5.0) -> None:
    """Let the other tasks run until something is true; raise trio.TooSlowError if it never is."""
    with trio.fail_after(seconds):
        while not true():
            await trio.lowlevel.checkpoint()
