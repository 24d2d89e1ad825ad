"""A URL that was admitted again: reports show its last outcome, exports have both."""

from __future__ import annotations

import csv
import io
import json

import httpx
import pytest

from trio_crawler import Failure, Outcome, Page, Reason, Redirect, Skipped, Statistics
from trio_crawler.report import CSV_HEAD, CrawlFacts, Report, csv_row, to_jsonl

SITE = "http://site.test/"
HOME = Redirect(SITE, 302, SITE + "login")
LOGIN = Redirect(SITE + "login", 302, SITE, referrer=SITE)
ENDS: list[Outcome] = [
    Page(SITE, 200, httpx.Headers(), b"", content_type="text/html", again=True),
    Redirect(SITE, 302, SITE + "login", again=True),
    Failure(SITE, Reason.TIMEOUT, again=True),
    Skipped(SITE, Reason.HOST_GIVEN_UP, again=True),
]


def report(*outcomes: Outcome, full: bool = False) -> Report:
    made = Report(full=full)
    for outcome in outcomes:
        made.add(outcome)
    return made


def text(*outcomes: Outcome, full: bool = False, cookies: bool | None = None) -> str:
    facts = CrawlFacts(Statistics(admitted=3), 1, seeds=[SITE], cookies=cookies)
    return report(*outcomes, full=full).text(facts)


def test_the_redirect_that_was_followed_by_another_outcome_is_not_listed_and_no_loop() -> None:
    said = text(HOME, LOGIN, ENDS[0])
    assert "Redirects (1)\n  302 http://site.test/login -> http://site.test/\n" in said
    assert "1 again\n" in said
    assert "1 redirect\n" in said
    assert "loop" not in said
    assert report(HOME, LOGIN, ENDS[0]).problems == 0


def test_a_redirect_that_is_followed_by_the_same_stays_a_loop() -> None:
    said = text(HOME, LOGIN, ENDS[1])
    assert "Redirects (2)" in said
    assert "redirect loop http://site.test/\n" in said
    assert report(HOME, LOGIN, ENDS[1]).problems == 1


def test_without_another_redirect_no_redirect_is_counted() -> None:
    itself = Redirect(SITE, 302, SITE)
    said = text(itself, ENDS[0])
    assert "redirect\n" not in said
    assert "Redirects" not in said


def test_a_failure_of_the_second_asking_is_a_broken_link_with_its_way() -> None:
    said = text(HOME, LOGIN, ENDS[2])
    assert "Broken links (1)\n  timeout http://site.test/\n" in said


@pytest.mark.parametrize("full", [False, True])
def test_of_very_many_that_were_asked_again_the_others_are_listed(full: bool) -> None:
    def url(number: int) -> str:
        return f"{SITE}{number:05}"

    bounced = [Redirect(url(number), 302, SITE + "x") for number in range(900)]
    stays = [Redirect(url(number), 302, SITE + "x") for number in range(900, 5_000)]
    again = [Skipped(one.url, Reason.STOPPED, again=True) for one in bounced]
    said = text(*bounced, *stays, *again, full=full)
    assert "Redirects (4,100)\n  302 http://site.test/00900 ->" in said
    assert ("and 4,080 more, use -v to list all" in said) is not full
    assert "4,100 redirect\n" in said
    assert said.count("  302 ") == (4_100 if full else 20)


def test_only_a_loop_of_a_crawl_without_cookies_names_the_option() -> None:
    assert "(--cookies " in text(HOME, LOGIN, cookies=False)
    for cookies in (None, True):
        assert "--cookies" not in text(HOME, LOGIN, cookies=cookies)
    assert "--cookies" not in text(LOGIN, cookies=False)


@pytest.mark.parametrize("outcome", ENDS, ids=lambda outcome: type(outcome).__name__)
def test_exports_mark_the_second_outcome(outcome: Outcome) -> None:
    assert json.loads(to_jsonl(outcome))["again"] is True
    assert "again" not in json.loads(to_jsonl(HOME))
    lines = (CSV_HEAD + csv_row(HOME) + csv_row(outcome)).decode()
    assert [row["again"] for row in csv.DictReader(io.StringIO(lines))] == ["", "1"]


def test_a_redirect_to_no_url_is_no_broken_link_when_another_outcome_follows() -> None:
    bad = Redirect(SITE, 302, "http://[x", rejected=Reason.BAD_URL)
    assert report(bad).problems == 1
    assert report(bad, ENDS[0]).problems == 0
