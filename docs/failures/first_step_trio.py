"""Give each worker an open connection; the second host refuses."""

from __future__ import annotations

from contextlib import closing

import trio
from first_step_modern import Connection


async def work(connection: Connection) -> None:
    with closing(connection):  # (2)
        print("the worker begins")
        await trio.sleep(60)


async def main() -> None:
    try:
        async with trio.open_nursery() as nursery:
            for host in ("up", "down"):
                connection = Connection(host)
                nursery.start_soon(work, connection)  # (1)
    except* OSError:
        print("the nursery is over")


if __name__ == "__main__":
    trio.run(main)
