from __future__ import annotations

from dataclasses import replace

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trio_crawler import Job, Limits, MemoryFrontier, Reason, Skipped

A, B = Job("http://e.test/a"), Job("http://e.test/b")


def ended(job: Job) -> Skipped:
    return Skipped(job.url, Reason.STOPPED)


async def test_the_jobs_end_when_every_admitted_url_is_settled():
    frontier = MemoryFrontier()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(frontier.run, [A])
        assert await frontier.jobs.receive() == A
        await frontier.settle(ended(A), [B])
        assert await frontier.jobs.receive() == B
        await frontier.settle(ended(B), [A, B])
        with pytest.raises(trio.EndOfChannel):
            await frontier.jobs.receive()
    assert frontier.statistics().unsettled == 0


async def test_a_settle_that_is_cancelled_has_changed_nothing():
    frontier = MemoryFrontier()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(frontier.run, [A])
        await frontier.jobs.receive()
        before = frontier.statistics()
        with trio.CancelScope() as scope:
            scope.cancel()
            await frontier.settle(ended(A), [B])
        assert scope.cancelled_caught
        assert frontier.statistics() == before
        await frontier.settle(ended(A), [])


async def test_settling_twice_is_an_error():
    frontier = MemoryFrontier()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(frontier.run, [A])
        await frontier.jobs.receive()
        await frontier.settle(ended(A), [])
    with pytest.raises(RuntimeError, match="reached zero"):
        await frontier.settle(ended(A), [])


async def test_urls_that_differ_only_in_needless_escapes_are_one():
    frontier = MemoryFrontier()
    same = [Job("http://e.test/%7Ea%2f"), Job("http://e.test/~a%2F"), Job("http://e.test/%7ea%2F")]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(frontier.run, same)
        assert await frontier.jobs.receive() == same[0]
        await wait_all_tasks_blocked()
        assert frontier.statistics().admitted == 1
        assert frontier.knows([same[2].url, B.url]) == {same[2].url}
        await frontier.settle(ended(same[0]), [])


async def test_what_came_by_its_last_redirect_is_judged_again():
    frontier = MemoryFrontier(Limits(max_redirects=2))
    full, cut = Job("http://e.test/full", redirects=2), Job("http://e.test/cut", redirects=1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(frontier.run, [full, cut])
        await frontier.jobs.receive()
        await frontier.jobs.receive()
        assert frontier.knows([cut.url, "http://e.test/new", full.url]) == {full.url}
        await frontier.settle(ended(full), [replace(full, url=cut.url)])
        await frontier.settle(ended(cut), [])
    assert frontier.statistics().admitted == len(frontier.seen) == 2


async def test_a_retry_comes_back_after_its_delay(autojump_clock):
    frontier = MemoryFrontier()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(frontier.run, [A, B])
        await frontier.jobs.receive()
        await frontier.jobs.receive()
        await frontier.retry(A, 10)
        await frontier.retry(B, 5)
        assert frontier.statistics().delayed == 2
        assert (await frontier.jobs.receive(), trio.current_time()) == (B, 5)
        assert (await frontier.jobs.receive(), trio.current_time()) == (A, 10)
        await frontier.settle(ended(A), [])
        await frontier.settle(ended(B), [])


async def test_no_more_jobs_are_out_than_pages_are_left():
    frontier = MemoryFrontier(Limits(max_pages=1))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(frontier.run, [A, B])
        await frontier.jobs.receive()
        await wait_all_tasks_blocked()
        assert frontier.statistics().held == 1
        with pytest.raises(trio.WouldBlock):
            frontier.jobs.receive_nowait()
        await frontier.settle(ended(A), [])
        assert await frontier.jobs.receive() == B
        await frontier.settle(ended(B), [])


async def test_the_repr_tells_the_counts():
    assert repr(MemoryFrontier()) == "<MemoryFrontier: 0 admitted, 1 unsettled>"
