"""The same visits under a scope of AnyIO, on asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import anyio

from virtual import run_asyncio


async def goodbye() -> None:
    try:
        await anyio.sleep(60)
    finally:
        await anyio.sleep(3)
        print("  goodbye is said")


async def once() -> None:
    try:
        await anyio.sleep(60)
    except:
        pass
    await anyio.Event().wait()


async def always() -> None:
    for _ in range(1000):
        try:
            await anyio.sleep(60)
        except:
            pass


async def main(visit: Callable[[], Awaitable[None]]) -> None:
    with anyio.move_on_after(0.5):
        await visit()
    now = asyncio.get_running_loop().time()
    print(f"{visit.__name__}: over at {now:.1f} s")


if __name__ == "__main__":
    for visit in goodbye, once, always:
        run_asyncio(main, visit)
