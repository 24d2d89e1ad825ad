"""URLs: WHATWG parsing, a fast path with the results of ada, parts of URLs, the seen key."""

from __future__ import annotations

import json
import random
import tracemalloc
from html import escape
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trio_crawler.page import urls
from trio_crawler.page.read import read
from trio_crawler.page.urls import normalise, resolve, seen_key, without_fragments

CASES = Path(__file__).parents[3] / "shared" / "data" / "urltestdata.json"

PIECES = (
    "a b.html .. . / // ? q=1 & %2e %7E %41 \\ : http: http://e.org http://e.org/ @ ; ~ ' \" < |"
    " ^ {"
    " [ - _ * ! $ = x/../y ./ ../ ..a .hidden a. ... % é HTTP://E.ORG/ mailto: ?a?b + , ("
).split()
PIECES += [" ", "\t"]
# What makes a host plain, or not.
PIECES += "http:// https:// www. f.org/ a-b.c/ xn--a. 127.1/ 0x7/ .1/ org/ -- :80/ _ -/".split()
BASES = [
    "http://e.org/",
    "http://e.org/a/b/c.html",
    "http://e.org/a/b/?q=1/2",
    "http://e.org:8080/x/",
    "https://e.org/a//b/c",
    "http://e.org/..a/b",
    "http://[::1]/a/b",
]


def resolved(hrefs: list[str], base: str) -> tuple[list[str], list[str]]:
    """Resolve hrefs as the reader of a page does, by the fast path where that is possible."""
    found, malformed = resolve(without_fragments(hrefs, base), base)
    return list(dict.fromkeys(found.values())), malformed


def one_by_one(hrefs: list[str], base: str) -> tuple[list[str], list[str]]:
    """Resolve every href with ada."""
    found: dict[str, None] = {}
    bad: dict[str, None] = {}
    for href in hrefs:
        try:
            found[normalise(href, base)] = None
        except ValueError:
            bad[href.partition("#")[0]] = None
    return list(found), list(bad)


def test_the_fast_path_equals_ada_for_ten_thousand_random_links():
    chance = random.Random(3986)
    for _ in range(1_000):
        base = chance.choice(BASES)
        hrefs = ["".join(chance.choices(PIECES, k=chance.randint(0, 6))) for _ in range(10)]
        wanted = one_by_one(hrefs, base)
        assert resolved(hrefs, base) == wanted
        page = "".join(f'<a href="{escape(href)}">' for href in hrefs).encode()
        facts = read(page, "text/html; charset=utf-8", base)
        assert (list(facts.links), list(facts.malformed)) == wanted


@given(st.lists(st.text(max_size=12)), st.sampled_from(BASES))
@example(["0 #", "0", "0\x08#x"], BASES[0])
def test_the_fast_path_equals_ada_for_any_text(hrefs, base):
    assert resolved(hrefs, base) == one_by_one(hrefs, base)


@pytest.mark.slow
def test_the_cache_of_links_has_a_bound():
    tracemalloc.start()
    for directory in range(100):
        hrefs = [f"{n}{'x' * 90}" for n in range(1_500)]
        resolved(
            [*hrefs, *("../" * n for n in range(500)), "y" * 100_000], f"http://e.org/{directory}/"
        )
    remembered = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert remembered < 30 << 20


@pytest.mark.skipif(not CASES.exists(), reason="../shared/data/urltestdata.json is not here")
def test_the_web_platform_tests_of_urls_pass():
    cases = [case for case in json.loads(CASES.read_text()) if isinstance(case, dict)]
    for case in cases:
        try:
            got: str | None = normalise(case["input"], case["base"])
        except ValueError:
            got = None
        assert got == expected(case), case
    assert len(cases) > 800


def expected(case: dict[str, str]) -> str | None:
    if case.get("failure"):
        return None
    href = case["href"].partition("#")[0]
    user, password = case.get("username"), case.get("password")
    if not user and not password:
        return href
    return href.replace(f"{user}:{password}@" if password else f"{user}@", "", 1)


@given(st.text(alphabet="ab/%2eE7fF~.?=é", max_size=20))
def test_a_seen_key_is_stable(path):
    url = normalise("http://e.org/" + path)
    key = seen_key(url)
    assert seen_key(key) == key
    assert normalise(key) == key


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://e.org/%7ea%2fb", "http://e.org/~a%2Fb"),
        ("http://e.org/?b=%41&a=%3d", "http://e.org/?b=A&a=%3D"),
        ("http://e.org/plain", "http://e.org/plain"),
    ],
)
def test_a_seen_key_has_no_needless_escapes_and_keeps_the_order(url, key):
    assert seen_key(url) == key


def test_the_parts_of_a_url():
    assert urls.origin("https://e.org:81/a//b") == "https://e.org:81"
    assert urls.host("https://e.org:81/a") == "e.org"
    assert urls.host("http://[::1]:81/") == "[::1]"
    assert urls.authority("https://e.org:81/a") == "e.org:81"


@pytest.mark.parametrize(
    ("url", "its_path", "its_directory"),
    [
        ("http://e.org/", "/", "http://e.org/"),
        ("https://e.org:81/a//b", "/a//b", "https://e.org:81/a//"),
        ("http://a/b/?c/d", "/b/", "http://a/b/"),
        ("http://a/b?c/d?e", "/b", "http://a/"),
    ],
)
def test_the_path_and_the_directory_of_a_url_leave_out_its_query(url, its_path, its_directory):
    assert urls.path(url) == its_path
    assert urls.directory(url) == its_directory


def test_a_user_and_a_fragment_are_dropped():
    assert normalise("http://user:pass@e.org/a#b") == "http://e.org/a"


def test_a_lone_surrogate_raises_nothing_but_value_errors():
    assert normalise("http://e.org/\ud800").startswith("http://e.org/")


def test_a_repeated_href_takes_room_once():
    base = "http://e.test/d/"
    room = 3 * (len(base) + 16)
    assert urls.resolve_within(["a", "b", "c"] * 1_000, base, "utf-8", room) == (
        {name: base + name for name in "abc"},
        [],
        room,
    )
