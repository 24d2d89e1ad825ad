"""Robots: what must be asked for first, for how long it is good, and what answers mean."""

from __future__ import annotations

import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_crawler.model import Fault, Reason, Response, Validator
from trio_crawler.policy.robots.store import (
    ALLOW_ALL,
    DISALLOW_ALL,
    FRESH,
    MOST_REDIRECTS,
    Robots,
    Rules,
    interpret,
    parse_rules,
)

ORIGIN = "https://h.example:8080"
FILE = f"{ORIGIN}/robots.txt"
SECRET = f"{ORIGIN}/secret?a"
OPEN = f"{ORIGIN}/open"
RULES = parse_rules(b"User-agent: *\nDisallow: /secret\nCrawl-delay: 2", "bot")


def test_the_figures_are_those_of_the_rfc():
    assert (MOST_REDIRECTS, FRESH) == (5, 24 * 60 * 60)


def test_the_robots_txt_of_an_origin_comes_before_everything_else_there():
    robots = Robots("bot")
    assert robots.before(OPEN, 0) == FILE
    assert robots.before(FILE, 0) is None
    robots.store(ORIGIN, RULES, 0)
    assert robots.before(OPEN, 0) is None
    assert len(robots) == 1


@pytest.mark.parametrize(
    "other",
    [
        "http://h.example:8080/",
        "https://h.example/",
        "https://www.h.example:8080/",
        "http://[::1]/",
    ],
)
def test_what_one_origin_says_is_nothing_to_another(other):
    robots = Robots("bot")
    robots.store(ORIGIN, DISALLOW_ALL, 0)
    assert robots.before(other, 0) == f"{other}robots.txt"
    assert robots.refusal(other) is None
    assert robots.delay(other) == 0
    assert robots.validator(other[:-1]) is None


def test_what_is_disallowed_is_refused_once_the_rules_are_known():
    robots = Robots("bot")
    assert robots.refusal(SECRET) is None
    robots.store(ORIGIN, RULES, 0)
    assert robots.refusal(SECRET) is Reason.ROBOTS
    assert robots.refusal(OPEN) is None
    assert robots.refusal(FILE) is None


def test_the_crawl_delay_of_an_origin_holds_once_it_is_known():
    robots = Robots("bot")
    assert robots.delay(OPEN) == 0
    robots.store(ORIGIN, RULES, 0)
    assert robots.delay(OPEN) == 2


def test_who_does_not_obey_is_refused_nothing_and_need_not_ask():
    robots = Robots("bot", obey=False)
    assert robots.before(OPEN, 0) is None
    robots.store(ORIGIN, Rules({"/": False}, 5), 0)
    assert robots.before(OPEN, 0) is None
    assert robots.refusal(OPEN) is None
    assert robots.delay(OPEN) == 0
    assert repr(robots) == "<Robots('bot', obey=False): 1 origins>"


def test_rules_are_good_for_a_day_and_hold_until_there_are_others():
    robots = Robots("bot")
    robots.store(ORIGIN, RULES, 1_000)
    assert robots.before(OPEN, 1_000 + FRESH) is None
    assert robots.before(OPEN, 1_000.5 + FRESH) == FILE
    assert robots.refusal(SECRET) is Reason.ROBOTS
    robots.store(ORIGIN, ALLOW_ALL, 1_001 + FRESH)
    assert robots.before(OPEN, 1_001 + 2 * FRESH) is None
    assert robots.refusal(SECRET) is None
    assert len(robots) == 1


def test_renewed_rules_and_their_validator_are_good_for_another_day():
    robots, validator = Robots("bot"), Validator('"1"', None)
    assert robots.validator(ORIGIN) is None
    robots.store(ORIGIN, RULES, 0, validator)
    robots.renew(ORIGIN, FRESH + 1)
    assert robots.before(OPEN, 2 * FRESH + 1) is None
    assert robots.before(OPEN, 2 * FRESH + 2) == FILE
    assert robots.refusal(SECRET) is Reason.ROBOTS
    assert robots.validator(ORIGIN) == validator
    robots.store(ORIGIN, RULES, 0)
    assert robots.validator(ORIGIN) is None


def test_old_rules_may_be_kept_for_a_while_longer():
    robots, validator = Robots("bot"), Validator('"1"', None)
    robots.store(ORIGIN, RULES, 0, validator)
    assert not robots.is_old(ORIGIN, FRESH)
    assert robots.is_old(ORIGIN, FRESH + 1)
    robots.renew(ORIGIN, FRESH + 1, 600)
    assert not robots.is_old(ORIGIN, FRESH + 601)
    assert robots.before(OPEN, FRESH + 601) is None
    assert robots.before(OPEN, FRESH + 602) == FILE
    assert robots.is_old(ORIGIN, FRESH + 602)
    assert robots.refusal(SECRET) is Reason.ROBOTS
    assert robots.validator(ORIGIN) == validator
    assert not robots.is_old("http://h.example", 10 * FRESH)


def long_rules(mark: str, megabytes: float) -> Rules:
    return Rules({f"/{mark}": False, "/" + "x" * int(megabytes * 1024 * 1024): False})


def test_of_long_files_the_oldest_are_forgotten_and_asked_for_again():
    robots, hosts = Robots("bot"), [f"http://h{number}" for number in range(5)]
    robots.store("http://short", parse_rules(b"Crawl-delay: 2", "bot"), 0)
    for number, host in enumerate(hosts):
        robots.store(host, long_rules("no", 0.9), number)
    gone, kept = hosts[:2], hosts[2:]
    assert [robots.before(host + "/no", 5) for host in gone] == [f"{h}/robots.txt" for h in gone]
    assert [robots.refusal(host + "/no") for host in kept] == [Reason.ROBOTS] * 3
    assert [robots.before(host + "/no", 5) for host in kept] == [None] * 3
    assert robots.before("http://short/", 5) is None
    assert len(robots) == 4


def test_a_file_that_is_stored_again_is_the_newest_and_counted_once():
    robots = Robots("bot")
    for number in range(10):
        robots.store("http://a", long_rules("no", 1), number)
    robots.store("http://b", long_rules("no", 1), 10)
    robots.store("http://a", long_rules("no", 1), 11)
    robots.store("http://c", long_rules("no", 1.5), 12)
    assert robots.before("http://b/", 12) == "http://b/robots.txt"
    assert robots.before("http://a/", 12) is None
    robots.store("http://a", ALLOW_ALL, 13)
    robots.store("http://d", long_rules("no", 1.4), 14)
    assert len(robots) == 3


def test_a_single_file_is_kept_however_long_it_is():
    robots = Robots("bot")
    robots.store("http://a", long_rules("no", 4), 0)
    assert robots.refusal("http://a/no") is Reason.ROBOTS


def test_rules_that_are_forgotten_are_not_known_again_by_being_renewed():
    robots = Robots("bot")
    robots.renew(ORIGIN, 0)
    assert robots.before(OPEN, 0) == FILE
    robots.store(ORIGIN, long_rules("secret", 2), 0, Validator('"1"', None))
    robots.store("http://h.example", long_rules("secret", 2), 1)
    robots.renew(ORIGIN, 2)
    assert robots.before(OPEN, 2) == FILE
    assert robots.validator(ORIGIN) is None
    assert len(robots) == 1


@pytest.mark.parametrize("status", [200, 203, 206, 299])
def test_a_robots_txt_that_came_is_read_for_the_agent(status):
    response = Response(
        status, body=b"User-agent: bot\nDisallow: /secret\nUser-agent: *\nDisallow: /"
    )
    rules = interpret(response, "bot")
    assert rules is not None
    assert not rules.allows(SECRET)
    assert rules.allows(OPEN)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 418, 451, 499])
def test_a_robots_txt_that_is_not_there_allows_everything(status):
    assert interpret(Response(status, body=b"User-agent: *\nDisallow: /"), "bot") is ALLOW_ALL


@pytest.mark.parametrize("status", [300, 301, 302, 303, 307, 308])
def test_one_redirect_too_many_allows_everything(status):
    assert interpret(Response(status), "bot") is ALLOW_ALL


@pytest.mark.parametrize(
    "answer",
    [
        *map(Response, (429, 500, 502, 503, 504, 599)),
        *map(Response, (0, 101, 304, 600, 999)),
        Fault(Reason.DNS),
        Fault(Reason.TIMEOUT),
    ],
    ids=str,
)
def test_a_robots_txt_that_cannot_be_had_now_gives_no_rules(answer):
    assert interpret(answer, "bot") is None


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["store", "renew"]),
            st.sampled_from("ab"),
            st.sampled_from([RULES, ALLOW_ALL, DISALLOW_ALL]),
            # Whole seconds: their sums are exact.
            st.integers(0, int(FRESH)),
        )
    )
)
def test_every_origin_goes_by_its_last_rules_for_a_day_since_its_last_answer(events):
    robots, now = Robots("bot"), 0.0
    last: dict[str, tuple[Rules, float]] = {}
    for event, host, rules, pause in events:
        now += pause
        if event == "store":
            robots.store(f"http://{host}", rules, now)
            last[host] = rules, now
        else:
            robots.renew(f"http://{host}", now)
            if host in last:
                last[host] = last[host][0], now
    assert len(robots) == len(last)
    for host in "ab":
        rules, since = last.get(host, (ALLOW_ALL, float("-inf")))
        url = f"http://{host}/secret"
        assert (robots.before(url, now) is None) is (now - since <= FRESH)
        assert (robots.refusal(url) is None) is rules.allows(url)
        assert robots.delay(url) == rules.delay


def test_a_hundred_thousand_origins_without_rules_cost_less_than_400_bytes_each(capsys):
    tracemalloc.start()
    robots = Robots("bot")
    for number in range(100_000):
        robots.store(f"https://host{number}.example.org", parse_rules(b"", "bot"), float(number))
    each = tracemalloc.get_traced_memory()[0] / len(robots)
    tracemalloc.stop()
    with capsys.disabled():
        print(f" {each:.0f} bytes", end="")
    assert each < 400


def test_a_link_to_an_origin_without_rules_costs_a_microsecond(capsys):
    robots = Robots("bot")
    for number in range(10_000):
        robots.store(f"https://host{number}.example.org", ALLOW_ALL, 0)
    url = "https://host77.example.org/some/usual/path/page.html?with=query"
    spent = min(seconds(robots, url) for _ in range(10))
    with capsys.disabled():
        print(f" {spent * 1e6:.2f} us", end="")
    # The promise is 1 us on an idle core; a busy one may take three times as long.
    assert spent < 3e-6


def seconds(robots: Robots, url: str) -> float:
    start = time.process_time()
    for _ in range(10_000):
        robots.refusal(url)
    return (time.process_time() - start) / 10_000
