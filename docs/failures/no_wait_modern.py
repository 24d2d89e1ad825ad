"""Read from a queue that is never empty, for a tenth of a second at most."""

from __future__ import annotations

import asyncio
import time

LIMIT = 0.1
OWN_STOP = 0.5


async def main(yielding: bool) -> None:
    q: asyncio.Queue[int] = asyncio.Queue()
    q.put_nowait(0)
    stop = time.monotonic() + OWN_STOP
    try:
        async with asyncio.timeout(LIMIT):  # (1)
            while time.monotonic() < stop:
                q.put_nowait(await q.get())  # (2)
                if yielding:
                    await asyncio.sleep(0)
            print("getting: the deadline never came")
    except TimeoutError:
        print("getting, and sleep(0): ended by the deadline")


if __name__ == "__main__":
    asyncio.run(main(yielding=False))
    asyncio.run(main(yielding=True))
