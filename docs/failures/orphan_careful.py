"""The same; the visit keeps the task, and waits for it when it is cancelled."""

from __future__ import annotations

import asyncio

from orphan_modern import save, say

from virtual import run_asyncio


async def shielded() -> None:
    saving = asyncio.create_task(save())
    try:
        await asyncio.shield(saving)
    except asyncio.CancelledError:
        await saving
        raise


async def main() -> None:
    try:
        async with asyncio.timeout(0.5):
            await shielded()
    except (TimeoutError, OSError) as error:
        say("visit", error)


if __name__ == "__main__":
    run_asyncio(main)
