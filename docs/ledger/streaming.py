"""Results are streamed by workers, and the consumer has enough before they have."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import aclosing, asynccontextmanager

import anyio
import trio

from ledger.trying import Nursery, on_asyncio, on_trio

# A generator has a group of workers in it, and is closed by a consumer that has enough.


def still(alive: int, error: BaseException | None = None) -> str:
    said = "workers run on" if alive else "workers are gone"
    return f"{said}; closing raises {type(error).__name__}" if error else said


@on_asyncio
async def generator_chapter() -> str:
    workers: list[asyncio.Task[None]] = []

    async def results() -> AsyncGenerator[int, None]:
        workers.extend(
            asyncio.create_task(asyncio.Event().wait()) for _ in range(3)
        )
        yield 1

    stream = results()
    async for _ in stream:
        break
    await stream.aclose()
    await asyncio.sleep(1)
    return still(sum(not each.done() for each in workers))


@on_asyncio
async def generator_modern() -> str:
    workers: list[asyncio.Task[None]] = []

    async def results() -> AsyncGenerator[int, None]:
        async with asyncio.TaskGroup() as group:
            workers.extend(
                group.create_task(asyncio.Event().wait()) for _ in range(3)
            )
            yield 1

    error = await left_early(results())
    return still(sum(not each.done() for each in workers), error)


@on_trio
async def generator_trio() -> str:
    nurseries: list[trio.Nursery] = []

    async def results() -> AsyncGenerator[int, None]:
        async with trio.open_nursery() as nursery:
            nurseries.append(nursery)
            for _ in range(3):
                nursery.start_soon(trio.sleep_forever)
            yield 1

    error = await left_early(results())
    return still(len(nurseries[0].child_tasks), error)


async def left_early(stream: AsyncGenerator[int, None]) -> BaseException | None:
    try:
        async with aclosing(stream):
            async for _ in stream:
                break
    except BaseExceptionGroup as error:
        return error
    return None


# Results are streamed, and the consumer breaks: the form that holds.


def streaming_chapter() -> str:
    return generator_chapter()


@on_asyncio
async def streaming_modern() -> str:
    workers: list[asyncio.Task[None]] = []

    @asynccontextmanager
    async def results() -> AsyncGenerator[asyncio.Queue[int], None]:
        q: asyncio.Queue[int] = asyncio.Queue()
        q.put_nowait(1)
        async with asyncio.TaskGroup() as group:
            workers.extend(
                group.create_task(asyncio.Event().wait()) for _ in range(3)
            )
            try:
                yield q
            finally:
                for w in workers:
                    w.cancel()

    async with results() as q:
        await q.get()
    said = still(sum(not each.done() for each in workers))
    return f"{said}, by a context manager of one's own"


@on_asyncio
async def streaming_anyio() -> str:
    groups: list[Nursery] = []

    @asynccontextmanager
    async def results() -> AsyncGenerator[AsyncIterable[int], None]:
        send, receive = anyio.create_memory_object_stream[int](1)
        send.send_nowait(1)
        with send, receive:
            async with Nursery() as group:
                groups.append(group)
                for _ in range(3):
                    group.start_soon(anyio.sleep_forever)
                yield receive
                group.cancel_scope.cancel()

    async with results() as stream:
        async for _ in stream:
            break
    said = still(len(groups[0].child_tasks))
    return f"{said}, by a context manager of one's own"


@on_trio
async def streaming_trio() -> str:
    nurseries: list[trio.Nursery] = []

    @trio.as_safe_channel
    async def results() -> AsyncGenerator[int, None]:
        async with trio.open_nursery() as nursery:
            nurseries.append(nursery)
            for _ in range(3):
                nursery.start_soon(trio.sleep_forever)
            yield 1

    async with results() as stream:
        async for _ in stream:
            break
    return f"{still(len(nurseries[0].child_tasks))}, by a decorator that is shipped"
