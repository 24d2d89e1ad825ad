"""Give a visit half a second; its goodbye takes three, or is held to one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from virtual import run_asyncio


async def goodbye() -> None:
    await asyncio.sleep(3)
    print("  goodbye is said")


async def limited() -> None:
    async with asyncio.timeout(1):  # (2)
        await goodbye()


async def main(name: str, end: Callable[[], Awaitable[None]]) -> None:
    print(name)
    try:
        async with asyncio.timeout(0.5):  # (1)
            try:
                await asyncio.sleep(60)
            finally:
                await end()
    except TimeoutError:
        print(f"  over at {asyncio.get_running_loop().time():g} s")


if __name__ == "__main__":
    run_asyncio(main, "goodbye", goodbye)
    run_asyncio(main, "goodbye, held to one second", limited)
