"""What tasks share besides a queue: a socket, each other's room, the processor."""

from __future__ import annotations

import asyncio
import socket
import time

import anyio
import trio

from ledger.trying import WAITS, on_asyncio, on_trio

# Two workers feed each other through one bounded queue.


@on_asyncio
async def circle_asyncio() -> str:
    q: asyncio.Queue[int] = asyncio.Queue(1)

    async def work() -> None:
        while True:
            await q.get()
            await q.put(1)
            await q.put(1)

    q.put_nowait(1)
    await asyncio.gather(work(), work())
    return "ends"


@on_trio
async def circle_trio() -> str:
    send, jobs = trio.open_memory_channel[int](1)

    async def work() -> None:
        async for _ in jobs:
            await send.send(1)
            await send.send(1)

    send.send_nowait(1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(work)
        nursery.start_soon(work)
    return "ends"


# A parser computes for a while, and another task wants to run.


def turns_of_others(turns: int) -> str:
    return "no other task runs meanwhile" if turns == 0 else "others run meanwhile"


def compute() -> None:
    until = time.perf_counter() + 0.005
    while time.perf_counter() < until:
        pass


@on_asyncio
async def computing_asyncio() -> str:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await asyncio.sleep(0)
    before = turns
    compute()
    meanwhile = turns - before
    task.cancel()
    await asyncio.wait([task])
    return turns_of_others(meanwhile)


@on_trio
async def computing_trio() -> str:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        await trio.lowlevel.checkpoint()
        before = turns
        compute()
        meanwhile = turns - before
        nursery.cancel_scope.cancel()
    return turns_of_others(meanwhile)


# Two tasks read from one socket.


@on_asyncio
async def two_readers_chapter() -> str:
    near, far = socket.socketpair()
    near.setblocking(False)
    loop = asyncio.get_running_loop()
    with near, far:
        readers = [asyncio.create_task(loop.sock_recv(near, 1)) for _ in range(2)]
        await asyncio.sleep(0)
        far.sendall(b"ab")
        _, pending = await asyncio.wait(readers, timeout=10)
        for each in pending:
            each.cancel()
        await asyncio.wait(readers)
    return f"{len(pending)} of them {WAITS}, in silence" if pending else "both read"


@on_asyncio
async def two_readers_modern() -> str:
    near, far = socket.socketpair()
    with far:
        reader, writer = await asyncio.open_connection(sock=near)
        said = "both read"
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(reader.read(1))
                group.create_task(reader.read(1))
        except* RuntimeError:
            said = "the second is refused"
        finally:
            writer.close()
    return said


@on_asyncio
async def two_readers_anyio() -> str:
    near, far = socket.socketpair()
    said = "both read"
    with near, far:
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(anyio.wait_readable, near)
                group.start_soon(anyio.wait_readable, near)
        except* anyio.BusyResourceError:
            said = "the second is refused"
    return said


@on_trio
async def two_readers_trio() -> str:
    near, far = trio.socket.socketpair()
    said = "both read"
    with near, far:
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(near.recv, 1)
                nursery.start_soon(near.recv, 1)
        except* trio.BusyResourceError:
            said = "the second is refused"
    return said
