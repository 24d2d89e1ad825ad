"""What a deadline stands over, and when it is heard."""

from __future__ import annotations

import asyncio

import trio

from ledger.trying import on_asyncio, on_trio

GUARD = 1_000


# Half a second is allowed, and the cleanup awaits for three more.


@on_asyncio
async def cleanup_chapter() -> str:
    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(3)

    began = asyncio.get_running_loop().time()
    try:
        await asyncio.wait_for(work(), 0.5)
    except TimeoutError:
        pass
    return f"over after {asyncio.get_running_loop().time() - began:.1f} s"


@on_asyncio
async def cleanup_modern() -> str:
    began = asyncio.get_running_loop().time()
    try:
        async with asyncio.timeout(0.5):
            try:
                await asyncio.sleep(60)
            finally:
                await asyncio.sleep(3)
    except TimeoutError:
        pass
    return f"over after {asyncio.get_running_loop().time() - began:.1f} s"


@on_trio
async def cleanup_trio() -> str:
    began = trio.current_time()
    with trio.move_on_after(0.5):
        try:
            await trio.sleep(60)
        finally:
            await trio.sleep(3)
    return f"over after {trio.current_time() - began:.1f} s"


# A deadline of one second stands over thirty reads of 0.2 s each.


@on_asyncio
async def deadline_chapter() -> str:
    began = asyncio.get_running_loop().time()
    for _ in range(30):
        await asyncio.wait_for(asyncio.sleep(0.2), 1)
    return f"over after {asyncio.get_running_loop().time() - began:.1f} s"


@on_asyncio
async def deadline_modern() -> str:
    began = asyncio.get_running_loop().time()
    try:
        async with asyncio.timeout(1):
            for _ in range(30):
                await asyncio.sleep(0.2)
    except TimeoutError:
        pass
    return f"over after {asyncio.get_running_loop().time() - began:.1f} s"


@on_trio
async def deadline_trio() -> str:
    began = trio.current_time()
    with trio.move_on_after(1):
        for _ in range(30):
            await trio.sleep(0.2)
    return f"over after {trio.current_time() - began:.1f} s"


# One second is allowed for each of the thirty reads.


each_read_chapter = deadline_chapter


@on_asyncio
async def each_read_modern() -> str:
    began = asyncio.get_running_loop().time()
    for _ in range(30):
        async with asyncio.timeout(1):
            await asyncio.sleep(0.2)
    return f"over after {asyncio.get_running_loop().time() - began:.1f} s"


@on_trio
async def each_read_trio() -> str:
    began = trio.current_time()
    for _ in range(30):
        with trio.fail_after(1):
            await trio.sleep(0.2)
    return f"over after {trio.current_time() - began:.1f} s"


# A loop of awaits that never have to wait is cancelled.


def heard(turns: int) -> str:
    return f"not heard in {turns:,} awaits" if turns == GUARD else "heard at once"


@on_asyncio
async def never_waits_chapter() -> str:
    turns = 0

    async def work() -> None:
        nonlocal turns
        q: asyncio.Queue[int] = asyncio.Queue()
        for turns in range(1, GUARD + 1):
            q.put_nowait(1)
            await q.get()

    task = asyncio.create_task(work())
    asyncio.get_running_loop().call_soon(task.cancel)
    await asyncio.wait([task])
    return heard(turns)


@on_asyncio
async def never_waits_modern() -> str:
    turns = 0
    q: asyncio.Queue[int] = asyncio.Queue()
    try:
        async with asyncio.timeout(0):
            for turns in range(1, GUARD + 1):
                q.put_nowait(1)
                await q.get()
    except TimeoutError:
        pass
    return heard(turns)


@on_trio
async def never_waits_trio() -> str:
    turns = 0
    send, jobs = trio.open_memory_channel[int](1)
    with trio.move_on_after(0):
        for turns in range(1, GUARD + 1):
            send.send_nowait(1)
            await jobs.receive()
    return heard(turns)
