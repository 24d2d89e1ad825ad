"""Cancel visits that swallow it, after half a second, and wait for the end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from virtual import run_asyncio


async def once() -> None:
    try:
        await asyncio.sleep(60)
    except:
        pass  # (1)
    await asyncio.Event().wait()  # (2)


async def always() -> None:
    for _ in range(1000):  # (3)
        try:
            await asyncio.sleep(60)
        except:
            pass


async def exception() -> None:
    try:
        await asyncio.sleep(60)
    except Exception:
        await asyncio.Event().wait()


async def main(visit: Callable[[], Awaitable[None]]) -> None:
    task = asyncio.ensure_future(visit())
    await asyncio.sleep(0.5)
    task.cancel()
    await asyncio.wait([task], timeout=86_400)
    if task.done():
        print(f"{visit.__name__}: over at {asyncio.get_running_loop().time():g} s")
    else:
        print(f"{visit.__name__}: a day later, cancelling() is {task.cancelling()}")


if __name__ == "__main__":
    for visit in once, always, exception:
        run_asyncio(main, visit)
