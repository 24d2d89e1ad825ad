"""Google's own cases of robots.txt, from google/robotstxt: which of them hold, and why not all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trio_crawler.page.urls import normalise
from trio_crawler.policy.robots import parse_rules

CASES = Path(__file__).parents[2] / "../shared/data/google_robots_cases.json"

UNNORMALISED = "a crawl has no URL with a raw character in it: WHATWG escapes it, then it matches"
DIFFERENT = {
    ("ID_Encoding", "/foo/bar/ツ", "http://foo.bar/foo/bar/ツ"): UNNORMALISED,
    ("ID_Encoding", "/foo/bar/%E3%83%84", "http://foo.bar/foo/bar/ツ"): UNNORMALISED,
    ("ID_Encoding", "/foo/bar/%62%61%7A", "http://foo.bar/foo/bar/baz"): (
        "RFC 9309, 2.2.2, decodes escaped unreserved characters before it compares; its own"
        " table has this very path"
    ),
    (
        "GoogleOnly_IndexHTMLisDirectory",
        "/allowed-slash/index.html",
        "http://foo.com/allowed-slash/",
    ): "only Google takes index.html for its directory; by RFC 9309 the directory is disallowed",
}
"""Test, allowing pattern and URL of each case that is meant to come out otherwise, and why."""


def cases() -> list[dict[str, object]]:
    if not CASES.exists():
        pytest.skip("../shared/data/google_robots_cases.json is not here")
    return json.loads(CASES.read_text("utf-8"))["cases"]


def holds(case) -> bool:
    # One system test asks for no URL at all. The agents are product tokens already.
    url = normalise(case["url"]) if case["url"] else ""
    rules = parse_rules(case["robots"].encode(), case["agent"])
    return rules.allows(url) == case["allowed"]


def is_different(case) -> bool:
    return any(
        (test, url) == (case["test"], case["url"]) and f"llow: {pattern}\n" in case["robots"]
        for test, pattern, url in DIFFERENT
    )


def test_all_of_googles_cases_hold_but_those_that_are_explained():
    failing = [case for case in cases() if not holds(case)]
    assert failing == [case for case in cases() if is_different(case)]
    assert len(failing) == len(DIFFERENT)
    assert len(cases()) - len(failing) == 148
