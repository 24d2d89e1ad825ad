"""How a task is started: who keeps it, and who hears when it cannot start."""

from __future__ import annotations

import asyncio
import gc
import weakref

import trio
import trio.testing

from ledger.failing import bug
from ledger.trying import on_asyncio, on_trio

# A server fails before it is ready, and its client waits for it to be.


@on_asyncio
async def start_chapter() -> str:
    ready = asyncio.Event()

    async def server() -> None:
        bug()
        ready.set()

    task = asyncio.create_task(server())
    await ready.wait()
    return f"ends, {task}"


@on_asyncio
async def start_modern() -> str:
    ready = asyncio.Event()

    async def server() -> None:
        bug()
        ready.set()

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(server())
            try:
                await ready.wait()
            except ValueError:
                return "the error comes where it was started"
    except ExceptionGroup:
        return "the whole group ends with the error"
    return "ends"


@on_trio
async def start_trio() -> str:
    async def server(task_status: trio.TaskStatus[None]) -> None:
        bug()
        task_status.started()

    try:
        async with trio.open_nursery() as nursery:
            try:
                await nursery.start(server)
            except ValueError:
                return "the error comes where it was started"
    except ExceptionGroup:
        return "the whole group ends with the error"
    return "ends"


# No variable keeps the task, and only the task knows what it waits for.


def collected(task: weakref.ref[asyncio.Task[object]]) -> str:
    gc.collect()
    return "collected" if task() is None else "kept"


async def alone() -> None:
    await asyncio.get_running_loop().create_future()


@on_asyncio
async def unkept_chapter() -> str:
    task = weakref.ref(asyncio.create_task(alone()))
    await asyncio.sleep(0)
    return collected(task)


@on_asyncio
async def unkept_modern() -> str:
    async with asyncio.TaskGroup() as group:
        task = weakref.ref(group.create_task(alone()))
        await asyncio.sleep(0)
        said = collected(task)
        task().cancel()
    return said


@on_trio
async def unkept_trio() -> str:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)
        await trio.testing.wait_all_tasks_blocked()
        gc.collect()
        said = "kept" if nursery.child_tasks else "collected"
        nursery.cancel_scope.cancel()
    return said
