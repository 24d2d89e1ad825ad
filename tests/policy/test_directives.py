"""Directives: X-Robots-Tag and meta robots as facts."""

from __future__ import annotations

import time

import httpx
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from trio_crawler.policy.answers import (
    MAX_DIRECTIVES,
    header_directives,
    meta_directives,
)


def header(*values: str, token: str = "trio_crawler") -> tuple[str, ...]:
    """Read X-Robots-Tag fields with these values."""
    return header_directives(httpx.Headers([("X-Robots-Tag", value) for value in values]), token)


BOTH = {
    "": "",
    "noindex": "noindex",
    "NoIndex , NOFOLLOW": "noindex nofollow",
    "nofollow, noindex, nofollow": "nofollow noindex",
    "none": "noindex nofollow",
    "nofollow, NONE, noarchive": "nofollow noindex noarchive",
    "noindex nofollow\tnoarchive": "noindex nofollow noarchive",
    ",, noindex,\n,": "noindex",
    "max-snippet: 5, max-image-preview :large": "max-snippet:5 max-image-preview:large",
    "max-snippet:-1,nofollow": "max-snippet:-1 nofollow",
}


@for_each("text, directives", BOTH.items())
def test_directives_are_lower_case_distinct_and_in_order_and_none_means_two(text, directives):
    assert header(text) == tuple(directives.split())
    assert meta_directives([text]) == tuple(directives.split())


@for_each(
    "date", ["Wed, 25 Jun 2036 15:00:00 PST", "25 Jun 2036 15:00:00 PST", "2036-06-25T15:00:00Z"]
)
@for_each("read", [header, lambda text: meta_directives([text])])
def test_a_date_is_one_value_with_its_commas_and_colons(read, date):
    text = f"noarchive, unavailable_after: {date}, nofollow"
    assert read(text) == ("noarchive", f"unavailable_after:{date.lower()}", "nofollow")


@for_each(
    "values, directives",
    [
        (["trio_crawler: noindex, nofollow"], "noindex nofollow"),
        (["TRIO_Crawler : nofollow"], "nofollow"),
        (["trio_crawler/0.1: nofollow"], "nofollow"),
        (["*: nofollow"], "nofollow"),
        (["otherbot: noindex, nofollow"], ""),
        (["trio_crawler2bot: nofollow, trio_crawler-news: nofollow"], "nofollow"),
        (["otherbot: noindex", "nofollow"], "nofollow"),
        (["noarchive, otherbot: noindex, trio_crawler: nofollow, nosnippet"],
         "noarchive nofollow nosnippet"),
        (["trio_crawler: nofollow, otherbot: noindex"], "nofollow"),
        (["otherbot: unavailable_after: 25 Jun 2036 15:00:00 PST, nofollow"], ""),
        (["otherbot: max-snippet: 5, max-video-preview: 7, nofollow"], ""),
        (["trio_crawler: max-snippet: 5, none"], "max-snippet:5 noindex nofollow"),
        (["trio_crawler: noindex nofollow"], "noindex nofollow"),
        (["trio_crawler:, nofollow"], "nofollow"),
        (["otherbot:, nofollow"], ""),
        (["noindex", "nofollow, noindex", "none"], "noindex nofollow"),
    ],
)  # fmt: skip
def test_a_field_is_for_everybody_or_for_the_agents_it_names(values, directives):
    assert header(*values) == tuple(directives.split())


def test_no_more_than_fifty_directives_are_kept_and_none_that_is_longer_than_any():
    text = ", ".join(f"no{number}" for number in range(200))
    assert (
        header(text, text)
        == meta_directives([text])
        == tuple(f"no{number}" for number in range(MAX_DIRECTIVES))
    )
    assert meta_directives([text.replace("no49", "none")])[-2:] == ("no48", "noindex")
    assert header("x" * 101 + ", nofollow", "y" * 100) == ("nofollow", "y" * 100)


@for_each("part", [",", " ", ", ", "a:", "a,", " :", "a ", "," + " " * 999, "1,"])
def test_ten_megabytes_cost_no_more_than_a_few_kilobytes(part):
    text = part * (10_000_000 // len(part))
    start = time.process_time()
    header(text)
    meta_directives([text])
    assert time.process_time() - start < 0.2


@given(st.lists(st.text()), st.text())
def test_any_text_gives_lower_case_directives_and_never_more_than_fifty(texts, token):
    for found in (
        header_directives(
            httpx.Headers([("x-robots-tag", text) for text in texts], "utf-8"), token
        ),
        meta_directives(texts),
    ):
        assert len(found) == len(set(found)) <= MAX_DIRECTIVES
        assert "none" not in found
        assert all(each == each.lower() and each for each in found)
