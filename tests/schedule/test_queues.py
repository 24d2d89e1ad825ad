"""The order in which the jobs of one host come out."""

from __future__ import annotations

import tracemalloc
from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from trio_crawler.model import Job
from trio_crawler.policy.settings import breadth_first, by_sitemap, depth_first
from trio_crawler.schedule.queues import FifoQueue, PriorityQueue, Queue, make_queue, parameters


def job(name: str, depth: int = 0, priority: float | None = None) -> Job:
    return Job(f"http://site.test/{name}", depth, priority=priority)


def come_out(jobs: Queue) -> list[str]:
    """Take all jobs; return the last letter of each."""
    taken = []
    while jobs:
        assert jobs.peek() is jobs.peek()
        first = jobs.peek()
        assert jobs.pop() is first
        taken.append(first.url[-1])
    return taken


def filled(jobs: Queue, *some: Job) -> Queue:
    for one in some:
        jobs.put(one)
    return jobs


def test_depth_first_the_deepest_job_comes_out_first_and_the_oldest_of_several():
    some = job("a", 1), job("b", 3), job("c", 2), job("d", 3)
    assert come_out(filled(make_queue(depth_first), *some)) == ["b", "d", "c", "a"]


def test_by_sitemap_the_highest_priority_comes_out_first_and_none_is_one_half():
    some = job("a", 0, 0.1), job("b", 2), job("c", 1), job("d", 5, 1.0), job("e", 3, 0.5)
    assert come_out(filled(make_queue(by_sitemap), *some)) == ["d", "c", "b", "e", "a"]


def test_anyone_can_replace_the_order():
    def longest_first(one: Job) -> int:
        return -len(one.url)

    some = job("a"), job("bbb"), job("cc")
    assert come_out(filled(make_queue(longest_first), *some)) == ["b", "c", "a"]


def test_jobs_that_are_equal_in_rank_are_never_compared():
    some = [Job("http://site.test/", priority=0.5) for _ in range(5)]
    assert len(come_out(filled(make_queue(by_sitemap), *some))) == 5


@given(st.lists(st.booleans(), max_size=200))
def test_a_fifo_gives_what_a_queue_gives(steps):
    jobs, queue = FifoQueue(), deque[Job]()
    for number, putting in enumerate(steps):
        if putting:
            jobs.put(one := job(str(number)))
            queue.append(one)
        elif queue:
            assert jobs.peek() is queue[0]
            assert jobs.pop() is queue.popleft()
        assert len(jobs) == len(queue)


@given(st.lists(st.none() | st.integers(0, 5), max_size=100))
def test_a_ranked_line_gives_what_sorting_gives(steps):
    jobs, waiting = PriorityQueue(breadth_first), list[Job]()
    for number, depth in enumerate(steps):
        if depth is not None:
            jobs.put(one := job(str(number), depth))
            waiting.append(one)
        elif waiting:
            first = min(waiting, key=breadth_first)
            waiting.remove(first)
            assert jobs.pop() is first
        assert len(jobs) == len(waiting)


def test_the_jobs_of_a_queue_that_gets_ranks_come_out_with_those_of_the_rank_0():
    plain = filled(FifoQueue(), job("a"), job("b"))
    jobs = PriorityQueue(parameters, FifoQueue, plain)
    filled(jobs, job("?c"), job("d"))
    assert len(jobs) == 4
    assert come_out(jobs) == ["a", "b", "d", "c"]


def test_a_fifo_takes_no_more_memory_the_longer_it_is_used():
    jobs = filled(FifoQueue(), job("a"), job("b"), job("c"), job("d"))
    tracemalloc.start()
    for number in range(10_000):
        jobs.put(job(str(number)))
        jobs.pop()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 10_000


def test_a_fifo_keeps_no_job_that_came_out():
    jobs = FifoQueue()
    tracemalloc.start()
    for number in range(100):
        jobs.put(job("x" * 1000 + str(number)))
    whole, _ = tracemalloc.get_traced_memory()
    for _ in range(49):
        jobs.pop()
    rest, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert rest < 0.6 * whole
