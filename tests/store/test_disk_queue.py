"""Lines of jobs that are kept in a file but for their ends."""

from __future__ import annotations

import errno
import os
import tracemalloc
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from cases import examples, for_each
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from trio_crawler.frontier.lasting import StoredJob
from trio_crawler.model import Job, Purpose, Reason, Validator
from trio_crawler.policy.plan import Plan
from trio_crawler.policy.settings import Politeness
from trio_crawler.schedule.host_scheduler import HostScheduler
from trio_crawler.store.compact import DiskQueue, DiskQueueFile, nameless_file
from trio_crawler.store.errors import StoreError


def job(number: int) -> StoredJob:
    return StoredJob(f"http://site.test/{number}", 1, referrer="http://site.test/", number=number)


@pytest.fixture
def file(tmp_path) -> Iterator[DiskQueueFile]:
    with opened(tmp_path) as one:
        yield one
    assert os.listdir(tmp_path) == []


@contextmanager
def opened(directory: Any, **functions: Callable[..., Any]) -> Iterator[DiskQueueFile]:
    """Open a file; `functions` take the place of its methods."""

    def hostile(directory: Path) -> Any:
        return Hostile(nameless_file(directory), functions)

    how = hostile if functions else nameless_file
    one = DiskQueueFile(directory, kind=StoredJob, opened=how)
    try:
        yield one
    finally:
        one.close()


def small(file: DiskQueueFile, lines: int = 1, block: int = 4) -> list[DiskQueue]:
    """Make lines whose blocks are small."""
    made = [DiskQueue(file) for _ in range(lines)]
    file.block = block
    return made


def drained(line: DiskQueue) -> list[int]:
    return [line.pop().number for _ in range(len(line))]


@examples(150)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(-12, 12)), max_size=60),
    st.integers(1, 9),
)
def test_lines_behave_as_queues_whatever_is_done(tmp_path_factory, steps, block):
    numbers = count()
    with opened(tmp_path_factory.getbasetemp()) as file:
        lines, queues = small(file, 3, block), [deque[StoredJob]() for _ in range(3)]
        for which, amount in steps:
            line, queue = lines[which], queues[which]
            for _ in range(amount):
                line.put(one := job(next(numbers)))
                queue.append(one)
            for _ in range(min(-amount, len(queue))):
                assert line.peek() == queue[0]
                assert line.pop() == queue.popleft()
            assert [len(line) for line in lines] == [len(queue) for queue in queues]
        for line, queue in zip(lines, queues, strict=True):
            assert [line.pop() for _ in range(len(line))] == list(queue)
        assert len(file) == 0


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
jobs = st.builds(
    StoredJob,
    url=texts,
    depth=st.integers(0, 10**6),
    redirects=st.integers(0, 20),
    referrer=st.none() | texts,
    tries=st.integers(0, 9),
    purpose=st.sampled_from(Purpose),
    priority=st.none() | st.floats(0, 1),
    validator=st.none()
    | st.builds(Validator, st.none() | texts, st.none() | texts, began=st.floats(0, 1e10)),
    blocked=st.none() | st.sampled_from(Reason),
    number=st.integers(0, 2**63 - 1),
)


@given(st.lists(jobs, min_size=1, max_size=5))
def test_every_field_of_a_job_comes_back_as_it_was(tmp_path_factory, some):
    with opened(tmp_path_factory.getbasetemp()) as file:
        offset, length = file.write(some)
        assert file.read(offset, length) == some


def test_a_job_that_comes_back_can_be_changed_and_hashed_like_any(file):
    offset, length = file.write([job(7)])
    (back,) = file.read(offset, length)
    assert type(back) is StoredJob
    assert hash(back) == hash(job(7))
    assert replace(back, blocked=Reason.STOPPED).number == 7
    with pytest.raises(AttributeError):
        back.number = 8  # type: ignore[misc]


def test_a_filed_job_has_the_defaults_of_a_job():
    plain, filed = Job("http://site.test/"), StoredJob("http://site.test/")
    assert all(getattr(filed, name) == getattr(plain, name) for name in Job.__struct_fields__)


def test_a_filed_job_made_of_a_job_has_all_that_it_has():
    one = Job("http://a.test/", 1, 2, "http://b.test/", 3, Purpose.SITEMAP, 0.4, Validator("e"))
    one = replace(one, blocked=Reason.STOPPED, again=True)
    filed = StoredJob.of(one, 5)
    assert filed.number == 5
    assert all(getattr(filed, each) == getattr(one, each) for each in Job.__struct_fields__)


def test_a_line_that_is_short_never_touches_the_disk(tmp_path):
    # A directory that is not there: a file in it could not be opened.
    with opened(tmp_path / "nowhere") as file:
        for line in [DiskQueue(file) for _ in range(1000)][::100]:
            for _ in range(3):
                for number in range(2 * file.block):
                    line.put(job(number))
                assert drained(line) == list(range(2 * file.block))


def test_the_file_has_no_name_and_is_gone_when_it_is_closed(tmp_path):
    before = set(os.listdir("/proc/self/fd"))
    file = DiskQueueFile(tmp_path, kind=StoredJob)
    (line,) = small(file)
    for number in range(100):
        line.put(job(number))
    assert os.listdir(tmp_path) == []
    assert len(set(os.listdir("/proc/self/fd")) - before) == 1
    file.close()
    file.close()
    assert set(os.listdir("/proc/self/fd")) == before


def test_the_file_is_emptied_when_nothing_is_in_it_any_more_and_used_again(file):
    lines = small(file, 2)
    for _ in range(3):
        for line in lines:
            for number in range(50):
                line.put(job(number))
        size = len(file)
        assert drained(lines[0]) == list(range(50))
        assert len(file) == size
        assert drained(lines[1]) == list(range(50))
        assert len(file) == 0
        assert os.fstat(file._open().fileno()).st_size == 0


def test_the_more_lines_there_are_the_less_each_keeps_in_memory(tmp_path):
    with opened(tmp_path) as file:
        kept = []
        for _ in range(20_000):
            DiskQueue(file)
            kept.append(file.block)
        assert kept == sorted(kept, reverse=True)
        assert kept[0] == 200
        assert kept[499] == 100
        assert kept[-1] == 4


def test_a_job_in_the_file_takes_less_than_10_bytes_of_memory(file):
    (line,) = small(file, block=8)
    for number in range(100):
        line.put(job(number))
    tracemalloc.start()
    for number in range(100, 20_100):
        line.put(job(number))
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 10 * 20_000


def test_a_line_takes_no_more_memory_the_longer_it_is_used(file):
    (line,) = small(file)
    for number in range(100):
        line.put(job(number))
    tracemalloc.start()
    for number in range(100, 20_100):
        line.put(job(number))
        assert line.pop().number == number - 100
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 20_000


def test_a_hundred_thousand_jobs_through_the_file_cost_less_than_10_us_each(file):
    line = DiskQueue(file)
    some = [job(number) for number in range(100_000)]
    begun = process_time()
    for one in some:
        line.put(one)
    assert drained(line) == list(range(100_000))
    # 2 us on the machine where this was written.
    assert process_time() - begun < 1


class Failing:
    """Let the n-th call of a method fail."""

    def __init__(self, nth: int, error: int) -> None:
        self.left, self.error = nth, error

    def __call__(self, real: Callable[..., Any], argument: Any) -> Any:
        self.left -= 1
        if not self.left:
            raise OSError(self.error, os.strerror(self.error))
        return real(argument)


def half_written(real: Callable[..., Any], data: memoryview) -> Any:
    """Write less than all, as the system may."""
    return real(data[: max(1, len(data) // 2)])


def half_read(real: Callable[..., Any], length: int) -> Any:
    return real(max(1, length // 2))


class Hostile:
    """Stand for a file some of whose methods are others; they get the real one first."""

    def __init__(self, file: Any, functions: dict[str, Callable[..., Any]]) -> None:
        self._file = file
        for name, function in functions.items():
            setattr(self, name, partial(function, getattr(file, name)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@for_each("name", ["write", "read", "seek", "truncate"])
@for_each("error", [errno.ENOSPC, errno.EIO])
def test_after_an_error_of_any_call_no_job_is_lost_or_doubled(tmp_path, name, error):
    raised = 0
    for nth in range(1, 12):
        with opened(tmp_path, **{name: Failing(nth, error)}) as file:
            lines, came = small(file, 2, 3), list[int]()
            for number in range(40):
                for which, line in enumerate(lines):
                    raised += again(lambda: line.put(job(10 * number + which)))  # noqa: B023
            for line in lines:
                for number in range(len(line)):
                    raised += again(line.peek)
                    raised += again(lambda: came.append(line.pop().number))  # noqa: B023
                    assert len(line) == 39 - number
            assert came == [10 * n for n in range(40)] + [10 * n + 1 for n in range(40)]
            assert len(file) == 0
    # A file is cut once for both lines.
    assert raised == (11 if name != "truncate" else 1)


def again(call: Callable[[], Any]) -> int:
    """Call once, and once more if it fails; return how often it failed."""
    try:
        call()
    except StoreError:
        call()
        return 1
    return 0


def test_a_job_that_could_not_be_added_is_not_in_the_line(tmp_path):
    with opened(tmp_path, write=Failing(1, errno.ENOSPC)) as file:
        (line,) = small(file)
        for number in range(8):
            line.put(job(number))
        with pytest.raises(StoreError, match="No space"):
            line.put(job(8))
        assert len(line) == 8
        line.put(job(9))
        assert drained(line) == [*range(8), 9]


def test_calls_that_do_half_of_what_they_are_asked_for_are_repeated(tmp_path):
    with opened(tmp_path, write=half_written, read=half_read) as file:
        (line,) = small(file)
        for number in range(100):
            line.put(job(number))
        assert drained(line) == list(range(100))


def test_a_file_that_somebody_cut_is_an_error_and_not_an_endless_loop(file):
    (line,) = small(file)
    for number in range(100):
        line.put(job(number))
    os.ftruncate(file._open().fileno(), 10)
    for number in range(4):
        assert line.pop().number == number
    with pytest.raises(StoreError, match="truncated"):
        line.pop()


def test_where_files_without_a_name_are_unknown_the_name_is_removed_at_once(monkeypatch, tmp_path):
    monkeypatch.delattr("tempfile._O_TMPFILE_WORKS", raising=False)
    monkeypatch.setattr("tempfile._O_TMPFILE_WORKS", False, raising=False)
    with opened(tmp_path) as file:
        (line,) = small(file)
        for number in range(100):
            line.put(job(number))
        assert os.listdir(tmp_path) == []
        assert drained(line) == list(range(100))


def test_a_directory_that_is_not_there_is_an_error_and_loses_no_job(tmp_path):
    with opened(tmp_path / "nowhere") as file:
        (line,) = small(file)
        for number in range(8):
            line.put(job(number))
        with pytest.raises(StoreError, match="nowhere"):
            line.put(job(8))
        assert drained(line) == list(range(8))


def test_a_scheduler_keeps_what_waits_in_the_queues_that_it_is_given(file):
    quick = Politeness(delay=0.0, per_host=1, adaptive=False, robots=False)
    plan = Plan(["http://site.test/"], politeness=quick)
    scheduler = HostScheduler(plan, lambda: small(file)[0])
    some = [replace(job(n), url=f"http://site{n % 3}.test/{n}") for n in range(60)]
    for one in some:
        scheduler.put(one, 0.0)
    assert len(file) > 0
    assert [host.statistics(0.0).waiting for host in scheduler.hosts()] == [20, 20, 20]
    rest = list(scheduler.empty())
    assert [one.number for one in rest] == [n for k in range(3) for n in range(k, 60, 3)]
    assert scheduler.next(0.0) is None
    assert not scheduler.waiting
    assert len(file) == 0
