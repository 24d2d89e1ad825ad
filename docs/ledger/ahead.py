"""Where asyncio is ahead of Trio, or Trio costs more: measured coarsely, or looked up."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import time
import tracemalloc
from functools import cache, partial

import anyio
import trio
import trio.testing

from ledger.trying import names

TASKS = 200
JOBS = 500


# Many tasks wait, and each takes memory.


async def idle_asyncio() -> int:
    before = tracemalloc.get_traced_memory()[0]
    tasks = [asyncio.create_task(asyncio.sleep(60)) for _ in range(TASKS)]
    await asyncio.sleep(0)
    taken = tracemalloc.get_traced_memory()[0] - before
    for each in tasks:
        each.cancel()
    await asyncio.wait(tasks)
    return taken // TASKS


async def idle_trio() -> int:
    before = tracemalloc.get_traced_memory()[0]
    async with trio.open_nursery() as nursery:
        for _ in range(TASKS):
            nursery.start_soon(trio.sleep, 60)
        await trio.testing.wait_all_tasks_blocked()
        taken = tracemalloc.get_traced_memory()[0] - before
        nursery.cancel_scope.cancel()
    return taken // TASKS


async def idle_anyio() -> int:
    before = tracemalloc.get_traced_memory()[0]
    async with anyio.create_task_group() as group:
        for _ in range(TASKS):
            group.start_soon(anyio.sleep, 60)
        await anyio.wait_all_tasks_blocked()
        taken = tracemalloc.get_traced_memory()[0] - before
        group.cancel_scope.cancel()
    return taken // TASKS


@cache
def memory() -> list[int]:
    """Return the bytes of a waiting task: on asyncio, by AnyIO on asyncio, on Trio."""
    sizes = []
    for run, idle in (
        (asyncio.run, idle_asyncio),
        (anyio.run, idle_anyio),
        (trio.run, idle_trio),
    ):
        gc.collect()
        tracemalloc.start()
        try:
            sizes.append(run(idle() if run is asyncio.run else idle))
        finally:
            tracemalloc.stop()
    return sizes


def memory_rank(side: int) -> str:
    sizes = memory()
    return f"the {('smallest', 'middle', 'largest')[sorted(sizes).index(sizes[side])]} task"


memory_asyncio = partial(memory_rank, 0)
memory_anyio = partial(memory_rank, 1)
memory_trio = partial(memory_rank, 2)


# Jobs go through a queue that is never empty. Trio lets others run at each of them.


async def taking_asyncio() -> float:
    q: asyncio.Queue[int] = asyncio.Queue()
    began = time.thread_time()
    for job in range(JOBS):
        q.put_nowait(job)
        await q.get()
    return time.thread_time() - began


async def taking_trio() -> float:
    send, jobs = trio.open_memory_channel[int](1)
    began = time.thread_time()
    for job in range(JOBS):
        send.send_nowait(job)
        await jobs.receive()
    return time.thread_time() - began


async def taking_anyio() -> float:
    send, jobs = anyio.create_memory_object_stream[int](1)
    began = time.thread_time()
    with send, jobs:
        for job in range(JOBS):
            send.send_nowait(job)
            await jobs.receive()
    return time.thread_time() - began


@cache
def taking() -> list[float]:
    """Return the best of five: seconds of processor for the jobs, as `memory` has the sides."""
    rounds = [
        (
            asyncio.run(taking_asyncio()),
            anyio.run(taking_anyio),
            trio.run(taking_trio),
        )
        for _ in range(5)
    ]
    return [min(column) for column in zip(*rounds, strict=True)]


def compared(side: int) -> str:
    """Say it coarsely: a busy machine changes a time by less than a factor of two."""
    alone, ours = taking()[0], taking()[side or 2]
    if alone * 2 > ours:
        return "about the same"
    return (
        "more than twice what asyncio takes"
        if side
        else "less than half of what Trio takes"
    )


taking_faster_asyncio = partial(compared, 0)
taking_faster_anyio = partial(compared, 1)
taking_faster_trio = partial(compared, 2)


# A live process is looked into from outside.


def from_outside_asyncio() -> str:
    if importlib.util.find_spec("asyncio.tools") is None:
        return "not in this Python"
    return "`python -m asyncio pstree` and its process id"


from_outside_anyio = from_outside_asyncio


def from_outside_trio() -> str:
    return "not shipped; its instruments look from inside"


# A program wants aiohttp's session.


async def session() -> str:
    import aiohttp

    async with aiohttp.ClientSession():
        return "opens"


def ecosystem_asyncio() -> str:
    return asyncio.run(session())


def ecosystem_trio() -> str:
    try:
        return trio.run(session)
    except RuntimeError as error:
        return f"{names(error)}: {error}"
