"""Give each worker an open connection; the second host refuses."""

from __future__ import annotations

import asyncio
from contextlib import closing


class Connection:
    def __init__(self, host: str) -> None:
        if host == "down":
            raise OSError("refused")
        print("opened")

    def close(self) -> None:
        print("closed")


async def work(connection: Connection) -> None:
    with closing(connection):  # (2)
        print("the worker begins")
        await asyncio.sleep(60)


async def main() -> None:
    try:
        async with asyncio.TaskGroup() as group:
            for host in ("up", "down"):
                connection = Connection(host)
                group.create_task(work(connection))  # (1)
    except* OSError:
        print("the group is over")


if __name__ == "__main__":
    asyncio.run(main())
