"""Robots rules: which patterns match, which of them wins, and that it never takes long."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from trio_crawler.page.urls import normalise
from trio_crawler.policy.robots import Rules, parse_rules

NOTHING = Rules({"/": False})
KEPT = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:/?#[]@!&()+,;=")
UNRESERVED = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def allows(pattern: str, path: str, *, among: str = "") -> bool:
    """Tell whether a path is free of a disallowing pattern."""
    text = f"User-agent: *\nDisallow: {pattern}\n{among}"
    return parse_rules(text.encode(), "bot").allows(normalise(f"http://h.example{path}"))


@for_each(
    "pattern, path",
    [
        ("/", "/"),
        ("/a", "/a"),
        ("/a", "/abc/d?e"),
        ("/a/", "/a/"),
        ("/a?b=c", "/a?b=c&d"),
        ("/*", "/"),
        ("*", "/a"),
        ("*.php", "/a/b.php?c"),
        ("/*.php$", "/a.php/b.php"),
        ("/a$", "/a"),
        ("/a*$", "/ab"),
        ("/a*b*c$", "/abbcbc"),
        ("/a***b", "/a/b/"),
        ("/*?", "/a?"),
        ("/a*b*", "/axb"),
        ("/a$b", "/a$b"),
        ("/a%24", "/a$"),
        ("/a%2A", "/a*"),
        ("/a%2a", "/a*"),
        ("/%7Ejoe", "/~joe"),
        ("/~joe", "/%7ejoe"),
        ("/ü", "/%c3%bc"),
        ("/%C3%BC", "/ü"),
        ("/a b", "/a%20b"),
        ('/"{|}^`', '/"{|}^`'),
        ("/*?q='x'", "/?q='x'"),
        ("/%", "/%"),
        ("/a%zz", "/a%zz"),
        ("/a%2", "/a%2"),
        ("/%2%65", "/%2%65"),
    ],
)
def test_a_pattern_matches_as_prefix_with_stars_and_an_end_whatever_is_escaped(pattern, path):
    assert not allows(pattern, path)


@for_each(
    "pattern, path",
    [
        ("/a", "/"),
        ("/a", "/A"),
        ("/a", "/b/a"),
        ("/a/", "/a"),
        ("/a$", "/ab"),
        ("/a$", "/a?b"),
        ("/*.php$", "/a.php5"),
        ("/ab*bc$", "/abc"),
        ("/ab*bc", "/abc"),
        ("/a*b*b$", "/ab"),
        ("/a*b*b", "/ab"),
        ("/%2F", "//"),
        ("//", "/%2F"),
        ("/a%2A", "/ab"),
        ("/a%24", "/a"),
        ("/a?b", "/axb"),
        ("/a.b", "/axb"),
        ("a", "/a"),
        ("http://h.example/a", "/a"),
        ("$", "/"),
        ("", "/"),
    ],
)
def test_nothing_else_matches(pattern, path):
    assert allows(pattern, path)


@for_each(
    "rules, allowed",
    [
        ({"/": False, "/a": True}, True),
        ({"/a/b": False, "/a": True}, False),
        ({"/a/": False, "/a/b": True}, True),
        ({"/a/b": True, "/a/*": False}, True),
        ({"/a/b": False, "/a/*": True}, True),
        ({"/*/b": False, "/a/b": True}, True),
        ({"/*/b": True, "/a/b": False}, True),
        ({"/a/b$": False, "/a/b": True}, False),
        ({"/a/b$": True, "/a/b": False}, True),
        ({"/*b": True, "/a/": False}, True),
        ({"/*b": False, "/a/": True}, True),
        ({"/*/b": False, "/a/": True}, False),
        ({"/*/*b": True, "/*/b": False}, True),
        ({"/%61/%62": False, "/a/b": True}, True),
        ({"/%61/%62$": False, "/a/b$": True}, True),
        ({"/a/%62": False, "/a/": True}, False),
        ({"/c": False}, True),
    ],
)
def test_the_longest_pattern_wins_and_of_two_as_long_the_allowing_one(rules, allowed):
    assert Rules(rules).allows("http://h.example/a/b") is allowed
    reverse = dict(reversed(rules.items()))
    assert Rules(reverse).allows("http://h.example/a/b") is allowed


@pytest.mark.parametrize("rules", [NOTHING, Rules({"*": False}), Rules({"/robots.txt": False})])
def test_robots_txt_itself_is_always_allowed(rules):
    assert rules.allows("http://h.example/robots.txt")
    assert not NOTHING.allows("http://h.example/robots.txt.bak")
    assert not NOTHING.allows("http://h.example/a/robots.txt")


def units(text: str) -> list[str]:
    """Spell a text character by character, as naively as the RFC says it."""
    spelled, at = [], 0
    while at < len(text):
        escape = re.match("%[0-9A-Fa-f]{2}", text[at:])
        if escape:
            character = chr(int(escape[0][1:], 16))
            spelled.append(character if character in UNRESERVED else escape[0].upper())
        elif text[at] in KEPT:
            spelled.append(text[at])
        else:
            spelled += [f"%{byte:02X}" for byte in text[at].encode()]
        at += 3 if escape else 1
    return spelled


def naive(rules: dict[str, bool]) -> Callable[[str], bool]:
    """Decide by one regular expression a rule, built as naively as possible."""
    expressions = []
    for pattern, allowed in rules.items():
        ends = pattern.endswith("$")
        pieces = ["".join(units(piece)) for piece in pattern[: len(pattern) - ends].split("*")]
        text = ".*".join(map(re.escape, pieces)) + ("$" if ends else "")
        expressions.append((len("*".join(pieces)) + ends, allowed, re.compile(text)))

    def allows(path: str) -> bool:
        spelled = "".join(units(path))
        matching = [(rank, allowed) for rank, allowed, each in expressions if each.match(spelled)]
        return max(matching, default=(0, True))[1]

    return allows


texts = st.lists(
    st.sampled_from(["a", "b", "/", "?", "%61", "%2f", "%2F", "%", "é", "'"]), max_size=8
)
patterns = st.lists(
    st.sampled_from(["a", "b", "/", "*", "*", "$", "%61", "%2f", "%", "é"]), max_size=8
).map("".join)
rules = st.dictionaries(
    st.sampled_from("/*").flatmap(lambda first: patterns.map(first.__add__)),
    st.booleans(),
    max_size=6,
)


@given(rules, texts)
def test_any_few_rules_decide_as_regular_expressions_would(rules, text):
    path = "/" + "".join(text)
    assert Rules(rules).allows(f"http://h.example{path}") is naive(rules)(path)


def test_many_rules_with_stars_decide_as_regular_expressions_would():
    chance = random.Random(9309)
    for _ in range(40):
        rules = {
            "/"
            + "".join(chance.choices(["a", "b", "ab", "c", "/", "*"], k=chance.randint(3, 8)))
            + chance.choice(["", "", "$"]): chance.random() < 0.5
            for _ in range(120)
        }
        ours, theirs = Rules(rules), naive(rules)
        for _ in range(40):
            path = "/" + "".join(chance.choices("abc/", k=chance.randint(0, 30)))
            assert ours.allows(f"http://h.example{path}") is theirs(path), (path, rules)


def test_a_url_that_would_take_too_many_steps_is_disallowed():
    rules = Rules({f"/*{'a' * 100}*{number}*{'a' * 50}b{'a' * 49}": True for number in range(60)})
    assert rules.allows("http://h.example/" + "b" * 50)
    assert not rules.allows("http://h.example/" + "a" * 2_000 + "b" * 60)
