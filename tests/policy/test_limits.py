"""The bounds of a crawl: which figures they take."""

from __future__ import annotations

import math
from dataclasses import fields

import pytest
from cases import for_each

from trio_crawler.policy.settings import Limits

NAMES = [field.name for field in fields(Limits)]
WHOLE = ["max_redirects", "max_tries", "max_links"]


@for_each("name", NAMES)
@for_each("figure", ["1", None, True, [1]])
def test_a_limit_that_is_no_number_is_refused_by_name(name, figure):
    with pytest.raises(TypeError, match=f"^{name} must be a (whole )?number, not "):
        Limits(**{name: figure})


@for_each("name", NAMES)
@for_each("figure", [-1, -math.inf, math.nan])
def test_a_limit_below_its_least_is_refused_by_name(name, figure):
    with pytest.raises((ValueError, TypeError), match=f"^{name} must be"):
        Limits(**{name: figure})


@pytest.mark.parametrize("name", ["max_pages", "max_seconds", "max_tries", "max_links"])
def test_a_limit_of_nothing_is_refused_where_it_would_end_every_crawl(name):
    with pytest.raises(ValueError, match=f"^{name} must be"):
        Limits(**{name: 0})


@for_each("name", NAMES)
def test_a_limit_may_be_one(name):
    assert getattr(Limits(**{name: 1}), name) == 1


@for_each("name", sorted(set(NAMES) - set(WHOLE)))
def test_some_limits_may_be_infinite(name):
    assert getattr(Limits(**{name: math.inf}), name) == math.inf


@pytest.mark.parametrize("name", WHOLE)
def test_others_are_whole_numbers(name):
    with pytest.raises(TypeError, match=f"^{name} must be a whole number"):
        Limits(**{name: 1.5})


def test_the_timeout_and_the_bound_on_a_body_are_the_fetchs():
    for name in ("timeout", "max_bytes"):
        with pytest.raises(TypeError, match=name):
            Limits(**{name: 1})
