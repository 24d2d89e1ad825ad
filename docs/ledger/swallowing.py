"""What becomes of a cancellation that a program swallows."""

from __future__ import annotations

import asyncio

import trio

from errata.ported_loop import CancelledError, Coroutine, Future, Loop, Task
from ledger.trying import on_asyncio, on_trio

GUARD = 1_000


# A worker wraps its work in `except Exception`, and is cancelled.

SWALLOWED, HEARD = "swallowed", "not swallowed"


def except_exception_chapter() -> str:
    loop, said = Loop(), []

    def work() -> Coroutine:
        try:
            yield from Future(loop)
        except Exception:
            said.append(SWALLOWED)

    def main() -> Coroutine:
        Task(loop, work()).cancel()
        return said[0] if said else HEARD
        yield

    assert issubclass(CancelledError, Exception)  # as it was until Python 3.8
    return loop.run_until_complete(main())


@on_asyncio
async def except_exception_modern() -> str:
    async def work() -> str:
        try:
            await asyncio.sleep(60)
        except Exception:
            return SWALLOWED
        return "ends"

    task = asyncio.create_task(work())
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.wait([task])
    return HEARD if task.cancelled() else task.result()


@on_trio
async def except_exception_trio() -> str:
    with trio.move_on_after(1) as scope:
        try:
            await trio.sleep(60)
        except Exception:
            return SWALLOWED
    return HEARD if scope.cancelled_caught else "ends"


# Every await of a loop is wrapped in a bare `except`, and the loop is cancelled.


def spins(turns: int) -> str:
    if turns == GUARD:
        return f"spins: {turns:,} turns in no time"
    return "misses it, and goes on at its pace"


@on_asyncio
async def swallowing_chapter() -> str:
    turns = 0

    async def work() -> None:
        nonlocal turns
        while turns < GUARD:
            turns += 1
            try:
                await asyncio.sleep(1)
            except:
                pass

    task = asyncio.create_task(work())
    await asyncio.sleep(0.5)
    task.cancel()
    await asyncio.sleep(10)
    said = spins(turns)
    turns = GUARD
    return said


@on_trio
async def swallowing_trio() -> str:
    turns = 0
    with trio.move_on_after(0.5):
        while turns < GUARD:
            turns += 1
            try:
                await trio.sleep(1)
            except:
                pass
    return spins(turns)
