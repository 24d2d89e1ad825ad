"""Wait for an answer, half a second at a time; meanwhile the loop is busy."""

from __future__ import annotations

import time

import trio


async def parse(server: trio.socket.SocketType) -> None:
    await trio.sleep(0.1)
    await server.send(b"the answer")
    time.sleep(0.6)  # no other task runs now


async def main() -> None:
    client, server = trio.socket.socketpair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(parse, server)
        for _ in range(2):
            with trio.move_on_after(0.5):  # (1)
                got = await client.recv(99)  # (2)
                print("came:", got)
                break
            print("nothing yet")


if __name__ == "__main__":
    trio.run(main)
