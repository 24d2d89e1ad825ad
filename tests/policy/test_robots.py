"""What an answer for a robots.txt means, and for how long its rules are good."""

from __future__ import annotations

import pytest
from cases import for_each

from trio_crawler.model import Fault, Job, Purpose, Reason, Response, Validator
from trio_crawler.policy.robots import (
    ALLOW_ALL,
    FRESH,
    KnownRules,
    LongFiles,
    Rules,
    interpret,
    is_lasting,
    is_self_named,
    parse_rules,
)

ORIGIN = "https://h.example:8080"
SECRET = f"{ORIGIN}/secret?a"
OPEN = f"{ORIGIN}/open"
RULES = parse_rules(b"User-agent: *\nDisallow: /secret\nCrawl-delay: 2", "bot")


def test_rules_are_good_for_a_day():
    known = KnownRules(RULES, 1_000)
    assert known.is_fresh(1_000 + FRESH)
    assert not known.is_fresh(1_000.5 + FRESH)


def test_renewed_rules_and_their_validator_are_good_for_another_day():
    known = KnownRules(RULES, 0, Validator('"1"', None)).renewed(FRESH + 1)
    assert known.is_fresh(2 * FRESH + 1)
    assert not known.is_fresh(2 * FRESH + 2)
    assert (known.rules, known.validator) == (RULES, Validator('"1"', None))


def long_rules(megabytes: float) -> Rules:
    return Rules({"/no": False, "/" + "x" * int(megabytes * 1024 * 1024): False})


def test_of_long_files_the_oldest_are_forgotten():
    files, short = LongFiles(), parse_rules(b"Crawl-delay: 2", "bot")
    assert files.add("short", short) == (short, [])
    forgotten = [files.add(origin, long_rules(0.9))[1] for origin in "abcde"]
    assert forgotten == [[], [], [], ["a"], ["b"]]


def test_a_file_that_is_stored_again_is_the_newest_and_counted_once():
    files = LongFiles()
    for _ in range(10):
        assert files.add("a", long_rules(1))[1] == []
    assert files.add("b", long_rules(1))[1] == []
    assert files.add("a", long_rules(1))[1] == []
    assert files.add("c", long_rules(1.5))[1] == ["b"]
    assert files.add("a", ALLOW_ALL) == (ALLOW_ALL, [])
    assert files.add("d", long_rules(1.4))[1] == []


def test_an_origin_whose_long_file_was_forgotten_three_times_allows_nothing():
    files = LongFiles()
    for _ in range(3):
        kept, _ = files.add("a", long_rules(2))
        assert kept.allows("http://a/yes")
        assert files.add("b", long_rules(2))[1] == ["a"]
        files.add("b", ALLOW_ALL)
    kept, _ = files.add("a", long_rules(2))
    assert not kept.allows("http://a/yes")
    kept, _ = files.add("a", ALLOW_ALL)
    assert kept is ALLOW_ALL


def test_a_sitemap_that_was_given_or_that_robots_txt_names_needs_no_rule_that_allows_it():
    job = Job(f"{ORIGIN}/map.xml", purpose=Purpose.SITEMAP)
    assert is_self_named(job)
    assert is_self_named(Job(job.url, referrer=f"{ORIGIN}/robots.txt"))
    assert not is_self_named(Job(job.url, referrer="https://h.example/robots.txt"))
    assert not is_self_named(Job(job.url, referrer=f"{ORIGIN}/index.xml"))


@for_each(
    "answer, lasting",
    [
        (Response(200), True),
        (Response(404), True),
        (Response(301), False),
        (Response(503), False),
    ],
)
def test_an_answer_that_says_nothing_of_the_moment_lasts_into_a_later_run(answer, lasting):
    assert is_lasting(answer) is lasting


@pytest.mark.parametrize("status", [200, 203, 206, 299])
def test_a_robots_txt_that_came_is_read_for_the_agent(status):
    response = Response(
        status, body=b"User-agent: bot\nDisallow: /secret\nUser-agent: *\nDisallow: /"
    )
    rules = interpret(response, "bot")
    assert rules is not None
    assert not rules.allows(SECRET)
    assert rules.allows(OPEN)


@for_each("status", [400, 401, 403, 404, 410, 418, 451, 499])
def test_a_robots_txt_that_is_not_there_allows_everything(status):
    assert interpret(Response(status, body=b"User-agent: *\nDisallow: /"), "bot") is ALLOW_ALL


@for_each("status", [300, 301, 302, 303, 307, 308])
def test_one_redirect_too_many_allows_everything(status):
    assert interpret(Response(status), "bot") is ALLOW_ALL


@for_each(
    "answer",
    [
        *map(Response, (429, 500, 502, 503, 504, 599)),
        *map(Response, (101, 304, 600, 999)),
        Fault(Reason.DNS),
        Fault(Reason.TIMEOUT),
    ],
    ids=str,
)
def test_a_robots_txt_that_cannot_be_had_now_gives_no_rules(answer):
    assert interpret(answer, "bot") is None
