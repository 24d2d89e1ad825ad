"""The same; a task group around the deadline owns the save."""

from __future__ import annotations

import asyncio

from orphan_modern import save, say

from virtual import run_asyncio


async def main() -> None:
    try:
        async with asyncio.TaskGroup() as saves:
            try:
                async with asyncio.timeout(0.5):
                    saving = saves.create_task(save())
                    await asyncio.shield(saving)
            except TimeoutError as error:
                say("visit", error)
    except* OSError as errors:
        say("group", *errors.exceptions)


if __name__ == "__main__":
    run_asyncio(main)
