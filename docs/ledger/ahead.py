"""Where asyncio is ahead of Trio, or Trio costs more: measured coarsely, or looked up."""

from __future__ import annotations

import asyncio
import importlib.util
import time
import tracemalloc
from functools import cache

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


@cache
def memory() -> tuple[int, int]:
    """Return the bytes of a waiting task, on asyncio and on Trio."""
    tracemalloc.start()
    try:
        return asyncio.run(idle_asyncio(), debug=False), trio.run(idle_trio)
    finally:
        tracemalloc.stop()


def memory_asyncio() -> str:
    ours, theirs = memory()
    return "the smaller task" if ours < theirs else "the larger task"


def memory_trio() -> str:
    theirs, ours = memory()
    return "the smaller task" if ours < theirs else "the larger task"


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


@cache
def taking() -> tuple[float, float]:
    """Return the best of five: seconds of processor for the jobs, on asyncio and on Trio."""
    pairs = [
        (asyncio.run(taking_asyncio(), debug=False), trio.run(taking_trio))
        for _ in range(5)
    ]
    return min(each[0] for each in pairs), min(each[1] for each in pairs)


def compared(ours: float, theirs: float) -> str:
    """Say it coarsely: a busy machine changes a time by less than a factor of two."""
    if ours * 2 < theirs:
        return "less than half of what Trio takes"
    return (
        "more than twice what asyncio takes"
        if theirs * 2 < ours
        else "about the same"
    )


def taking_faster_asyncio() -> str:
    ours, theirs = taking()
    return compared(ours, theirs)


def taking_faster_trio() -> str:
    theirs, ours = taking()
    return compared(ours, theirs)


# A live process is looked into from outside.


def from_outside_asyncio() -> str:
    if importlib.util.find_spec("asyncio.tools") is None:
        return "not in this Python"
    return "`python -m asyncio pstree` and its process id"


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
