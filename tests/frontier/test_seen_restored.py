"""The seen set of a crawl that goes on where an earlier run of it stopped."""

from __future__ import annotations

from time import process_time

import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st

from trio_crawler.frontier.memory import Seen
from trio_crawler.model import Job
from trio_crawler.store.compact import UrlSet

FULL = 3


def at(name: str) -> str:
    return f"http://site.test/{name}"


@pytest.fixture(params=[lambda: None, UrlSet], ids=["strings", "keys"])
def seen(request) -> Seen:
    return Seen(FULL, request.param())


def test_what_was_restored_is_known_and_is_not_admitted_again(seen):
    seen.restore([(1, at("a"), FULL), (2, at("b"), FULL + 1), (3, at("c"), 1)])
    assert len(seen) == 3
    assert seen.known([at("a"), at("b"), at("c"), at("d")]) == {at("a"), at("b")}
    assert all(at(name) in seen for name in "abc")
    assert [seen.admit(Job(at(name), 0, 1)) for name in "abc"] == [None] * 3
    assert seen.admit(Job(at("d"))) == Job(at("d"))


def test_another_spelling_of_what_was_restored_is_known_too(seen):
    seen.restore([(1, at("%7e%c3%bc"), FULL), (2, at("%7E"), 0)])
    assert seen.known([at("~%C3%BC"), at("%7e%C3%bc")]) == {at("~%C3%BC"), at("%7e%C3%bc")}
    assert at("~") in seen
    seen.admit(Job(at("~"), 0, 2))
    assert seen.raised == [(2, 2)]


def test_a_raised_budget_is_told_by_the_number_that_was_noted(seen):
    seen.admit(Job(at("a"), 0, 1))
    seen.number(at("a"), 17)
    seen.admit(Job(at("a"), 0, 2))
    seen.admit(Job(at("a"), 0, 3))
    assert seen.raised == [(2, 17), (3, 17)]


def test_without_a_number_nothing_is_collected(seen):
    seen.admit(Job(at("a"), 0, 1))
    seen.admit(Job(at("a"), 0, 2))
    assert seen.raised == []


def test_the_number_of_a_url_with_the_full_budget_is_not_kept(seen):
    seen.admit(Job(at("a"), 0, FULL))
    seen.number(at("a"), 1)
    assert not seen._numbers


names = st.sampled_from([at(name) for name in ("a", "b", "c", "d", "%7Ee", "~e", "%7ee")])
steps = st.lists(
    st.tuples(st.sampled_from(["admit", "follow"]), names, names, st.integers(-1, FULL)),
    max_size=30,
)


@examples(150)
@given(steps, steps)
def test_a_restored_one_decides_as_the_one_that_was_never_stopped(before, after):
    """Play a frontier that files what is admitted, and stop and restore it in the middle."""
    first, rows, hops = Seen(FULL), dict[int, list[str | int]](), dict[str, str]()
    played(first, before, rows, hops)
    second = Seen(FULL, UrlSet(len(rows)))
    second.restore((number, str(url), int(left)) for number, (url, left) in rows.items())
    second.restore_hops(hops.items())
    assert len(second) == len(first)
    rows_then, hops_then = {number: list(row) for number, row in rows.items()}, dict(hops)
    assert played(first, after, rows, hops) == played(second, after, rows_then, hops_then)
    assert rows_then == rows
    # That a budget was raised to the full one, only the restored one takes into account.
    asked = [at(name) for name in ("a", "b", "~e", "%7ee", "z")]
    assert first.known(asked) <= second.known(asked)


def played(
    seen: Seen,
    steps: list[tuple[str, str, str, int]],
    rows: dict[int, list[str | int]],
    hops: dict[str, str],
) -> list[object]:
    """Do the steps; file rows of URL and redirects, and hops, as a crawl directory does."""
    said: list[object] = []
    for what, url, target, redirects in steps:
        if what == "admit":
            job = seen.admit(Job(url, 0, redirects))
            said.append(job)
            if job is not None:
                number = len(rows) + 1
                rows[number] = [job.url, job.redirects]
                seen.number(job.url, number)
        elif url not in hops and (left := [row[1] for row in rows.values() if row[0] == url]):
            hops[url] = target
            said.append(seen.follow(url, Job(target, 0, int(left[0]) - 1)))
        for left, number in seen.raised:
            rows[number][1] = left
        seen.raised.clear()
    return said


def test_a_hundred_thousand_urls_are_restored_in_less_than_half_a_second():
    rows = [(number, at(f"documentation/{number:07}.html"), FULL) for number in range(100_000)]
    seen = Seen(FULL, UrlSet(100_000))
    begun = process_time()
    seen.restore(rows)
    # 0.1 s on the machine where this was written.
    assert process_time() - begun < 0.5
    assert len(seen) == 100_000
