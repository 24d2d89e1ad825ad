"""Wait for an answer, half a second at a time; meanwhile the loop is busy."""

from __future__ import annotations

import asyncio
import socket
import time


async def parse(server: socket.socket) -> None:
    await asyncio.sleep(0.1)
    server.send(b"the answer")
    time.sleep(0.6)  # no other task runs now


async def main() -> None:
    client, server = socket.socketpair()
    client.setblocking(False)
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        group.create_task(parse(server))
        for _ in range(2):
            try:
                async with asyncio.timeout(0.5):  # (1)
                    got = await loop.sock_recv(client, 99)  # (2)
                    print("came:", got)
                    break
            except TimeoutError:
                print("nothing yet")


if __name__ == "__main__":
    asyncio.run(main())
