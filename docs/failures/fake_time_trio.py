"""Fetch a thousand times, each time with a rest of 30 s, on Trio's clock."""

from __future__ import annotations

import time

import trio
import trio.testing

from sites.plain import answer
from virtual import visitor


async def main() -> float:
    client, site = visitor(answer)
    for _ in range(1000):
        await client.get(site.url)
        await trio.sleep(30)
    print("requests:", site.hits.total())
    return trio.current_time()


if __name__ == "__main__":
    began = time.monotonic()
    seconds = trio.run(
        main, clock=trio.testing.MockClock(autojump_threshold=0)
    )  # (1)
    print(f"on the program's clock: {seconds / 3600:.1f} hours")
    print("on the wall: less than a minute:", time.monotonic() - began < 60)
