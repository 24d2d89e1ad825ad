"""The frontier in memory, where it does more than the laws of every frontier."""

from __future__ import annotations

import pytest
import trio
from msgspec.structs import replace
from trio.testing import wait_all_tasks_blocked

from trio_crawler import Job, Limits, MemoryFrontier, Reason, Skipped
from trio_crawler.frontier import Attempt, Plan, Settlement
from trio_crawler.model import Response

FULL, CUT = Job("http://e.test/full", redirects=2), Job("http://e.test/cut", redirects=1)


def end_of(job: Job, *successors: Job) -> Settlement:
    return Settlement(job, Skipped(job.url, Reason.STOPPED), successors)


async def test_a_url_that_was_reached_by_its_last_redirect_is_judged_again():
    frontier = MemoryFrontier()
    await frontier.open(Plan([FULL.url], limits=Limits(max_redirects=2)))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(frontier.run)
        await wait_all_tasks_blocked()
        await frontier.add([CUT])
        assert frontier.known([CUT.url, "http://e.test/new", FULL.url]) == {FULL.url}
        await frontier.add([replace(FULL, url=CUT.url)])
        assert frontier.statistics().admitted == len(frontier.seen) == 2
        nursery.cancel_scope.cancel()


async def test_at_an_early_end_every_waiting_job_comes_out_blocked():
    frontier = MemoryFrontier()
    await frontier.open(Plan([FULL.url]))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(frontier.run)
        file = await frontier.jobs.receive()
        frontier.end(Reason.STOPPED)
        frontier.hosts.answered(Attempt(file, Response(404), 0.1))
        await frontier.settle(Settlement(file))
        blocked = await frontier.jobs.receive()
        assert (blocked.url, blocked.blocked) == (FULL.url, Reason.STOPPED)
        await frontier.settle(end_of(blocked, CUT))
        blocked = await frontier.jobs.receive()
        assert (blocked.url, blocked.blocked) == (CUT.url, Reason.STOPPED)
        await frontier.settle(end_of(blocked))
        with pytest.raises(trio.EndOfChannel):
            await frontier.jobs.receive()


async def test_running_a_frontier_that_was_not_opened_says_what_to_do():
    with pytest.raises(RuntimeError, match="open the frontier first"):
        await MemoryFrontier().run()


def test_the_repr_has_the_counts():
    assert repr(MemoryFrontier()) == "<MemoryFrontier: 0 admitted, 0 unsettled>"
