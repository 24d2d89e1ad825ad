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

    Up to 200 start at once. The others are `left`: a worker that receives a job starts the next of
    them. So 200 are free as long as any are left, and a crawl that needs few has few to end.
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
        """Start the first workers; a checkpoint before each fifty of them."""
        for number in range(AT_ONCE):
            if number % _PORTION == 0:
                await trio.lowlevel.checkpoint()
            # Workers that began meanwhile may have started the rest.
            if self.left:
                self.start_next()

    def start_next(self) -> None:
        """Start one of the workers that are left."""
        self.left -= 1
        self._nursery.start_soon(self._work, *self._for_each, self)
