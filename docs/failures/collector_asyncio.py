"""Start a task that nothing keeps, and let the collector take it as it waits."""

from __future__ import annotations

import asyncio
import gc
import sys


async def watch() -> None:
    """Wait for a sign, and say goodbye in any case."""
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        print("goodbye begins")
        await asyncio.sleep(0.01)
        print("goodbye is over")


async def main() -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, said: print("log:", said["message"]))
    sys.unraisablehook = lambda said: print("log:", said.exc_value)

    asyncio.create_task(watch())  # (1)
    await asyncio.sleep(0.01)
    print("tasks:", len(asyncio.all_tasks()))
    gc.collect()  # as it may happen at any moment
    print("tasks:", len(asyncio.all_tasks()))


if __name__ == "__main__":
    asyncio.run(main())
