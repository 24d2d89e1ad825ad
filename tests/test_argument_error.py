"""An error of an argument: what it says, and how a program says it with a name of its own."""

from __future__ import annotations

import copy

import pytest
from cases import for_each

from trio_crawler import ArgumentError, HttpFetch, Limits, Statistics
from trio_crawler.frontier import HostStatistics, HostWait
from trio_crawler.report import progress_line

WRONG = {
    "max_seconds must be more than 0, not 0": lambda: Limits(max_seconds=0),
    "user_agent must be one line of text that names the crawler, not ''": (
        lambda: HttpFetch(user_agent="")
    ),
    "each of allow_private must be an address or a network such as 10.0.0.0/8, not 'x'": (
        lambda: HttpFetch(allow_private=["x"])
    ),
    "seeds: not an http or https URL: 'ftp://a.test/'": (
        lambda: HttpFetch(seeds=["ftp://a.test/"])
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_the_message_of_an_argument_can_be_told_with_another_name(message):
    with pytest.raises(ArgumentError) as caught:
        WRONG[message]()
    error = caught.value
    assert str(error) == str(copy.copy(error)) == message
    of_one = message.removeprefix("each of ")
    assert error.named("--it") == of_one.replace(error.argument, "--it", 1)


def test_a_password_before_the_host_is_not_shown():
    with pytest.raises(ArgumentError) as caught:
        HttpFetch(insecure_hosts=["https://user:s3cret@a.test/"])
    assert "s3cret" not in repr(caught.value)


@pytest.mark.parametrize("proxy", ["http://h:1/path", "http://h:1/?query", "http://h:1/#x"])
def test_a_proxy_with_a_part_that_would_have_no_effect_is_refused(proxy):
    with pytest.raises(ArgumentError, match="proxy must be a URL such as"):
        HttpFetch(proxy=proxy)


def test_a_crawl_that_is_running_is_told_in_one_line():
    figures = Statistics(
        admitted=1_011, pages=1, redirects=9, waiting=1_000, in_flight=1, seconds=61
    )
    line = "1 page  0/s  1,000 in queue  1 in flight  2 errors  1:01"
    assert progress_line(figures, 2) == line


def resting(name: str, rest: float, **more: object) -> HostStatistics:
    about = {"waiting": 1, "in_flight": 0, "limit": 4, "delay": 0.0, "latency": 0.1}
    about |= {"failures": 1, "given_up": {}, "waits_for": HostWait.REST}
    return HostStatistics(**{"name": name, "rest": rest, **about, **more})  # type: ignore[arg-type]


@for_each(
    "hosts, told",
    [
        ([], ""),
        ([resting("a.test", 4.2)], "  waiting for a.test, up to 5 s"),
        (
            [resting("a.test", 4.2), resting("b.test", 47.5), resting("c.test", 1)],
            "  waiting for b.test and 2 more hosts, up to 48 s",
        ),
        ([resting("a.test", 0.0, waits_for=HostWait.NOTHING)], "  waiting for a.test"),
        ([resting("a.test", 0.0, waits_for=HostWait.NOTHING, failures=0)], ""),
        ([resting("a.test", 9.0, failures=0)], "  waiting for a.test, up to 9 s"),
        ([resting("a.test\x1b", 9.0)], "  waiting for a.test\\x1b, up to 9 s"),
    ],
)
def test_the_line_says_whom_a_crawl_waits_for_when_nothing_is_in_flight(hosts, told):
    figures = Statistics(admitted=11, pages=1, waiting=10)
    line = "1 page  0/s  10 in queue  0 in flight  0 errors  0:00"
    assert progress_line(figures, 0, hosts) == line + told
    busy = Statistics(admitted=11, pages=1, waiting=9, in_flight=1)
    assert "waiting for" not in progress_line(busy, 0, hosts)
    over = Statistics(admitted=11, pages=11)
    assert "waiting for" not in progress_line(over, 0, hosts)
