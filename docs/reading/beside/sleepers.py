"""Five sleepers, one second each, on the loop of page 16 and on Trio."""

from __future__ import annotations

import time

import sleeping
import trio


async def asleep() -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(trio.sleep, 1)


if __name__ == "__main__":
    began = time.monotonic()
    sleeping.run(*(sleeping.asleep(1) for _ in range(5)))
    print(f"a loop of its own: {time.monotonic() - began:.0f} s")
    began = time.monotonic()
    trio.run(asleep)
    print(f"Trio: {time.monotonic() - began:.0f} s")
