"""The same with a stream: it keeps the bytes that its reader did not take."""

from __future__ import annotations

import asyncio
import socket

from lost_result_modern import parse


async def main() -> None:
    client, server = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=client)
    async with asyncio.TaskGroup() as group:
        group.create_task(parse(server))
        for _ in range(2):
            try:
                async with asyncio.timeout(0.5):
                    print("came:", await reader.read(99))
                    break
            except TimeoutError:
                print("nothing yet")
    writer.close()


if __name__ == "__main__":
    asyncio.run(main())
