from __future__ import annotations

import tracemalloc

import pytest
from cases import for_each
from msgspec.structs import replace
from report.crawls import HOME, SITE, SMALL, page, redirect, report_of, section, told

from trio_crawler import Crawler
from trio_crawler.model import (
    Failure,
    Outcome,
    Reason,
    Redirect,
    RejectedLink,
    Skipped,
    Statistics,
)
from trio_crawler.report import CrawlFacts, Report
from trio_crawler.testing import Web, html


async def test_a_crawler_itself_has_the_facts_that_its_report_needs(autojump_clock) -> None:
    web = Web({"/": html("/a", "/b"), "/a": html()})
    crawler, report = Crawler([web.url], fetch=web, workers=3), Report()
    async with crawler.outcomes() as outcomes:
        async for outcome in outcomes:
            report.add(outcome)
    text = report.text(crawler)
    assert text.startswith(f"Crawl of {web.url}: 1 broken link\n")
    assert report.hints(crawler) == []
    assert "workers=3, per host 4)" in text
    assert "\nNot checked: links to other sites" in text
    assert text.endswith("admitted 3 = 3 pages + 0 redirects + 0 failures + 0 skipped")


def test_a_long_report_begins_with_a_screen_of_what_is_worst_and_what_is_below() -> None:
    crawl: list[Outcome] = [page(f"/p{at}", *(f"/x{n}" for n in range(at))) for at in range(9)]
    crawl += [page(f"/x{at}", status=404) for at in range(8)]
    crawl += [Skipped("http://lost.test/", Reason.HOST_GIVEN_UP)]
    assert told(*crawl).splitlines()[1:10] == [
        "admitted 0 = 0 pages + 0 redirects + 0 failures + 0 skipped",
        "",
        "The worst",
        "  given up: http://lost.test, host_given_up, 1 URL not asked for",
        "  404 https://a.test/x0, from 8 pages",
        "  404 https://a.test/x1, from 7 pages",
        "",
        "Below: Broken links (8), Hosts given up (1), Slowest pages, Skipped",
        "",
    ]
    assert "The worst" not in told(*crawl[:1])


def test_the_worst_of_more_broken_links_than_are_listed_are_those_of_most_pages() -> None:
    links = [f"/{number:04}" for number in range(1_200)]
    crawl = [page("/", *links), page("/p", "/1199"), *(page(link, status=404) for link in links)]
    assert told(*crawl).splitlines()[4] == "  404 https://a.test/1199, from 2 pages"


def test_a_report_of_one_long_end_has_no_empty_list_of_what_is_below() -> None:
    crawl = [Redirect(f"{SITE}/", 301, f"{SITE}/x", rejected=Reason.OTHER_SITE)]
    text = told(*crawl, statistics=Statistics(waiting=1), full=True)
    assert text.startswith("Crawl of https://a.test/: no page was fetched so far\n")
    assert "Below: \n" not in text


LATE = Reason.TIME_BUDGET


@pytest.mark.parametrize(
    "late",
    [
        Skipped(f"{SITE}/x", LATE),
        replace(page("/"), rejected=(RejectedLink(f"{SITE}/x", LATE),)),
        replace(redirect("/old", "/x"), rejected=LATE),
    ],
)
def test_a_crawl_that_left_something_out_for_its_time_ended_early(late: Outcome) -> None:
    assert "\nEnded early: the time allowed was over\n" in told(*[late])
    text = report_of([late]).text(CrawlFacts(Statistics(), 1, seeds=[], ended="stopped by Ctrl-C"))
    assert text.count("Ended early: ") == text.count("Ended early: stopped by Ctrl-C") == 1


def test_a_crawl_that_left_nothing_out_for_its_time_did_not_end_early() -> None:
    assert "Ended early" not in told(*SMALL)


def test_a_seed_that_redirects_to_a_broken_page_is_named() -> None:
    text = told(*[redirect("/", "/b"), redirect("/b", "/c"), page("/c", status=404)])
    assert "      (seed) via https://a.test/ -> https://a.test/b\n" in text


def test_a_page_that_did_not_change_is_no_error() -> None:
    report = report_of([page("/", status=304, size=0)])
    assert (report.problems, report.no_pages) == (0, False)
    assert "\n  1 unchanged\n" in report.text(CrawlFacts(Statistics(), 1, seeds=[]))


def test_a_seed_that_leads_to_another_site_is_explained_when_nothing_else_came() -> None:
    away = Redirect(f"{SITE}/", 301, "https://b.test/", rejected=Reason.OTHER_SITE)
    hint = "https://a.test/ leads to https://b.test/, another site: crawl it by its own URL"
    assert told(*[away]).splitlines()[-1] == hint
    assert hint not in told(*[away, page("/b")])
    assert "another site:" not in told(*[replace(away, rejected=Reason.EXCLUDED)])


@for_each(
    "outcomes, problems",
    [
        ([page("/")], 0),
        ([page("/", status=404)], 1),
        ([Failure("u", Reason.DNS)], 1),
        ([Redirect("u", 301, "u")], 1),
        ([replace(page("/"), rejected=(RejectedLink("http://[", Reason.BAD_URL),))], 1),
        ([Skipped("u", Reason.STOPPED)], 0),
        ([Redirect("u", 301, "v", rejected=Reason.OTHER_SITE)], 0),
        (SMALL, 4),
    ],
)
def test_problems_counts_what_is_broken(outcomes: list[Outcome], problems: int) -> None:
    assert report_of(outcomes).problems == problems


@pytest.mark.parametrize("full", [False, True])
def test_of_more_than_a_thousand_broken_links_the_first_are_listed_and_the_others_counted(full):
    result = Report(full=full)
    for number in reversed(range(1_002)):
        result.add(Failure(f"http://h/{number:04}", Reason.CONNECTION_REFUSED))
    text = result.text(CrawlFacts(Statistics(), 1, seeds=[HOME]))
    assert "\nBroken links (1,002)\n" in text
    lines = section(text, "Broken links")
    listed = [line for line in lines if "http://h/" in line]
    assert len(listed) == (1_002 if full else 1_000)
    assert listed[0].endswith("/0000")
    assert ("  and 2 more, use -v to list all" in lines) is not full
    assert result.problems == 1_002


def test_a_report_says_whether_any_page_came() -> None:
    assert report_of([]).no_pages
    assert report_of([Failure("u", Reason.DNS), Redirect("v", 301, "u")]).no_pages
    assert not report_of([page("/", status=404)]).no_pages


def test_nothing_from_the_web_reaches_the_terminal_as_a_control_character() -> None:
    evil = "\x1b[2J\u202e\n\ud800"
    outcomes: list[Outcome] = [
        replace(
            page("/" + evil, "/g" + evil),
            flaws=(Reason.BAD_CHARSET,),
            duplicate_of=evil,
            rejected=(
                RejectedLink(evil, Reason.BAD_URL),
                RejectedLink("x" + evil, Reason.EXCLUDED),
            ),
        ),
        Failure(evil + "f", Reason.DNS, evil, target=evil),
        redirect("/g" + evil, "/h" + evil),
        Redirect("l" + evil, 301, "l" + evil),
        Redirect("s" + evil, 301, evil, rejected=Reason.OTHER_SITE),
        page("/h" + evil, status=404),
    ]
    for why in (False, True):
        report = report_of(outcomes, why=why, full=True)
        text = report.text(CrawlFacts(Statistics(), 1, seeds=[evil], ended=evil))
        assert not set("\x1b\u202e\ud800") & set(text)
        # Every line is one that the report began, not one that the web did.
        assert text.count("\n") == report_of(outcomes, why=why, full=True).text(
            CrawlFacts(Statistics(), 1, seeds=["x"], ended="x")
        ).count("\n")
        assert not [line for line in text.splitlines() if line.startswith("\\")]
    away = [Redirect("s" + evil, 301, evil, rejected=Reason.OTHER_SITE)]
    assert not set("\x1b\u202e\ud800") & set(told(*[*away]))


@pytest.mark.slow
def test_ten_thousand_good_pages_are_reported_within_16_mib() -> None:
    blank = page("/", size=1)
    urls = [f"{SITE}/{at:05}" for at in range(10_000)]
    some = [
        tuple(urls[(at * 31 + step * 97) % 10_000] for step in range(100)) for at in range(100)
    ]
    outcomes = [replace(blank, url=url, links=some[at % 100]) for at, url in enumerate(urls)]
    report = Report()
    tracemalloc.start()
    try:
        for outcome in outcomes:
            report.add(outcome)
        now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert report.problems == 0
    assert now < 8 << 20
    assert peak < 16 << 20


@for_each(
    "outcomes, verdict",
    [
        ([page("/")], "nothing is broken"),
        ([page("/"), page("/x", status=404)], "1 broken link"),
        ([Failure(f"{SITE}/", Reason.DNS)], "no page was fetched, 1 broken link"),
        ([page("/"), Skipped(f"{SITE}/x", Reason.HOST_GIVEN_UP)], "1 host given up"),
        ([page("/"), Skipped(f"{SITE}/x", Reason.TIME_BUDGET)], "nothing is broken so far"),
    ],
)
def test_the_first_line_says_what_was_found(outcomes: list[Outcome], verdict: str) -> None:
    assert told(*outcomes).splitlines()[0] == f"Crawl of https://a.test/: {verdict}"


def test_a_fault_in_what_all_sections_need_is_told_once_above_the_account() -> None:
    errors: list[Exception] = []
    text = report_of([Failure("no slash", Reason.DNS, tries=0)]).text(
        CrawlFacts(Statistics(admitted=1, failures=1), 1, seeds=[HOME]), errors=errors
    )
    assert [type(each) for each in errors] == [ValueError]
    assert text.endswith("admitted 1 = 0 pages + 0 redirects + 1 failure + 0 skipped")
