"""The lanes of a host: the pages whose shape has brought something come first."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from trio_crawler.model import Job
from trio_crawler.policy.queries import Queries
from trio_crawler.schedule.queues import FifoQueue, Lanes

H = "http://h"


def lanes(*targets: str, queries: Queries | None = None) -> Lanes:
    found = Lanes(FifoQueue(), FifoQueue, queries or Queries(16))
    for target in targets:
        found.put(Job(H + target))
    return found


def popped(queue: Lanes, count: int | None = None) -> list[str]:
    most = len(queue) if count is None else count
    return [queue.pop().url.removeprefix(H) for _ in range(most)]


def learned(**brought: bool) -> Queries:
    """Return what a host has learned: parameters, and whether each brought something."""
    queries = Queries(16)
    for name, news in brought.items():
        for _ in range(8):
            queries.record(f"{H}/list?{name}=x", news=news)
    return queries


def test_urls_without_a_query_are_first_in_first_out():
    targets = [f"/{letter}" for letter in "cabfed"]
    assert popped(lanes(*targets)) == targets


def test_the_jobs_that_waited_before_are_in_a_lane_of_their_own():
    plain = FifoQueue()
    for letter in "ab":
        plain.put(Job(f"{H}/{letter}"))
    queue = Lanes(plain, FifoQueue, Queries(16))
    queue.put(Job(f"{H}/?q=x"))
    assert len(queue) == 3
    assert popped(queue) == ["/a", "/b", "/?q=x"]


def test_good_shapes_take_turns_with_the_rest_and_poor_ones_wait():
    queries = learned(good=True, poor=False)
    waiting = [f"/list?poor={letter}" for letter in "ab"]
    waiting += [f"/list?good={letter}" for letter in "ab"] + ["/a", "/b"]
    assert popped(lanes(*waiting, queries=queries)) == [
        *("/a", "/list?good=a", "/b", "/list?good=b"),
        *("/list?poor=a", "/list?poor=b"),
    ]


def test_one_turn_of_four_goes_to_shapes_of_which_nothing_is_known():
    queue = lanes(*(f"/{letter}" for letter in "abcdef"), *(f"/?q={letter}" for letter in "xyz"))
    assert popped(queue) == ["/a", "/b", "/c", "/?q=x", "/d", "/e", "/f", "/?q=y", "/?q=z"]


def test_of_equal_shapes_those_with_the_fewest_parameters_come_first():
    targets = ["/list?tag=a&sort=b", "/list?tag=a", "/list?sort=b"]
    assert popped(lanes(*targets)) == ["/list?tag=a", "/list?sort=b", "/list?tag=a&sort=b"]


def test_a_list_that_is_continued_comes_with_the_pages_that_it_leads_to():
    queue = lanes("/list?tag=x", "/a", "/b", "/c", "/list?page=2")
    assert popped(queue) == ["/a", "/list?page=2", "/b", "/list?tag=x", "/c"]


def test_a_shape_rises_as_soon_as_one_of_its_pages_brought_something():
    queries = Queries(16)
    queue = lanes(*(f"/{n}" for n in "abc"), *(f"/?q={n}" for n in "xy"), queries=queries)
    assert popped(queue, 1) == ["/a"]
    queries.record(f"{H}/?q=w", news=True)
    assert popped(queue) == ["/b", "/?q=x", "/c", "/?q=y"]


def test_the_job_that_was_shown_is_the_next_one_whatever_happens_between():
    queries = Queries(16)
    queue = lanes("/?q=x", queries=queries)
    shown = queue.peek()
    queue.put(Job(f"{H}/a"))
    queries.record(f"{H}/?q=w", news=False)
    assert queue.pop() is shown
    assert queue.peek() is queue.peek()


@pytest.mark.parametrize("news", [True, False])
def test_each_job_comes_exactly_once(news):
    queries = Queries(4)
    queue, put, got = lanes(queries=queries), set[str](), list[str]()

    def add(targets: Iterable[str]) -> None:
        for target in targets:
            put.add(target)
            queue.put(Job(H + target))

    for number in range(60):
        name = "abcdefg"[number % 7]
        add([f"/{number}x", f"/list?{name}=v{number}x", f"/list?{name}=v&z=w{number}x"])
        for _ in range(2):
            target = queue.pop().url.removeprefix(H)
            got.append(target)
            if "?" in target:
                queries.record(H + target, news=news and not number % 5)
    got += popped(queue)
    assert len(queue) == 0
    assert sorted(got) == sorted(put)


def test_an_empty_one_has_no_job():
    with pytest.raises(IndexError, match="no job waits"):
        lanes().pop()
