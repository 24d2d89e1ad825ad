"""How a program ends: by Ctrl-C, with tasks left over, and in a test that cannot wait."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import trio
import trio.testing

from ledger.trying import on_asyncio, on_trio


@contextmanager
def default_handler() -> Iterator[None]:
    """Let Ctrl-C be what it is in a program that runs alone."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def interrupted(run: Callable[[list[str]], object]) -> str:
    """Run a program that is interrupted; say whether its worker's `finally` has run by then."""
    unwound: list[str] = []
    with default_handler():
        try:
            run(unwound)
        except BaseException:
            return "its workers are unwound" if unwound else "its workers are left"
    return "not interrupted"


# Ctrl-C while a worker waits.


async def press(unwound: list[str]) -> None:
    worker = asyncio.create_task(waiting(unwound))
    await asyncio.sleep(0)
    signal.raise_signal(signal.SIGINT)
    await worker


async def waiting(unwound: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        unwound.append("unwound")


def ctrl_c_chapter() -> str:
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda loop, context: None)
    try:
        return interrupted(lambda unwound: loop.run_until_complete(press(unwound)))
    finally:
        swept(loop)


def swept(loop: asyncio.AbstractEventLoop) -> None:
    """End what the program left, so that the next one begins in a clean house."""
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()


def ctrl_c_modern() -> str:
    return interrupted(lambda unwound: asyncio.run(press(unwound)))


def ctrl_c_trio() -> str:
    def run(unwound: list[str]) -> None:
        async def worker() -> None:
            try:
                await trio.sleep_forever()
            finally:
                unwound.append("unwound")

        trio.run(pressed_in_nursery, worker)

    return interrupted(run)


async def pressed_in_nursery(worker) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker)
        await trio.testing.wait_all_tasks_blocked()
        signal.raise_signal(signal.SIGINT)


# The program catches Ctrl-C by its name.

CAUGHT = "caught"


def by_name_chapter() -> str:
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda loop, context: None)
    with default_handler():
        try:
            loop.run_until_complete(press([]))
        except KeyboardInterrupt:
            return CAUGHT
        finally:
            swept(loop)
    return "not interrupted"


def by_name_modern() -> str:
    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(waiting([]))
            await asyncio.sleep(0)
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(0)

    with default_handler():
        try:
            asyncio.run(main())
        except KeyboardInterrupt:
            return CAUGHT
        except BaseExceptionGroup:
            return "missed: it comes in a group"
    return "not interrupted"


def by_name_trio() -> str:
    with default_handler():
        try:
            trio.run(pressed_in_nursery, trio.sleep_forever)
        except KeyboardInterrupt:
            return CAUGHT
        except BaseExceptionGroup:
            return "missed: it comes in a group"
    return "not interrupted"


# The program's main function returns, and a worker still waits.


def left_over_chapter() -> str:
    loop = asyncio.new_event_loop()
    unwound: list[str] = []

    async def main() -> None:
        keep.append(asyncio.create_task(waiting(unwound)))
        await asyncio.sleep(0)

    keep: list[object] = []
    loop.run_until_complete(main())
    said = "left in the middle" if not unwound else "unwound"
    swept(loop)
    return said


@on_asyncio
async def left_over_modern() -> str:
    unwound: list[str] = []
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(60)).add_done_callback(
            lambda task: unwound.append("unwound")
        )
    return "cannot be: the block waits" if unwound else "left in the middle"


@on_trio
async def left_over_trio() -> str:
    unwound: list[str] = []

    async def worker() -> None:
        await trio.sleep(60)
        unwound.append("unwound")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker)
    return "cannot be: the block waits" if unwound else "left in the middle"


# A thousand fetches, 30 s apart, are to be tested in no time.


def fake_time_asyncio() -> str:
    shipped = [name for name in dir(asyncio) if "clock" in name.lower()]
    return (
        f"by {shipped[0]}"
        if shipped
        else "by hand: a loop with another time and selector"
    )


fake_time_anyio = fake_time_asyncio


def fake_time_trio() -> str:
    async def main() -> None:
        for _ in range(1000):
            await trio.sleep(30)

    clock = trio.testing.MockClock(autojump_threshold=0)
    trio.run(main, clock=clock)
    return f"by {type(clock).__name__}"
