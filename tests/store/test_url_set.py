"""Which URLs were met, as 64-bit keys."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from statistics import median
from time import process_time, thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_crawler.store.compact import UrlSet


def url(number: int) -> str:
    return f"https://site.test/documentation/page-{number:08}.html"


def filled(count: int, expected: int = 0) -> UrlSet:
    keys = UrlSet(expected)
    keys.update(map(url, range(count)))
    return keys


some_urls = st.lists(st.integers(0, 300).map(url), max_size=80)


@given(
    st.lists(st.tuples(st.sampled_from(["add", "update", "ask"]), some_urls), max_size=30),
    st.integers(0, 200),
)
def test_keys_answer_as_a_set_of_the_urls_does(steps, expected):
    keys, model = UrlSet(expected), set[str]()
    for step, urls in steps:
        if step == "add":
            for one in urls:
                keys.add(one)
            model.update(urls)
        elif step == "update":
            keys.update(iter(urls))
            model.update(urls)
        assert keys.intersection(urls) == model.intersection(urls)
        assert [one in keys for one in urls] == [one in model for one in urls]
        assert len(keys) == len(model)


@pytest.mark.slow
@pytest.mark.parametrize("expected", [0, 1, 29, 30, 31, 639, 640, 641, 5_000, 70_000])
def test_whatever_is_expected_each_url_is_found_and_no_other(expected):
    keys = filled(50_000, expected)
    assert len(keys) == 50_000
    assert all(url(number) in keys for number in range(50_000))
    assert not any(url(number) in keys for number in range(50_000, 100_000))


def test_a_url_that_was_asked_for_before_it_was_added_is_found_after():
    keys = UrlSet()
    assert keys.intersection([url(1)]) == set()
    keys.add(url(1))
    assert keys.intersection([url(1)]) == {url(1)}


def test_more_urls_than_are_kept_as_they_are_do_not_disturb_the_answers():
    keys = filled(100_000)
    for start in range(0, 100_000, 1000):
        urls = [url(number) for number in range(start, start + 2000)]
        assert keys.intersection(urls) == set(urls[: 100_000 - start])


def test_asking_for_many_long_urls_keeps_no_memory():
    keys = UrlSet()
    keys.update(url(number) + "x" * 10_000 for number in range(1000))
    tracemalloc.start()
    for number in range(1000):
        long = url(number) + "x" * 10_000
        assert keys.intersection([long]) == {long}
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 100_000


def test_asking_for_ever_more_urls_keeps_no_more_than_16_mib():
    keys = UrlSet()
    names = [url(number) + "x" * 180 for number in range(60_000)]
    keys.update(names)
    tracemalloc.start()
    for start in range(0, 60_000, 100):
        # Strings that nobody else keeps.
        asked = [name[:-1] + "x" for name in names[start : start + 100]]
        assert len(keys.intersection(asked)) == 100
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16 * 2**20


@pytest.mark.slow
@pytest.mark.parametrize("count", [10_000, 40_000, 65_536])
def test_a_url_takes_less_than_20_bytes(count):
    tracemalloc.start()
    keys = filled(count)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(keys) == count
    assert size < 20 * count


def test_an_empty_set_takes_less_than_a_kibibyte():
    tracemalloc.start()
    keys = UrlSet()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert not keys
    assert size < 1024


def test_no_url_waits_for_the_set_to_grow():
    keys, slowest = UrlSet(), 0.0
    for start in range(0, 150_000, 100):
        urls = [url(number) for number in range(start, start + 100)]
        begun = thread_time()
        keys.update(urls)
        slowest = max(slowest, thread_time() - begun)
    # A set of Python's takes as long for a single one of them when it has grown to 5,000,000.
    assert slowest < 0.02


def test_to_look_at_100_known_links_takes_a_few_times_as_long_as_to_look_at_a_set():
    known = [url(number) for number in range(100)]
    model, keys = set(map(url, range(100_000))), filled(100_000)

    def spent(urls: set[str] | UrlSet) -> float:
        begun = process_time()
        for _ in range(200):
            urls.intersection(known)
        return process_time() - begun

    pairs = [(spent(keys), spent(model)) for _ in range(9)]
    assert median(ours / theirs for ours, theirs in pairs) < 3


def test_the_keys_mean_nothing_to_another_process():
    program = (
        "from trio_crawler.store.compact import UrlSet; keys = UrlSet(); keys.add('http://site.test/');"
        "print(keys._buckets)"
    )
    command = [sys.executable, "-c", program]
    assert len({subprocess.check_output(command) for _ in range(3)}) == 3
