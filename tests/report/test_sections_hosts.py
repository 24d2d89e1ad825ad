from __future__ import annotations

from dataclasses import replace

import httpx
import pytest
from cases import for_each

from trio_crawler.model import (
    Failure,
    Outcome,
    Page,
    Purpose,
    Reason,
    Redirect,
    RejectedLink,
    Skipped,
    Statistics,
)
from trio_crawler.policy.settings import HostStatistics, Politeness
from trio_crawler.report import CrawlFacts, Report, summary

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
        asked=delay,
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


def test_more_than_twenty_hosts_that_were_given_up_are_counted_by_reason() -> None:
    lost = [Skipped(f"http://h{number:02}/", Reason.HOST_GIVEN_UP) for number in range(22)]
    dead = [Failure(f"http://d{number % 5}/{number}", Reason.DNS, tries=0) for number in range(9)]
    one = [Failure("http://x/", Reason.TLS, tries=0)]
    sums = """
Hosts given up (28)
  host_given_up: 22 hosts, 22 URLs not asked for, such as http://h00, http://h01, http://h02
  dns: 5 hosts, 9 URLs not asked for, such as http://d0, http://d1, http://d2
  tls: 1 host, 1 URL not asked for, http://x
"""
    text = told(PAGE, *lost, *dead, *one)
    assert f"{sums}  use -v to list all\n\n" in text
    full = told(PAGE, *lost, *dead, *one, full=True)
    assert f"{sums}  http://d0: dns, 2 URLs not asked for\n" in full
    assert full.count("  http://h") == 22


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


def test_more_than_two_robots_files_are_told_together_by_what_is_wrong() -> None:
    many = [Skipped(f"http://h{number}/", Reason.ROBOTS_UNAVAILABLE) for number in range(9)]
    about = {"tries": 0, "about": Purpose.ROBOTS}
    slow = Failure("http://slow/", Reason.TIMEOUT, "no answer in 30 s", **about)
    hints = [line for line in told(*many, slow).splitlines() if ANYWAY in line]
    assert hints == [
        "robots.txt of 9 hosts (such as http://h0/, http://h1/, http://h2/) could not be had: "
        f"the server is busy or out of order {ANYWAY}",
        f"robots.txt of http://slow/ could not be had: no answer in 30 s {ANYWAY}",
    ]
    each = [Failure(f"http://{n}/", Reason.TIMEOUT, f"{n}", **about) for n in range(9)]
    hints = [line for line in told(*each).splitlines() if ANYWAY in line]
    assert len(hints) == 3
    rest = "7 other hosts (such as http://2/, http://3/, http://4/)"
    assert hints[-1] == f"robots.txt of {rest} could not be had: other reasons {ANYWAY}"


def test_crawl_delays_of_many_hosts_are_one_hint_for_each_delay() -> None:
    many = [host(f"h{number}", 0.1, delay=10 - number % 2) for number in range(150)]
    hints = told(PAGE, hosts=many, politeness=Politeness()).splitlines()
    wants = "from request to request"
    assert [hint for hint in hints if ANYWAY in hint] == [
        f"robots.txt of 75 hosts (such as h0, h10, h100) wants 10 s {wants} {ANYWAY}",
        f"robots.txt of 75 hosts (such as h1, h101, h103) wants 9 s {wants} {ANYWAY}",
    ]


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


# What came from each, in a crawl of many.


def served(name: str, pages: int, seconds: float = 0.1, status: int = 200) -> list[Outcome]:
    return [
        Page(f"http://{name}/{n}", status, httpx.Headers(), b"x" * 1024, seconds=seconds)
        for n in range(pages)
    ]


def test_a_crawl_of_more_than_twenty_hosts_has_a_section_by_host() -> None:
    web = [each for n in range(30) for each in served(f"h{n:02}", 30 - n)]
    slow = served("slow", 2, seconds=40)
    broken = served("broken", 3, status=500)
    lost: list[Outcome] = [
        Failure(f"http://dead/{n}", Reason.TIMEOUT, seconds=30) for n in range(4)
    ]
    moved = Redirect("http://moved/", 301, "http://h00/0", seconds=1)
    unasked = Skipped("http://unasked/", Reason.ROBOTS)
    text = told(*web, *slow, *broken, *lost, moved, unasked)
    assert (
        """
Hosts (34): 470 pages, 470.0 KiB; 2 with errors
  Most pages
    h00: 30 pages, 30.0 KiB, 3.00 s in all, 100 ms a page
    h01: 29 pages, 29.0 KiB, 2.90 s in all, 100 ms a page
    h02: 28 pages, 28.0 KiB, 2.80 s in all, 100 ms a page
    h03: 27 pages, 27.0 KiB, 2.70 s in all, 100 ms a page
    h04: 26 pages, 26.0 KiB, 2.60 s in all, 100 ms a page
    and 27 more
  Most time (all requests took 248 s, those to 10 hosts 89% of it)
    dead: 0 pages, 0 B, 4 errors, 120 s in all
    slow: 2 pages, 2.0 KiB, 80.00 s in all, 40.00 s a page
    h00: 30 pages, 30.0 KiB, 3.00 s in all, 100 ms a page
    h01: 29 pages, 29.0 KiB, 2.90 s in all, 100 ms a page
    h02: 28 pages, 28.0 KiB, 2.80 s in all, 100 ms a page
    and 29 more
  Slowest
    slow: 2 pages, 2.0 KiB, 80.00 s in all, 40.00 s a page
"""
        in text
    )
    assert (
        """
  Most errors
    dead: 0 pages, 0 B, 4 errors, 120 s in all
    broken: 3 pages, 3.0 KiB, 3 errors, 300 ms in all, 100 ms a page

"""
        in text
    )
    full = told(*web, *slow, *broken, *lost, moved, full=True)
    largest = full.partition("  Most pages\n")[2].partition("  Most time")[0]
    assert len(largest.splitlines()) == 32


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


def test_broken_links_of_more_than_twenty_hosts_are_counted_by_host() -> None:
    links = tuple(f"http://h{n:02}/{each}" for n in range(30) for each in range(n + 1))
    home = Page("http://a.test/", 200, httpx.Headers(), b"", links=links)
    other = Page("http://b.test/", 200, httpx.Headers(), b"", links=links)
    gone: list[Outcome] = [
        Page(url, 404, httpx.Headers(), b"")
        if url.endswith("0")
        else Failure(url, Reason.TIMEOUT, "no answer in 30 s")
        for url in links
    ]
    text = told(home, other, *gone)
    assert (
        """Broken links (465) of 30 hosts, use -v to list all
  http://h29: 27 timeout, 3 404
    timeout http://h29/1
        no answer in 30 s
        from http://a.test/
        and 1 more
    404 http://h29/0
        from http://a.test/
        and 1 more
  http://h28: 26 timeout, 3 404
"""
        in text
    )
    assert "\n  and 55 more of 10 hosts\n" in text
    section = text.partition("\n\n")[0]
    assert len(section.splitlines()) < 170
    full = told(home, other, *gone, full=True)
    assert "Broken links (465)\n  404 http://h00/0\n" in full
    assert full.count("      from http://a.test/\n") == 465


def test_hrefs_that_are_no_urls_and_a_login_are_told_by_host_too() -> None:
    bad = (RejectedLink("http://[x", Reason.BAD_URL), RejectedLink("ht tp:", Reason.BAD_URL))
    home = Page("http://a.test/", 200, httpx.Headers(), b"", rejected=bad)
    gone = [Page(f"http://h{n:02}/", 401, httpx.Headers(), b"") for n in range(21)]
    text = told(home, *gone)
    assert (
        """Broken links (23) of 22 hosts, use -v to list all
  hrefs that are no URLs: 2 bad_url
    bad_url ht tp:
        from http://a.test/
  http://h00: 1 401
    401 http://h00/
        the server wants a user and a password, or refused those of --auth
        (seed)
"""
        in text
    )


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


def test_the_report_of_three_thousand_hosts_has_at_most_300_lines() -> None:
    web = of_many_hosts(3_000)
    delays = [host(f"h{n}", 0.1, delay=1 + n % 50) for n in range(3_000)]
    text = told(*web, hosts=delays, politeness=Politeness())
    assert len(text.splitlines()) <= 300
    assert len(text) <= 40_000
    fewer = told(*of_many_hosts(600), hosts=delays, politeness=Politeness())
    assert abs(len(fewer.splitlines()) - len(text.splitlines())) <= 20


# What was ignored, and how gently it went.


def test_ignored_rules_are_listed_below_the_heading() -> None:
    rude = Politeness(robots=False, nofollow=False)
    text = Report().text(
        CrawlFacts(Statistics(), 1, seeds=["http://a/"], insecure=["b"], politeness=rude)
    )
    assert text.startswith(
        "Crawl of http://a/: no page was fetched\nCertificates not verified: b\n"
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
        Skipped(f"http://{evil}/x", Reason.ROBOTS),
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


def test_a_delay_that_was_learned_is_told_with_its_reason_and_robots_txt_is_not_blamed() -> None:
    limited = replace(host("quick.test", 0.1, delay=0.5), asked=0, pages=62, failed=13, refused=13)
    text = told(PAGE, hosts=[limited], politeness=Politeness())
    why = "13 of 75 answers were 429 or 503"
    assert text.endswith(f"\nquick.test refused faster requests ({why}): one each 500 ms")
    assert "robots.txt" not in text
    # As fast as before, or as slow as robots.txt wants.
    for known in (replace(limited, delay=0), replace(limited, asked=0.5)):
        assert "refused" not in told(PAGE, hosts=[known], politeness=Politeness())
