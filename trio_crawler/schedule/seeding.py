"""The seeding of a crawl from a stream: when it begins, waits for room, goes on and ends."""

# No `from __future__ import annotations` here: `typing.get_type_hints` would look the names up in
# `__module__`, which is set to another module.

import trio


class Seeding:
    """The place where the seeding task and the scheduler meet.

    `begun` is set when the job of the stream is admitted. The task reads the stream inside
    `scope`, which is cancelled when the crawl ends early. While the task waits in `wait`, `low` is
    the number of waiting pages at which it goes on, else -1.
    """

    __module__ = "trio_crawler.frontier"

    __slots__ = ("_room", "begun", "low", "scope")

    def __init__(self) -> None:
        self.begun = trio.Event()
        self.scope = trio.CancelScope()
        self.low = -1
        self._room = trio.Event()

    async def wait(self, low: int) -> None:
        """Wait until the scheduler calls `make_room`, at `low` waiting pages or fewer."""
        self.low, self._room = low, trio.Event()
        try:
            await self._room.wait()
        finally:
            self.low = -1

    def make_room(self) -> None:
        """Let the task go on."""
        self.low = -1
        self._room.set()
