"""Queues in the order of ranks, whose last jobs are in a file."""

from __future__ import annotations

import errno
import os
from functools import partial
from itertools import count

import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st

from trio_crawler.model import Job
from trio_crawler.policy.settings import by_sitemap, depth_first
from trio_crawler.schedule.queues import PriorityQueue
from trio_crawler.store.compact import (
    DiskQueue,
    DiskQueueFile,
    nameless_file,
)
from trio_crawler.store.errors import StoreError


def job(number: int, depth: int = 0, priority: float | None = None) -> Job:
    return Job(f"http://site.test/{number}", depth, priority=priority)


@examples(200)
@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(-9, 9), st.integers(0, 3)), max_size=60),
    st.integers(1, 6),
    st.sampled_from([depth_first, by_sitemap]),
    st.sampled_from([0, 1_000, 10**9]),
)
def test_ranked_jobs_come_out_of_a_file_as_of_memory(
    tmp_path_factory, steps, block, order, memory
):
    numbers = count()
    file = DiskQueueFile(tmp_path_factory.getbasetemp(), memory=memory)
    heaps = [PriorityQueue(order, partial(DiskQueue, file)) for _ in range(2)]
    models = [PriorityQueue(order) for _ in range(2)]
    file.block = block
    for which, amount, depth in steps:
        heap, model = heaps[which], models[which]
        for _ in range(amount):
            one = job(next(numbers), depth, depth / 3 if depth else None)
            heap.put(one)
            model.put(one)
        for _ in range(min(-amount, len(model))):
            assert heap.peek() == model.peek()
            assert heap.pop() == model.pop()
        assert len(heap) == len(model)
    for heap, model in zip(heaps, models, strict=True):
        assert [heap.pop() for _ in range(len(heap))] == [model.pop() for _ in range(len(model))]
    assert len(file) == 0
    assert file.held == 0
    file.close()


def test_a_job_that_could_not_be_written_is_not_in_the_queue(tmp_path):
    failing = [False]

    class Full:
        def __init__(self, file):
            self._file = file

        def __getattr__(self, name):
            return getattr(self._file, name)

        def write(self, data):
            if failing[0]:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return self._file.write(data)

    file = DiskQueueFile(tmp_path, opened=lambda directory: Full(nameless_file(directory)))
    heap = PriorityQueue(depth_first, partial(DiskQueue, file))
    heap.put(job(0))
    failing[0] = True
    for depth in range(2):
        with pytest.raises(StoreError):
            heap.put(Job("http://site.test/" + "q" * file.block_bytes, depth))
    failing[0] = False
    heap.put(job(2, 2))
    assert [heap.pop().depth for _ in range(len(heap))] == [2, 0]
    file.close()


def test_very_many_queues_with_one_long_url_each_keep_few_in_memory(tmp_path):
    file = DiskQueueFile(tmp_path, memory=1_000_000)
    queues = [DiskQueue(file) for _ in range(20_000)]
    for number, queue in enumerate(queues):
        queue.put(Job(f"http://a{number}.test/" + "q" * 1_900))
    assert file.held < 1_100_000
    for number, queue in enumerate(queues):
        assert queue.pop().url.startswith(f"http://a{number}.test/")
    assert file.held == 0
    file.close()
