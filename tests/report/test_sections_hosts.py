from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import httpx
import pytest
from cases import for_each
from msgspec.structs import replace
from report import crawls
from report.crawls import host, served

from trio_crawler.model import (
    Failure,
    Outcome,
    Page,
    Purpose,
    Reason,
    Redirect,
    RejectedLink,
    Skipped,
)
from trio_crawler.policy.settings import HostStatistics, Politeness
from trio_crawler.report import Report, summary

PAGE = Page("http://a.test/", 200, httpx.Headers(), b"")


def told(*outcomes: Outcome, hosts: Iterable[HostStatistics] = (), **facts: Any) -> str:
    known = {each.name: each for each in hosts}
    return crawls.told(*outcomes, seeds=[], hosts=known, **facts)


# Hosts that were given up.


@for_each(
    "outcomes, problems",
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
    assert told(barred).splitlines()[1] == hint
    assert ANYWAY not in told(barred, PAGE)


# How quick they were.


def test_hosts_are_listed_if_limits_are_adaptive_or_a_host_has_a_delay() -> None:
    plain = [host("a.test", 0.012)]
    adaptive = Politeness(adaptive=True)
    assert "Hosts" not in told(PAGE, hosts=plain, full=True, politeness=Politeness())
    assert "Hosts" not in told(PAGE, hosts=plain, politeness=adaptive)
    text = told(PAGE, hosts=plain, full=True, politeness=adaptive)
    assert "\nHosts (1): 1 page, " in text
    assert "    a.test: 1 page, 0 B, 0 ms in all, 0 ms a page, limit 4\n" in text


# What came from each, in a crawl of many.


def test_a_crawl_of_twenty_hosts_has_no_section_by_host() -> None:
    twenty = [each for n in range(20) for each in served(f"h{n}", 1)]
    assert "Hosts (" not in told(*twenty)
    assert "Hosts (21)" in told(*twenty, *served("h20", 1))
    # A port is a host of its own; http and https are one.
    assert "Hosts (21)" in told(*twenty, *served("h1:81", 1))
    assert "Hosts (" not in told(*twenty, Page("https://h1/", 200, httpx.Headers(), b""))


def test_hosts_beyond_fifty_thousand_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "_MOST_HOSTS", 25)
    text = told(*[each for n in range(40) for each in served(f"h{n:02}", 2)])
    assert "Hosts (26): 80 pages" in text
    assert "  Most pages\n    other hosts: 30 pages, 30.0 KiB, 3.00 s in all" in text


def test_broken_links_of_twenty_hosts_are_listed_one_by_one() -> None:
    gone = [Page(f"http://h{n:02}/", 404, httpx.Headers(), b"") for n in range(20)]
    assert "Broken links (20)\n  404 http://h00/\n      (seed)\n" in told(*gone)


def of_many_hosts(hosts: int) -> list[Outcome]:
    """Return the outcomes of a web in which much goes wrong."""
    web: list[Outcome] = []
    for n in range(hosts):
        name, kind = f"http://h{n}", n % 12
        links = tuple(f"{name}/{each}" for each in range(8))
        web.append(Page(f"{name}/", 200, httpx.Headers(), b"x" * n, links=links, seconds=n / 1e3))
        about = {"tries": 0, "about": Purpose.ROBOTS}
        for url in links:
            match kind:
                case 0:
                    web.append(Failure(url, Reason.DNS, f"no address of h{n}", tries=0))
                case 1:
                    web.append(Failure(url, Reason.TIMEOUT, f"h{n} is slow", **about))
                case 2:
                    web.append(Skipped(url, Reason.ROBOTS_UNAVAILABLE))
                case 3:
                    web.append(Redirect(url, 301, f"http://www.h{n}/", rejected=Reason.OTHER_SITE))
                case 4:
                    web.append(Skipped(url, Reason.TIME_BUDGET))
                case 5:
                    web.append(Page(url, 404, httpx.Headers(), b""))
                case _:
                    rejected = (RejectedLink(f"{url}?a=1&b=2", list(Reason)[n % 30]),)
                    web.append(Page(url, 200, httpx.Headers(), b"", rejected=rejected))
    return web


def test_the_report_of_a_thousand_hosts_has_at_most_300_lines() -> None:
    web = of_many_hosts(1_000)
    delays = [host(f"h{n}", 0.1, delay=1 + n % 50) for n in range(1_000)]
    text = told(*web, hosts=delays, politeness=Politeness())
    assert len(text.splitlines()) <= 300
    assert len(text) <= 40_000
    fewer = told(*of_many_hosts(300), hosts=delays, politeness=Politeness())
    assert abs(len(fewer.splitlines()) - len(text.splitlines())) <= 20


# What was ignored, and how gently it went.


def test_no_host_gets_an_escape_sequence_to_the_terminal() -> None:
    evil = "\x1b[2J\u202e"
    text = told(
        Skipped(f"http://{evil}/", Reason.ROBOTS_UNAVAILABLE),
        Failure(f"http://{evil}x/", Reason.TIMEOUT, evil, tries=0, about=Purpose.ROBOTS),
        Skipped(f"http://{evil}/x", Reason.ROBOTS),
        hosts=[host(evil, 1, delay=1)],
        full=True,
    )
    assert text.count(ANYWAY) == 3
    assert not set("\x1b\u202e") & set(text)


def test_a_delay_that_was_learned_is_told_with_its_reason_and_robots_txt_is_not_blamed() -> None:
    limited = replace(host("quick.test", 0.1, delay=0.5), asked=0, pages=62, failed=13, refused=13)
    text = told(PAGE, hosts=[limited], politeness=Politeness())
    why = "13 of 75 answers were 429 or 503"
    assert text.endswith(f"\nquick.test refused faster requests ({why}): one each 500 ms")
    assert "robots.txt" not in text
    # As fast as before, or as slow as robots.txt wants.
    for known in (replace(limited, delay=0), replace(limited, asked=0.5)):
        assert "refused" not in told(PAGE, hosts=[known], politeness=Politeness())
