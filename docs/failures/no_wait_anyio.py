"""The same with a stream and a scope of AnyIO, on asyncio."""

from __future__ import annotations

import time

import anyio

LIMIT = 0.1
OWN_STOP = 0.5


async def main() -> None:
    send, receive = anyio.create_memory_object_stream[int](1)
    send.send_nowait(0)
    stop = time.monotonic() + OWN_STOP
    with send, receive, anyio.move_on_after(LIMIT) as scope:
        while time.monotonic() < stop:
            send.send_nowait(await receive.receive())
    if scope.cancelled_caught:
        print("receiving: ended by the deadline")
    else:
        print("receiving: the deadline never came")


if __name__ == "__main__":
    anyio.run(main)
