from __future__ import annotations

import random
import tracemalloc
from dataclasses import replace

import httpx
import pytest
from cases import for_each

from trio_crawler import Crawler
from trio_crawler.model import (
    Failure,
    Outcome,
    Page,
    Reason,
    Redirect,
    RejectedLink,
    Skipped,
    Statistics,
)
from trio_crawler.net.statistics import WireStatistics
from trio_crawler.report import CrawlFacts, Report
from trio_crawler.testing import Web, html

SITE = "https://a.test"
SEEDS = [f"{SITE}/"]


def page(
    path: str, *links: str, status: int = 200, seconds: float = 0.01, size: int = 100
) -> Page:
    return Page(
        SITE + path,
        status,
        httpx.Headers(),
        b"x" * size,
        content_type="text/html",
        seconds=seconds,
        links=tuple(SITE + link for link in links),
    )


def redirect(path: str, target: str, status: int = 301) -> Redirect:
    return Redirect(SITE + path, status, SITE + target)


OUTCOMES: list[Outcome] = [
    replace(
        page("/", "/a", "/old", "/l1", "/away", "/down", size=2048, seconds=1.5),
        rejected=(
            RejectedLink("https://b.test/", Reason.OTHER_SITE),
            RejectedLink("http://[x", Reason.BAD_URL),
        ),
    ),
    replace(
        page("/a", "/", "/gone", "/slow", seconds=0.034),
        rejected=(
            RejectedLink("https://b.test/", Reason.OTHER_SITE),
            RejectedLink(f"{SITE}/no", Reason.EXCLUDED),
        ),
        flaws=(Reason.BAD_CHARSET, Reason.TOO_MANY_LINKS),
        links_beyond=1200,
    ),
    page("/gone", status=404, size=10),
    redirect("/old", "/gone"),
    redirect("/l1", "/l2", 302),
    redirect("/l2", "/l1", 302),
    replace(redirect("/away", "", 302), target="https://b.test/x", rejected=Reason.OTHER_SITE),
    Failure(f"{SITE}/down", Reason.TIMEOUT, "no answer in 30 s"),
    Skipped(f"{SITE}/slow", Reason.STOPPED),
]
STATISTICS = Statistics(
    admitted=12, pages=3, redirects=4, failures=1, skipped=1, in_flight=1, waiting=2, seconds=1.6
)
EXPECTED = r"""
Crawl of https://a.test/: 4 broken links so far
admitted 12 = 3 pages + 4 redirects + 1 failure + 1 skipped + 1 in flight + 2 waiting

The worst
  404 https://a.test/gone, from 2 pages
  bad_url http://[x, from 1 page
  timeout https://a.test/down, from 1 page

Below: Broken links (4), Redirects (4), Flaws (1), Slowest pages,
  Rejected links, Skipped

Broken links (4)
  bad_url http://[x
      from https://a.test/
  timeout https://a.test/down
      no answer in 30 s
      from https://a.test/
  404 https://a.test/gone
      from https://a.test/ via https://a.test/old
      from https://a.test/a
  redirect loop https://a.test/l1
      https://a.test/l1 -> https://a.test/l2 -> https://a.test/l1
      from https://a.test/

Redirects (4)
  302 https://a.test/away -> https://b.test/x (other_site)
  302 https://a.test/l1 -> https://a.test/l2
  302 https://a.test/l2 -> https://a.test/l1
  301 https://a.test/old -> https://a.test/gone

Flaws (1)
  bad_charset, too_many_links (1,200 left out) https://a.test/a

Slowest pages
    1.50 s  https://a.test/
     34 ms  https://a.test/a
     10 ms  https://a.test/gone

Rejected links: 1 excluded, 3 other_site (--why lists them)

Skipped: 1 stopped

      1 error
     10 error_bytes
      1 fail
      1 fail_timeout
      2 html
  2,148 html_bytes (2.1 KiB)
      4 redirect
      5 rejected
      1 rejected_bad_url
      1 rejected_excluded
      3 rejected_other_site
      1 skipped
      1 skipped_stopped
      1 status_404

Ended early: stopped by Ctrl-C
Finished 8 URLs in 1.600 s (5.0 URLs/s, workers=10)
admitted 12 = 3 pages + 4 redirects + 1 failure + 1 skipped + 1 in flight + 2 waiting
""".strip()


def report_of(outcomes: list[Outcome], why: bool = False, full: bool = False) -> Report:
    report = Report(why, full)
    for outcome in outcomes:
        report.add(outcome)
    return report


def told(outcomes: list[Outcome], why: bool = False, full: bool = False) -> str:
    return report_of(outcomes, why, full).text(CrawlFacts(Statistics(), 10, seeds=SEEDS))


def test_the_report_of_a_small_crawl_reads_like_this() -> None:
    text = report_of(OUTCOMES).text(
        CrawlFacts(STATISTICS, 10, seeds=SEEDS, ended="stopped by Ctrl-C")
    )
    assert text == EXPECTED


async def test_a_crawler_itself_has_the_facts_that_its_report_needs(autojump_clock) -> None:
    web = Web({"/": html("/a", "/b"), "/a": html()})
    crawler, report = Crawler([web.url], fetch=web, workers=3), Report()
    async with crawler.outcomes() as outcomes:
        async for outcome in outcomes:
            report.add(outcome)
    text = report.text(crawler)
    assert text.startswith(f"Crawl of {web.url}: 1 broken link\n")
    assert "workers=3, per host 4)" in text
    assert "\nNot checked: links to other sites" in text
    assert text.endswith("admitted 3 = 3 pages + 0 redirects + 0 failures + 0 skipped")


def test_a_long_report_begins_with_a_screen_of_what_is_worst_and_what_is_below() -> None:
    crawl: list[Outcome] = [page(f"/p{at}", *(f"/x{n}" for n in range(at))) for at in range(9)]
    crawl += [page(f"/x{at}", status=404) for at in range(8)]
    crawl += [Skipped("http://lost.test/", Reason.HOST_GIVEN_UP)]
    assert told(crawl).splitlines()[1:10] == [
        "admitted 0 = 0 pages + 0 redirects + 0 failures + 0 skipped",
        "",
        "The worst",
        "  given up: http://lost.test: host_given_up, 1 URL not asked for",
        "  404 https://a.test/x0, from 8 pages",
        "  404 https://a.test/x1, from 7 pages",
        "",
        "Below: Broken links (8), Hosts given up (1), Slowest pages, Skipped",
        "",
    ]
    assert "The worst" not in told(crawl[:1])


def test_the_report_does_not_depend_on_the_order_of_the_outcomes() -> None:
    for seed in range(20):
        shuffled = random.Random(seed).sample(OUTCOMES, len(OUTCOMES))
        assert told(shuffled, why=True, full=True) == told(OUTCOMES, why=True, full=True)


def test_why_lists_every_rejected_url_by_reason_with_a_page_that_has_it() -> None:
    section = """
Rejected (3)
  excluded (1)
    https://a.test/no from https://a.test/a
  other_site (2)
    https://b.test/ from https://a.test/
    https://b.test/x from https://a.test/away
"""
    assert section in told(OUTCOMES, why=True)
    assert "--why" not in told(OUTCOMES, why=True)


def test_the_report_of_a_good_crawl_has_the_slowest_pages_and_the_totals() -> None:
    text = report_of([page("/")]).text(
        CrawlFacts(Statistics(admitted=1, pages=1, seconds=0.5), 3, seeds=SEEDS)
    )
    assert text == "\n".join(
        [
            "Crawl of https://a.test/: nothing is broken",
            "",
            "Slowest pages",
            "     10 ms  https://a.test/",
            "",
            "    1 html",
            "  100 html_bytes",
            "",
            "Finished 1 URL in 0.500 s (2.0 URLs/s, workers=3)",
            "admitted 1 = 1 page + 0 redirects + 0 failures + 0 skipped",
        ]
    )


def test_a_crawl_without_any_outcome_has_a_report() -> None:
    text = Report().text(CrawlFacts(Statistics(), 1, seeds=[]))
    assert text == (
        "Finished 0 URLs in 0.000 s (0.0 URLs/s, workers=1)\n"
        "admitted 0 = 0 pages + 0 redirects + 0 failures + 0 skipped"
    )


def test_thousands_are_separated_in_the_sum() -> None:
    statistics = Statistics(admitted=6138, pages=6000, redirects=100, failures=30, skipped=8)
    assert (
        Report()
        .text(CrawlFacts(statistics, 1, seeds=[]))
        .endswith("admitted 6,138 = 6,000 pages + 100 redirects + 30 failures + 8 skipped")
    )


def test_hosts_whose_certificates_were_not_verified_are_named_below_the_heading() -> None:
    text = Report().text(CrawlFacts(Statistics(), 1, seeds=SEEDS, insecure=["b.test", "\u202ec"]))
    assert text.startswith(
        "Crawl of https://a.test/: no page was fetched\n"
        "Certificates not verified: b.test, \\u202ec\n\n"
    )
    bare = Report().text(CrawlFacts(Statistics(), 1, seeds=[], insecure=["b.test"]))
    assert bare.startswith("Certificates not verified: b.test\n\n")


WIRE = WireStatistics(
    open=3, idle=3, made=1200, reused=5, retried=1, bytes_in=2_000_000, bytes_out=1023
)


def test_a_full_report_counts_the_connections_before_its_end() -> None:
    line = "Connections: 1,200 made, 5 reused, 1 retried, 3 open; 1.9 MiB in, 1023 B out"
    full = Report(full=True).text(CrawlFacts(Statistics(), 1, seeds=[], wire=WIRE))
    assert full.startswith(f"{line}\n\nFinished 0 URLs")
    assert "Connections" not in Report().text(CrawlFacts(Statistics(), 1, seeds=[], wire=WIRE))
    assert "Connections" not in Report(full=True).text(CrawlFacts(Statistics(), 1, seeds=[]))


@pytest.mark.parametrize(("retries", "line"), [(1, "1 time"), (1234, "1,234 times")])
def test_retries_are_counted_in_the_report(retries: int, line: str) -> None:
    text = Report().text(CrawlFacts(Statistics(retries=retries), 1, seeds=[]))
    assert text.startswith(f"Tried again: {line}\nFinished")


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
    assert "\nEnded early: the time allowed was over\n" in told([late])
    text = report_of([late]).text(CrawlFacts(Statistics(), 1, seeds=[], ended="stopped by Ctrl-C"))
    assert text.count("Ended early: ") == text.count("Ended early: stopped by Ctrl-C") == 1


def test_a_crawl_that_left_nothing_out_for_its_time_did_not_end_early() -> None:
    assert "Ended early" not in told(OUTCOMES)


def test_a_broken_seed_is_called_a_seed() -> None:
    assert "  500 https://a.test/\n      (seed)\n" in told([page("/", status=500)])


def test_a_seed_that_redirects_to_a_broken_page_is_named() -> None:
    text = told([redirect("/", "/b"), redirect("/b", "/c"), page("/c", status=404)])
    assert "      (seed) via https://a.test/ -> https://a.test/b\n" in text


def test_of_many_referrers_ten_are_listed_or_with_full_all() -> None:
    outcomes: list[Outcome] = [page(f"/p{at:04}", "/gone") for at in range(1500)]
    outcomes.append(page("/gone", status=404))
    assert told(outcomes).count("      from ") == 10
    assert "      from https://a.test/p0009\n      and 1,490 more\n" in told(outcomes)
    assert told(outcomes, full=True).count("      from ") == 1500
    assert " more" not in told(outcomes, full=True)


def test_of_many_redirects_twenty_are_listed_or_with_full_all() -> None:
    outcomes: list[Outcome] = [redirect(f"/r{at:04}", "/") for at in range(1030)]
    text = told(outcomes)
    assert "Redirects (1,030)\n" in text
    assert text.count(" -> ") == 20
    assert "  and 1,010 more, use -v to list all\n" in text
    assert told(outcomes, full=True).count(" -> ") == 1030


def test_of_many_duplicates_twenty_are_listed_with_their_first_or_with_full_all() -> None:
    pages: list[Outcome] = [
        replace(page(f"/{at:04}"), duplicate_of=f"{SITE}/first") for at in range(1025)
    ]
    text = told(pages)
    assert "\nDuplicates (1,025)\n  https://a.test/0000 = https://a.test/first\n" in text
    assert text.count(" = https://") == 20
    assert "  and 1,005 more, use -v to list all\n" in text
    assert "  1,025 duplicate\n" in text
    assert told(pages, full=True).count(" = https://") == 1025


def test_a_page_that_did_not_change_is_no_error() -> None:
    report = report_of([page("/", status=304, size=0)])
    assert (report.problems, report.no_pages) == (0, False)
    assert "\n  1 unchanged\n" in report.text(CrawlFacts(Statistics(), 1, seeds=[]))


def test_a_long_loop_is_shortened_or_with_full_whole() -> None:
    outcomes: list[Outcome] = [redirect(f"/{at:03}", f"/{(at + 1) % 100:03}") for at in range(100)]
    chain = next(line for line in told(outcomes).splitlines() if line.startswith("      https"))
    assert chain.endswith("https://a.test/008 -> 91 more -> https://a.test/000")
    longest = max(told(outcomes, full=True).splitlines(), key=len)
    assert longest.count(" -> ") == 100


def test_a_long_path_to_a_broken_page_is_shortened() -> None:
    chain: list[Outcome] = [redirect(f"/{at:03}", f"/{at + 1:03}") for at in range(30)]
    text = told([page("/", "/000"), *chain, page("/030", status=404)])
    assert "https://a.test/009 -> 20 more\n" in text


def test_a_seed_that_leads_to_another_site_is_explained_when_nothing_else_came() -> None:
    away = Redirect(f"{SITE}/", 301, "https://b.test/", rejected=Reason.OTHER_SITE)
    hint = "https://a.test/ leads to https://b.test/, another site: crawl it by its own URL"
    assert told([away]).splitlines()[-1] == hint
    assert hint not in told([away, page("/b")])
    assert "another site:" not in told([replace(away, rejected=Reason.EXCLUDED)])


def test_the_heading_counts_the_other_seeds_and_has_no_password() -> None:
    text = Report().text(
        CrawlFacts(Statistics(), 1, seeds=["https://me:secret@a.test/@x", "b", "c"])
    )
    assert text.startswith("Crawl of https://a.test/@x and 2 more seeds: no page was fetched\n")


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
        (OUTCOMES, 4),
    ],
)
def test_problems_counts_what_is_broken(outcomes: list[Outcome], problems: int) -> None:
    assert report_of(outcomes).problems == problems


@pytest.mark.parametrize("full", [False, True])
def test_of_more_than_a_thousand_broken_links_the_first_are_listed_and_the_others_counted(full):
    result = Report(full=full)
    for number in reversed(range(1_002)):
        result.add(Failure(f"http://h/{number:04}", Reason.CONNECTION_REFUSED))
    lines = result.text(CrawlFacts(Statistics(), 1, seeds=SEEDS)).splitlines()
    assert "Broken links (1,002)" in lines
    listed = [
        line
        for line in lines
        if line.startswith("  connection_refused http://h/") and "," not in line
    ]
    assert len(listed) == (1_002 if full else 1_000)
    assert listed[0].endswith("/0000")
    assert ("  and 2 more, use -v to list all" in lines) is not full
    assert result.problems == 1_002


def of_mails(number: int, each: int) -> list[Outcome]:
    """Return pages of an archive of mails, each with `each` hrefs that are no URLs."""
    return [
        replace(
            page(f"/{mail:02}"),
            rejected=tuple(
                RejectedLink(f"http://[{mail:02}.{href}", Reason.BAD_URL) for href in range(each)
            ),
        )
        for mail in range(number)
    ]


def test_many_hrefs_that_are_no_urls_are_counted_by_page_after_all_other_broken_links() -> None:
    gone = page("/gone", status=404)
    text = told([*of_mails(30, 3), gone])
    section = text[text.index("\n\nBroken") :].lstrip().partition("\n\n")[0].splitlines()
    assert section[:5] == [
        "Broken links (91)",
        "  404 https://a.test/gone",
        "      (seed)",
        "  bad_url: 90 hrefs that are no URLs",
        "      from https://a.test/00: 3, such as http://[00.0",
    ]
    assert section[-1] == "      and from 10 more pages, -v lists all"
    assert len(section) == 25
    assert "from https://a.test/00: http://[00.0\n" in told([*of_mails(21, 1), gone])


def test_few_hrefs_that_are_no_urls_are_listed_one_by_one_and_with_full_all_are() -> None:
    assert "  bad_url http://[19.0\n      from https://a.test/19\n" in told(of_mails(20, 1))
    assert told(of_mails(30, 3), full=True).count("  bad_url http://[") == 93
    one = replace(of_mails(1, 1)[0], rejected=of_mails(1, 15)[0].rejected * 2)
    assert told([one]).count("  bad_url http://[") == 18


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
        assert text.count("\n") == report_of(outcomes, why, True).text(
            CrawlFacts(Statistics(), 1, seeds=["x"], ended="x")
        ).count("\n")
        assert not [line for line in text.splitlines() if line.startswith("\\")]
    away = [Redirect("s" + evil, 301, evil, rejected=Reason.OTHER_SITE)]
    assert not set("\x1b\u202e\ud800") & set(told([*away]))


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


@pytest.mark.parametrize(
    ("statistics", "line"),
    [
        (Statistics(admitted=1200, waiting=1199, in_flight=1), "1,200 URLs wait in the\\x1bdir: "),
        (
            Statistics(admitted=1, waiting=1),
            "1 URL waits in the\\x1bdir: the same command goes on",
        ),
        (Statistics(admitted=1, pages=1), "The crawl in the\\x1bdir is complete now: --refresh "),
    ],
)
def test_a_crawl_with_a_directory_says_what_is_left_in_it(
    statistics: Statistics, line: str
) -> None:
    told = (
        report_of([])
        .text(CrawlFacts(statistics, 1, seeds=[], directory="the\x1bdir"))
        .splitlines()
    )
    assert told[0].startswith(line)
    assert told[-1].startswith("admitted ")


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
    assert told(outcomes).splitlines()[0] == f"Crawl of https://a.test/: {verdict}"


def test_a_fault_in_what_all_sections_need_is_told_once_above_the_account() -> None:
    errors: list[Exception] = []
    text = report_of([Failure("no slash", Reason.DNS, tries=0)]).text(
        CrawlFacts(Statistics(admitted=1, failures=1), 1, seeds=SEEDS), errors=errors
    )
    assert [type(each) for each in errors] == [ValueError]
    assert text.endswith("admitted 1 = 0 pages + 0 redirects + 1 failure + 0 skipped")
