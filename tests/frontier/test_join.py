from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trio_crawler.frontier import Join


async def test_a_join_waits_until_every_unit_is_done():
    join = Join()
    ended = []

    async def waiter() -> None:
        await join.wait()
        ended.append(True)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(waiter)
        join.add(2)
        for _ in range(2):
            join.done()
            await wait_all_tasks_blocked()
            assert not ended
        assert join.statistics().tasks_waiting == 1
        join.done()
    assert ended


async def test_a_join_begins_with_a_unit_for_the_seeding():
    join = Join()
    assert join.statistics().unfinished == 1
    join.done()
    await join.wait()
    await join.wait()  # Zero lasts.


def test_counting_in_after_zero_is_an_error_that_explains_itself():
    join = Join()
    join.done()
    with pytest.raises(RuntimeError, match="before its parent is out"):
        join.add()


def test_counting_below_zero_is_an_error_that_explains_itself():
    join = Join()
    join.done()
    with pytest.raises(RuntimeError, match="more often than units were added"):
        join.done()
    assert join.statistics().unfinished == 0


def test_counting_in_a_negative_number_is_an_error():
    with pytest.raises(ValueError, match="cannot add -1"):
        Join().add(-1)


def test_the_repr_of_a_join_tells_the_count():
    join = Join()
    join.add(2)
    assert repr(join) == "<Join: 3 unfinished>"
