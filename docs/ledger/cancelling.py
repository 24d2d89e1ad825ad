"""What a cancellation reaches: a task, a group, a part of a task."""

from __future__ import annotations

import asyncio

import trio

from ledger.trying import on_asyncio, on_trio

# A crawl of five workers is cancelled from outside.


def alive(count: int) -> str:
    return f"{count} of 5 workers alive" if count else "no worker alive"


@on_asyncio
async def from_outside_chapter() -> str:
    workers = []

    async def crawl() -> None:
        workers.extend(asyncio.create_task(asyncio.sleep(60)) for _ in range(5))
        await asyncio.Event().wait()

    crawling = asyncio.create_task(crawl())
    await asyncio.sleep(1)
    crawling.cancel()
    await asyncio.sleep(1)
    return alive(sum(not each.done() for each in workers))


@on_asyncio
async def from_outside_modern() -> str:
    workers = []

    async def crawl() -> None:
        async with asyncio.TaskGroup() as group:
            workers.extend(group.create_task(asyncio.sleep(60)) for _ in range(5))

    crawling = asyncio.create_task(crawl())
    await asyncio.sleep(1)
    crawling.cancel()
    await asyncio.sleep(1)
    return alive(sum(not each.done() for each in workers))


@on_trio
async def from_outside_trio() -> str:
    with trio.move_on_after(1):
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(trio.sleep, 60)
    await trio.sleep(1)
    return alive(len(nursery.child_tasks))


# The result and the cancellation come in the same turn of the loop.


async def same_turn(waiting) -> str:
    f = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(waiting(f))
    await asyncio.sleep(1)
    f.set_result(None)
    task.cancel()
    await asyncio.wait([task])
    return "cancelled" if task.cancelled() else "the cancel is lost"


@on_asyncio
async def same_turn_chapter() -> str:
    async def waiting(f: asyncio.Future[None]) -> None:
        await asyncio.wait_for(f, 60)
        await asyncio.sleep(0)

    return await same_turn(waiting)


@on_asyncio
async def same_turn_modern() -> str:
    async def waiting(f: asyncio.Future[None]) -> None:
        async with asyncio.timeout(60):
            await f
            await asyncio.sleep(0)

    return await same_turn(waiting)


@on_trio
async def same_turn_trio() -> str:
    event, scope = trio.Event(), trio.CancelScope()

    async def waiting() -> None:
        with scope, trio.move_on_after(60):
            await event.wait()
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(waiting)
        await trio.sleep(1)
        event.set()
        scope.cancel()
    return "cancelled" if scope.cancelled_caught else "the cancel is lost"


# A part of a task is ended from outside; there is no deadline.

PART = "the part ends, its task goes on"


@on_asyncio
async def part_chapter() -> str:
    async def work() -> str:
        await asyncio.sleep(60)  # the part
        return PART

    task = asyncio.create_task(work())
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.wait([task])
    return "the whole task ends" if task.cancelled() else task.result()


@on_asyncio
async def part_modern() -> str:
    region = asyncio.timeout(None)

    async def work() -> str:
        try:
            async with region:
                await asyncio.sleep(60)
        except TimeoutError:
            return f"{PART}, by a timeout that is moved to now"
        return "ends"

    task = asyncio.create_task(work())
    await asyncio.sleep(1)
    region.reschedule(asyncio.get_running_loop().time())
    return await task


@on_trio
async def part_trio() -> str:
    region, said = trio.CancelScope(), []

    async def work() -> None:
        with region:
            await trio.sleep(60)
        said.append(PART)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(work)
        await trio.sleep(1)
        region.cancel()
    return said[0]


# A group is ended early, and that is no error.


@on_asyncio
async def early_chapter() -> str:
    workers = [asyncio.create_task(asyncio.sleep(60)) for _ in range(5)]
    for w in workers:
        w.cancel()
    await asyncio.wait(workers)
    return "task by task, from a list"


class Enough(Exception):
    """Raised to end a group."""


@on_asyncio
async def early_modern() -> str:
    said = "by one call"
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(60))
            if hasattr(group, "cancel"):
                group.cancel()
            else:
                raise Enough
    except* Enough:
        said = "by an error of one's own that is caught outside"
    return said


@on_trio
async def early_trio() -> str:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep, 60)
        nursery.cancel_scope.cancel()
    return "by one call"
