from __future__ import annotations

import httpx
import pytest

from trio_crawler.model import (
    Failure,
    Outcome,
    Page,
    Purpose,
    Reason,
    Redirect,
    Skipped,
    Statistics,
)
from trio_crawler.policy.politeness import HostStatistics, Politeness
from trio_crawler.report import CrawlFacts, Report

PAGE = Page("http://a.test/", 200, httpx.Headers(), b"")


def told(
    *outcomes: Outcome,
    hosts: list[HostStatistics] | None = None,
    politeness: Politeness | None = None,
    full: bool = False,
) -> str:
    report = Report(full=full)
    for outcome in outcomes:
        report.add(outcome)
    return report.text(
        CrawlFacts(
            Statistics(),
            7,
            seeds=[],
            hosts={host.name: host for host in hosts or ()},
            politeness=politeness,
        )
    )


def host(name: str, latency: float, limit: int = 4, delay: float = 0.0) -> HostStatistics:
    return HostStatistics(
        name=name,
        waiting=0,
        in_flight=0,
        limit=limit,
        delay=delay,
        rest=0.0,
        latency=latency,
        failures=0,
        given_up={},
    )


# Hosts that were given up.


def test_a_host_that_was_given_up_is_listed_with_the_number_of_urls_not_requested() -> None:
    gone = [Skipped(f"http://b.test:8080/{number}", Reason.HOST_GIVEN_UP) for number in range(12)]
    text = told(
        PAGE,
        *gone,
        Skipped("https://a.test/", Reason.ROBOTS_UNAVAILABLE),
        Failure("http://c.test/", Reason.CONNECTION_REFUSED, "nobody listens", tries=0),
        Failure("http://c.test/tried", Reason.CONNECTION_REFUSED, "nobody listens"),
        Skipped("http://d.test/", Reason.STOPPED),
    )
    section = """
Hosts given up (3)
  http://b.test:8080: host_given_up, 12 URLs not asked for
  http://c.test: connection_refused, 1 URL not asked for
  https://a.test: robots_unavailable, 1 URL not asked for

"""
    assert section in text


def test_of_many_hosts_that_were_given_up_twenty_are_listed_or_with_full_all() -> None:
    lost = [Skipped(f"http://h{number:02}/", Reason.HOST_GIVEN_UP) for number in range(22)]
    assert told(*lost).count("  http://h") == 20
    assert "  and 2 more, use -v to list all\n" in told(*lost)
    assert told(*lost, full=True).count("  http://h") == 22


@pytest.mark.parametrize(
    ("outcomes", "problems"),
    [
        (
            [
                Skipped("http://a/1", Reason.HOST_GIVEN_UP),
                Skipped("http://a/2", Reason.HOST_GIVEN_UP),
            ],
            1,
        ),
        (
            [
                Skipped("http://a/", Reason.HOST_GIVEN_UP),
                Skipped("http://b/", Reason.HOST_GIVEN_UP),
            ],
            2,
        ),
        ([Skipped("http://a/", Reason.ROBOTS_UNAVAILABLE)], 1),
        ([Failure("http://a/", Reason.CONNECTION_REFUSED, tries=0)], 1),
        ([Skipped("http://a/", Reason.ROBOTS)], 0),
        ([Skipped("http://a/", Reason.PAGE_BUDGET)], 0),
    ],
)
def test_a_host_that_was_given_up_is_a_problem_and_what_robots_forbid_is_none(
    outcomes: list[Outcome], problems: int
) -> None:
    report = Report()
    for outcome in outcomes:
        report.add(outcome)
    assert report.problems == problems
    assert report.no_pages


# What to do about robots.txt.

ANYWAY = "(--ignore-robots crawls anyway)"


def test_an_unavailable_robots_txt_is_listed_with_the_option_to_ignore_it() -> None:
    lost = Skipped("http://b.test:81/x", Reason.ROBOTS_UNAVAILABLE)
    hint = "robots.txt of http://b.test:81/ could not be had: the server is busy or out of order"
    assert told(PAGE, lost, lost).splitlines()[-1] == f"{hint} {ANYWAY}"
    assert told(PAGE, lost, lost).count("could not be had") == 1


def test_a_robots_txt_that_failed_is_listed_with_the_failure() -> None:
    about = {"tries": 0, "about": Purpose.ROBOTS}
    slow = Failure("http://b/", Reason.TIMEOUT, "no answer in 30 s", **about)
    hint = f"robots.txt of http://b/ could not be had: no answer in 30 s {ANYWAY}"
    assert told(slow).splitlines()[-1] == hint
    bare = Failure("http://b/", Reason.TIMEOUT, **about)
    assert told(bare).splitlines()[-1] == hint.replace("no answer in 30 s", "timeout")


def test_no_hint_about_robots_txt_where_the_host_itself_does_not_answer() -> None:
    assert ANYWAY not in told(
        Failure("http://b/", Reason.CONNECTION_REFUSED, "nobody listens", tries=0)
    )
    assert ANYWAY not in told(Skipped("http://b/", Reason.HOST_GIVEN_UP))


@pytest.mark.parametrize(
    "barred",
    [
        Skipped("http://b/x", Reason.ROBOTS),
        Redirect("http://a/", 301, "http://b/x", rejected=Reason.ROBOTS),
    ],
)
def test_a_robots_file_that_forbids_all_is_named_when_no_page_came(barred: Outcome) -> None:
    hint = f"robots.txt of http://b/ allows nothing of what is wanted {ANYWAY}"
    assert told(barred).splitlines()[0] == hint
    assert ANYWAY not in told(barred, PAGE)


def test_at_most_five_origins_are_named_in_hints() -> None:
    many = [Skipped(f"http://h{number}/", Reason.ROBOTS_UNAVAILABLE) for number in range(9)]
    hints = [line for line in told(*many).splitlines() if ANYWAY in line]
    assert [hint.split("/")[2] for hint in hints] == ["h0", "h1", "h2", "h3", "h4"]


# How quick they were.

TWO = [host("quick.test", 0.012, 6), host("slow.test:81", 1.5, 1, delay=0.25), host("unasked", 0)]


def test_a_full_report_lists_the_slowest_hosts_with_their_limits() -> None:
    section = """
Hosts (2)
  slow.test:81: 1.50 s, limit 1, delay 0.25 s
  quick.test: 12 ms, limit 6

"""
    assert section in told(PAGE, hosts=TWO, full=True)
    assert "Hosts" not in told(PAGE, hosts=TWO)


def test_hosts_are_listed_if_limits_are_adaptive_or_a_host_has_a_delay() -> None:
    plain = [host("a.test", 0.012)]
    adaptive = Politeness(adaptive=True)
    assert "Hosts" not in told(PAGE, hosts=plain, full=True, politeness=Politeness())
    assert "\nHosts (1)\n" in told(PAGE, hosts=plain, full=True, politeness=adaptive)
    assert "Hosts" not in told(PAGE, hosts=[host("a", 0)], full=True, politeness=adaptive)


def test_of_many_hosts_the_twenty_slowest_are_listed() -> None:
    many = [host(f"h{number:02}", number + 1, delay=1) for number in range(25)]
    text = told(PAGE, hosts=many, full=True)
    assert "Hosts (25)\n  h24: 25.00 s, limit 4, delay 1 s\n  h23: " in text
    assert "  h05: 6.00 s, limit 4, delay 1 s\n  and 5 more, which are quicker\n" in text


# What was ignored, and how gently it went.


def test_ignored_rules_are_listed_below_the_heading() -> None:
    rude = Politeness(robots=False, nofollow=False)
    text = Report().text(
        CrawlFacts(Statistics(), 1, seeds=["http://a/"], insecure=["b"], politeness=rude)
    )
    assert text.startswith(
        "Crawl of http://a/\nCertificates not verified: b\n"
        "robots.txt ignored\nnofollow ignored\n\n"
    )
    assert "ignored" not in told(politeness=Politeness())
    assert "nofollow" not in told(politeness=Politeness(robots=False))
    assert "robots" not in told(politeness=Politeness(nofollow=False))


@pytest.mark.parametrize(
    ("politeness", "end"),
    [
        (None, "workers=7)"),
        (Politeness(), "workers=7, per host 4)"),
        (Politeness(per_host=2, adaptive=True), "workers=7, per host 2, adaptive)"),
    ],
)
def test_the_numbers_of_workers_and_of_requests_per_host_are_at_the_end(
    politeness: Politeness | None, end: str
) -> None:
    assert told(politeness=politeness).splitlines()[0].endswith(end)


def test_no_host_gets_an_escape_sequence_to_the_terminal() -> None:
    evil = "\x1b[2J\u202e"
    text = told(
        Skipped(f"http://{evil}/", Reason.ROBOTS_UNAVAILABLE),
        Failure(f"http://{evil}x/", Reason.TIMEOUT, evil, tries=0, about=Purpose.ROBOTS),
        Skipped(f"http://{evil}/", Reason.ROBOTS),
        hosts=[host(evil, 1, delay=1)],
        full=True,
    )
    assert text.count(ANYWAY) == 3
    assert not set("\x1b\u202e") & set(text)


def test_a_crawl_delay_that_makes_a_crawl_slow_is_a_hint() -> None:
    hosts = [host("slow.test", 0.1, delay=10), host("quick.test", 0.1, delay=1)]
    text = told(PAGE, hosts=hosts, politeness=Politeness(delay=1))
    wants = "robots.txt of slow.test wants 10 s from request to request"
    assert text.endswith(f"\n{wants} (--ignore-robots crawls anyway)")
