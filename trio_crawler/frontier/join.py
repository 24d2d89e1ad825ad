"""The counting join: it detects when the last unit of work is done."""

import msgspec
import trio

from trio_crawler.arguments import check_kind


class JoinStatistics(msgspec.Struct, frozen=True):
    """The numbers of `unfinished` units, and of `tasks_waiting` in `Join.wait`."""

    __module__ = "trio_crawler.frontier"

    unfinished: int
    tasks_waiting: int


class Join:
    """A count of unfinished work, and an event for zero.

    It begins with one unit, for the seeding: without it a crawl without seeds would never reach
    zero. Count successors in before you count their parent out; then zero is reached once, and
    only when nothing can follow. `unfinished` is the number of units that are not done.

    >>> join = Join()
    >>> join.add(2)
    >>> join.done()
    >>> join.unfinished, join.is_over
    (2, False)
    """

    __module__ = "trio_crawler.frontier"

    __slots__ = ("_zero", "unfinished")

    def __init__(self) -> None:
        self.unfinished = 1
        self._zero = trio.Event()

    def __repr__(self) -> str:
        return f"<Join: {self.unfinished} unfinished>"

    def add(self, n: int = 1) -> None:
        """Count `n` more units in.

        Raises RuntimeError after zero was reached: the tasks that waited have already gone on.
        Raises ValueError if `n` is negative.
        """
        if not isinstance(n, int):
            check_kind("n", n, int, "a number of units")
        if n < 0:
            raise ValueError(f"cannot add {n} units: call done() to count out")
        if self._zero.is_set():
            raise RuntimeError("the join has reached zero: count work in before its parent is out")
        self.unfinished += n

    def done(self) -> None:
        """Count one unit out. Raises RuntimeError if none is left."""
        if not self.unfinished:
            raise RuntimeError("done() was called more often than units were added")
        self.unfinished -= 1
        if not self.unfinished:
            self._zero.set()

    @property
    def is_over(self) -> bool:
        """Whether every unit is done; then no more can be counted in."""
        return not self.unfinished

    async def wait(self) -> None:
        """Wait until every unit is done."""
        await self._zero.wait()

    def statistics(self) -> JoinStatistics:
        """Return the counts at this moment."""
        return JoinStatistics(self.unfinished, self._zero.statistics().tasks_waiting)
