"""What happens when a task fails: who hears of it, and who runs on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import trio

from ledger.trying import names, on_asyncio, on_trio


async def after(
    seconds: float, do: Callable[[], object], sleep=asyncio.sleep
) -> None:
    await sleep(seconds)
    do()


def bug() -> None:
    raise ValueError


def other_bug() -> None:
    raise KeyError


# A worker raises, and the others wait for the count that it owes.


@on_asyncio
async def worker_raises_chapter() -> str:
    q: asyncio.Queue[int] = asyncio.Queue()
    q.put_nowait(1)

    async def work() -> None:
        await q.get()
        bug()
        q.task_done()

    workers = [asyncio.create_task(work()) for _ in range(2)]
    await q.join()
    return f"ends, {workers}"


@on_asyncio
async def worker_raises_modern() -> str:
    q: asyncio.Queue[int] = asyncio.Queue()
    q.put_nowait(1)

    async def work() -> None:
        await q.get()
        bug()
        q.task_done()

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(2):
                group.create_task(work())
            await q.join()
    except ExceptionGroup as error:
        return f"ends with {names(error)}"
    return "ends"


@on_trio
async def worker_raises_trio() -> str:
    send, jobs = trio.open_memory_channel[int](1)
    send.send_nowait(1)

    async def work() -> None:
        async for _ in jobs:
            bug()

    try:
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(work)
    except ExceptionGroup as error:
        return f"ends with {names(error)}"
    return "ends"


# Two tasks are woken in the same instant, and fail; a third sleeps.


async def woken(
    event: asyncio.Event | trio.Event, do: Callable[[], object]
) -> None:
    await event.wait()
    do()


def told(error: BaseException, over: bool) -> str:
    errors = getattr(error, "exceptions", [error])
    heard = "both errors" if len(errors) == 2 else "one error"
    return f"{heard}; the third is {'cancelled' if over else 'left running'}"


@on_asyncio
async def two_failures_chapter() -> str:
    event, sleeper = asyncio.Event(), asyncio.create_task(asyncio.sleep(60))
    failing = [woken(event, bug), woken(event, other_bug)]
    asyncio.get_running_loop().call_later(1, event.set)
    try:
        await asyncio.gather(*failing, sleeper)
    except (ValueError, KeyError) as error:
        await asyncio.sleep(0)
        return told(error, sleeper.done())
    return "ends"


@on_asyncio
async def two_failures_modern() -> str:
    event = asyncio.Event()
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(woken(event, bug))
            group.create_task(woken(event, other_bug))
            sleeper = group.create_task(asyncio.sleep(60))
            await asyncio.sleep(1)
            event.set()
    except ExceptionGroup as error:
        return told(error, sleeper.done())
    return "ends"


@on_trio
async def two_failures_trio() -> str:
    event = trio.Event()
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(woken, event, bug)
            nursery.start_soon(woken, event, other_bug)
            nursery.start_soon(trio.sleep, 60)
            await trio.sleep(1)
            event.set()
    except ExceptionGroup as error:
        return told(error, not nursery.child_tasks)
    return "ends"


# The same, but it is a sleep that they wake from.


two_sleepers_chapter = two_failures_chapter


@on_asyncio
async def two_sleepers_modern() -> str:
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(after(1, bug))
            group.create_task(after(1, other_bug))
            sleeper = group.create_task(asyncio.sleep(60))
    except ExceptionGroup as error:
        return told(error, sleeper.done())
    return "ends"


@on_trio
async def two_sleepers_trio() -> str:
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(after, 1, bug, trio.sleep)
            nursery.start_soon(after, 1, other_bug, trio.sleep)
            nursery.start_soon(trio.sleep, 60)
    except ExceptionGroup as error:
        return told(error, not nursery.child_tasks)
    return "ends"


# The program catches the error of its one child by name.


@on_asyncio
async def caught_by_name_chapter() -> str:
    try:
        await asyncio.gather(after(1, bug))
    except ValueError:
        return "caught"
    return "ends"


def caught_by_name_modern() -> str:
    async def main() -> str:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(after(1, bug))
        except ValueError:
            return "caught"
        return "ends"

    return missed(on_asyncio(main))


def caught_by_name_trio() -> str:
    async def main() -> str:
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(after, 1, bug, trio.sleep)
        except ValueError:
            return "caught"
        return "ends"

    return missed(on_trio(main))


def missed(run: Callable[[], str]) -> str:
    try:
        return run()
    except* ValueError:
        said = "missed: it comes in a group"
    return said
