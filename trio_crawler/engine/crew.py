"""The crew: a fixed number of workers, which start as there is work for them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from trio_crawler.engine.outbox import Outbox
from trio_crawler.model import Fetch

AT_ONCE = 200
"""The most workers that start before there is work for them."""

# Workers that start before other tasks can run.
_PORTION = 50


class Crew:
    """The workers of a crawl: tasks in its nursery, each a call of `work`.

    All start at once, up to 200. If there are more, each worker starts one of them when it
    receives its first job. So 200 are free as long as any are left to start, and a crawl that
    needs few has few to end. `left` is the number of workers that have not started.
    """

    def __init__(
        self,
        nursery: trio.Nursery,
        workers: int,
        work: Callable[[Fetch, Outbox, Crew], Awaitable[None]],
        ask: Fetch,
        outbox: Outbox,
    ) -> None:
        self._nursery = nursery
        self.left = workers
        self._work = work
        self._for_each = ask, outbox

    async def start(self) -> None:
        """Start the first workers; a checkpoint after each fifty of them."""
        for number in range(1, min(self.left, AT_ONCE) + 1):
            self.start_next()
            if number % _PORTION == 0:
                await trio.lowlevel.checkpoint()

    def start_next(self) -> bool:
        """Start one worker more, if any is left; return False."""
        if self.left:
            self.left -= 1
            self._nursery.start_soon(self._work, *self._for_each, self)
        return False
