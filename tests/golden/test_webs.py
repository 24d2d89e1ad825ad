"""What crawls and checks of random webs find is what they found before."""

from __future__ import annotations

from functools import cache

import pytest
from golden.facts import WEBS, Facts, golden, read

_AT_ONCE = 25
_slow = pytest.mark.slow
_CHUNKS = [pytest.param(first, marks=_slow if first else ()) for first in range(0, WEBS, _AT_ONCE)]

known = cache(read)


def differing(found: Facts, wanted: Facts) -> list[str]:
    """Name the facts that differ."""
    return [
        f"{way}.{name}"
        for way, facts in found.items()
        for name in facts.keys() | wanted[way].keys()
        if facts.get(name) != wanted[way].get(name)
    ]


@pytest.mark.parametrize("first", _CHUNKS)
def test_a_crawl_and_a_check_of_a_random_web_find_what_they_found_before(first: int) -> None:
    for seed in range(first, first + _AT_ONCE):
        assert not differing(golden(seed, kept=False), known()[seed]), seed


@_slow
@pytest.mark.parametrize("first", range(0, WEBS, _AT_ONCE))
def test_a_check_that_is_resumed_and_walked_again_finds_what_it_found_before(first: int) -> None:
    for seed in range(first, first + _AT_ONCE):
        assert not differing(golden(seed), known()[seed]), seed


def test_a_check_that_is_resumed_finds_what_a_check_in_one_run_finds() -> None:
    assert [seed for seed, facts in enumerate(known()) if facts["resumed"]] == []
