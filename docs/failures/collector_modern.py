"""A task group holds its tasks as well: they end before it does."""

from __future__ import annotations

import asyncio
import gc

from collector_asyncio import watch


async def main() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(watch())  # (1)
        await asyncio.sleep(0.01)
        print("tasks:", len(asyncio.all_tasks()))
        gc.collect()
        print("tasks:", len(asyncio.all_tasks()))
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()


if __name__ == "__main__":
    asyncio.run(main())
