"""How workers share what they work on: how their loop ends, who is the last, what goes wrong."""

from __future__ import annotations

import asyncio

import trio

from ledger.trying import WAITS, on_asyncio, on_trio

CLOSED = "by closing what they read from"
CANCELLED = "by being cancelled"


# The loop of a worker comes to its end.


@on_asyncio
async def loop_ends_chapter() -> str:
    q: asyncio.Queue[int] = asyncio.Queue()

    async def work() -> None:
        while True:
            await q.get()
            q.task_done()

    worker = asyncio.create_task(work())
    q.put_nowait(1)
    await q.join()
    worker.cancel()
    await asyncio.wait([worker])
    return CANCELLED if worker.cancelled() else CLOSED


def loop_ends_modern() -> str:
    if not hasattr(asyncio.Queue, "shutdown"):
        return loop_ends_chapter()

    async def main() -> str:
        q: asyncio.Queue[int] = asyncio.Queue()

        async def work() -> None:
            while True:
                try:
                    await q.get()
                except asyncio.QueueShutDown:
                    return

        worker = asyncio.create_task(work())
        q.put_nowait(1)
        q.shutdown()
        await asyncio.wait([worker])
        return CANCELLED if worker.cancelled() else CLOSED

    return on_asyncio(main)()


@on_trio
async def loop_ends_trio() -> str:
    send, jobs = trio.open_memory_channel[int](1)

    async def work() -> None:
        async for _ in jobs:
            pass

    async with trio.open_nursery() as nursery:
        nursery.start_soon(work)
        send.send_nowait(1)
        send.close()
    return CANCELLED if nursery.cancel_scope.cancelled_caught else CLOSED


# Two producers feed one consumer; the first of them has finished.


def last_producer_chapter() -> str:
    async def main() -> str:
        q: asyncio.Queue[int] = asyncio.Queue()

        async def consume() -> None:
            while True:
                await q.get()

        await asyncio.gather(q.put(1), q.put(2))  # two producers, and they return
        await consume()
        return "the consumer ends"

    said = on_asyncio(main)()
    return f"the consumer {said}: count the producers" if said == WAITS else said


def last_producer_modern() -> str:
    if not hasattr(asyncio.Queue, "shutdown"):
        return last_producer_chapter()

    async def main() -> str:
        q: asyncio.Queue[int] = asyncio.Queue()
        q.shutdown()  # by the first, as it ends
        try:
            await q.put(1)  # by the second
        except asyncio.QueueShutDown:
            return "the first to close stops the other: count the producers"
        return "the last to close ends the consumer"

    return on_asyncio(main)()


@on_trio
async def last_producer_trio() -> str:
    first, jobs = trio.open_memory_channel[int](2)
    second, got = first.clone(), []
    first.close()
    await second.send(1)
    second.close()
    async for job in jobs:
        got.append(job)
    return "the last to close ends the consumer" if got else "a job is lost"


# Two pages share a link; each worker awaits its put, and marks the link as seen after it.


def twice(count: int) -> str:
    return (
        "shows at once: fetched twice"
        if count == 2
        else "does not show on this run"
    )


@on_asyncio
async def seen_race_asyncio() -> str:
    q: asyncio.Queue[str] = asyncio.Queue()
    seen: set[str] = set()

    async def page() -> None:
        if "/x" not in seen:
            await q.put("/x")
            seen.add("/x")

    await asyncio.gather(page(), page())
    return twice(q.qsize())


@on_trio
async def seen_race_trio() -> str:
    send, jobs = trio.open_memory_channel[str](9)
    seen: set[str] = set()

    async def page() -> None:
        if "/x" not in seen:
            await send.send("/x")
            seen.add("/x")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(page)
        nursery.start_soon(page)
    return twice(jobs.statistics().current_buffer_used)
