"""Fetch a thousand times, each time with a rest of 30 s, on our own clock."""

from __future__ import annotations

import asyncio
import selectors
import time

from sites.plain import answer
from virtual import visitor


class Jumping(selectors.SelectSelector):
    now = 0.0

    def select(
        self, timeout: float | None = None
    ) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("everybody waits, and nobody will ever come")
        self.now += 0 if ready else timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.jumping = Jumping()
        super().__init__(self.jumping)

    def time(self) -> float:
        return self.jumping.now


async def main() -> float:
    client, site = visitor(answer)
    for _ in range(1000):
        await client.get(site.url)
        await asyncio.sleep(30)
    print("requests:", site.hits.total())
    return asyncio.get_running_loop().time()


if __name__ == "__main__":
    began = time.monotonic()
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:  # (1)
        seconds = runner.run(main())
    print(f"on the program's clock: {seconds / 3600:.1f} hours")
    print("on the wall: less than a minute:", time.monotonic() - began < 60)
