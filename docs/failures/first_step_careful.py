"""The same, and the block that opens a connection closes it."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, closing

from first_step_modern import Connection, work


async def main() -> None:
    try:
        with ExitStack() as opened:
            async with asyncio.TaskGroup() as group:
                for host in ("up", "down"):
                    connection = opened.enter_context(closing(Connection(host)))
                    group.create_task(work(connection))
    except* OSError:
        print("the group is over")


if __name__ == "__main__":
    asyncio.run(main())
