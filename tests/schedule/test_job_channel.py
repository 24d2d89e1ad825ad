"""Jobs on their way to the workers: decided when a worker takes one, and handed out once."""

from __future__ import annotations

from collections import deque

import pytest
import trio
import trio.testing
from trio.testing import wait_all_tasks_blocked

from trio_crawler.model import Job
from trio_crawler.schedule.hosts import JobChannel

A, B, C = (Job(f"http://e.test/{name}") for name in "abc")


class Source:
    """Choose the jobs in order, and note whether each choice was for the last free worker."""

    def __init__(self, *jobs: Job) -> None:
        self.left = deque(jobs)
        self.asked: list[bool] = []

    def __call__(self, last: bool) -> Job | None:
        self.asked.append(last)
        return self.left.popleft() if self.left else None


async def waiting(jobs: JobChannel, number: int, nursery: trio.Nursery) -> list[Job]:
    """Let so many workers wait for one job each."""
    got: list[Job] = []

    async def worker() -> None:
        got.append(await jobs.receive())

    for _ in range(number):
        nursery.start_soon(worker)
    await wait_all_tasks_blocked()
    return got


async def test_a_job_is_taken_at_once_if_there_is_one():
    jobs = JobChannel(Source(A, B))
    with trio.testing.assert_no_checkpoints():
        assert [await jobs.receive(), await jobs.receive()] == [A, B]


async def test_every_sixteenth_job_comes_after_a_checkpoint():
    jobs = JobChannel(Source(*[A] * 32))
    for number in range(1, 33):
        checks = trio.testing.assert_no_checkpoints
        with checks() if number % 16 else trio.testing.assert_checkpoints():
            await jobs.receive()


async def test_the_choice_is_the_last_thing_before_the_worker_has_its_job():
    passes = chosen_at = 0

    def choose(last: bool) -> Job:
        nonlocal chosen_at
        chosen_at = passes
        return A

    async def count() -> None:
        nonlocal passes
        while True:
            passes += 1
            await trio.lowlevel.checkpoint()

    jobs = JobChannel(choose)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        for _ in range(320):
            await jobs.receive()
            # No other task had a turn between the choice and now.
            assert chosen_at == passes
        # But before the choice they had.
        assert passes > 10
        nursery.cancel_scope.cancel()


async def test_a_worker_that_is_cancelled_at_the_checkpoint_takes_no_job():
    source = Source(*[A] * 16)
    jobs = JobChannel(source)
    for _ in range(15):
        await jobs.receive()
    with trio.CancelScope() as scope:
        scope.cancel()
        await jobs.receive()
    assert scope.cancelled_caught
    assert list(source.left) == [A]


async def test_handing_out_gives_a_job_to_each_who_waits_as_long_as_there_are_some():
    source = Source()
    jobs = JobChannel(source)
    async with trio.open_nursery() as nursery:
        got = await waiting(jobs, 3, nursery)
        source.left.extend([A, B])
        jobs.hand_out()
        await wait_all_tasks_blocked()
        assert set(got) == {A, B}
        source.left.append(C)
        jobs.hand_out()
    assert set(got) == {A, B, C}


async def test_nothing_is_chosen_when_nobody_waits():
    source = Source(A)
    JobChannel(source).hand_out()
    assert list(source.left) == [A]


async def test_the_choice_for_the_last_free_worker_is_told_so():
    source = Source()
    jobs = JobChannel(source)
    async with trio.open_nursery() as nursery:
        await waiting(jobs, 3, nursery)
        # Each was the last one free as far as it was known, only the first really.
        assert source.asked == [True, False, False]
        source.asked.clear()
        source.left.extend([A, B, C])
        jobs.hand_out()
    assert source.asked == [False, False, True]


async def test_a_job_that_was_handed_out_is_not_handed_out_again_before_it_is_received():
    source = Source()
    jobs = JobChannel(source)
    async with trio.open_nursery() as nursery:
        got = await waiting(jobs, 1, nursery)
        source.left.extend([A, B])
        jobs.hand_out()
        jobs.hand_out()
    assert got == [A]
    assert list(source.left) == [B]


async def test_a_worker_that_is_cancelled_while_it_waits_counts_no_more():
    source = Source()
    jobs = JobChannel(source)
    async with trio.open_nursery() as nursery:
        await waiting(jobs, 2, nursery)
        nursery.cancel_scope.cancel()
    source.left.append(A)
    jobs.hand_out()
    assert list(source.left) == [A]
    source.asked.clear()
    assert await jobs.receive() == A
    assert source.asked == [True]


async def test_the_end_reaches_those_who_wait_and_those_who_come_later():
    jobs = JobChannel(Source())
    ended = []

    async def worker() -> None:
        ended.extend([True async for _ in jobs] or [False])

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(worker)
        await wait_all_tasks_blocked()
        jobs.end()
        jobs.hand_out()
    assert ended == [False] * 3
    with pytest.raises(trio.EndOfChannel):
        await jobs.receive()


async def test_what_was_handed_out_before_the_end_still_comes():
    source = Source()
    jobs = JobChannel(source)
    async with trio.open_nursery() as nursery:
        got = await waiting(jobs, 1, nursery)
        source.left.append(A)
        jobs.hand_out()
        jobs.end()
    assert got == [A]
