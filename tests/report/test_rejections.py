"""The rejected links by rule and shape, in short and, with `why`, one by one."""

from __future__ import annotations

import random

import httpx
import pytest

from trio_crawler.ledger import ledger
from trio_crawler.model import Outcome, Page, Reason, Redirect, RejectedLink, Statistics
from trio_crawler.report import CrawlFacts, Report, rejections
from trio_crawler.report.rejections import OPTIONS

SITE = "https://h.test/"


def page(path: str, *rejected: tuple[str, Reason]) -> Page:
    links = tuple(RejectedLink(SITE + link, reason) for link, reason in rejected)
    return Page(SITE + path, 200, httpx.Headers(), b"", rejected=links)


def told(*outcomes: Outcome, why: bool = False, full: bool = False) -> str:
    report = Report(why, full)
    for outcome in outcomes:
        report.add(outcome)
    return report.text(CrawlFacts(Statistics(), 1, seeds=[]))


def numbers(count: int, shape: str = "p/", reason: Reason = Reason.NOTHING_NEW) -> Page:
    return page("", *((f"{shape}{n}", reason) for n in range(count)))


# By rule.


def test_every_rule_against_endless_sites_has_an_option() -> None:
    reasons = list(Reason)
    first, last = reasons.index(Reason.LONG_URL), reasons.index(Reason.DUPLICATE)
    assert set(reasons[first : last + 1]) == set(OPTIONS)


def test_beyond_a_million_urls_the_number_is_the_least(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "MOST_REJECTED", 3)
    twice = told(numbers(5), numbers(5), numbers(2, "q/"))
    assert "Rejected as endless (5 URLs or more)\n  nothing_new: 5 URLs like" in twice


def test_what_no_trap_rule_rejected_is_not_in_that_section() -> None:
    links = page("", ("a", Reason.EXCLUDED), ("b", Reason.ROBOTS), ("c", Reason.REL_NOFOLLOW))
    assert "endless" not in told(links)
    away = Redirect(f"{SITE}old", 301, f"{SITE}p/1", rejected=Reason.NOTHING_NEW)
    assert "nothing_new: 1 URL like https://h.test/p/0" in told(away)


def test_a_shape_that_comes_late_is_counted_although_thousands_came_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rejections, "MOST_GROUPS", 10)
    many = [numbers(1, f"{chr(97 + n)}/") for n in range(26)]
    for why in (False, True):
        text = told(numbers(9, "trap/"), *many, numbers(8, "late/"), why=why)
        assert "nothing_new: 9 URLs like https://h.test/trap/0;" in text
        assert "nothing_new: 8 URLs like https://h.test/late/0;" in text
        assert " URLs of other shapes; --no-traps follows them" in text
        assert "Rejected as endless (43 URLs)" in text


# One by one.


def listing(*outcomes: Outcome, full: bool = False) -> list[str]:
    text = told(*outcomes, why=True, full=full)
    return text[text.index("\n\nRejected (") :].lstrip().partition("\n\n")[0].splitlines()


def test_of_each_reason_a_thousand_urls_are_listed_or_with_full_all() -> None:
    pages = [numbers(1_500, "p/"), numbers(700, "q/"), numbers(300, reason=Reason.EXCLUDED)]
    lines = listing(*pages)
    assert "  nothing_new (2,200)" in lines
    # Each of the shapes has its share.
    for shape, more in (("p", "1,000"), ("q", "200")):
        assert sum(line.startswith(f"      https://h.test/{shape}/") for line in lines) == 500 + (
            300 if shape == "p" else 0
        )
        assert f"      and {more} more, use -v to list all" in lines
    full = listing(*pages, full=True)
    assert sum(" from " in line for line in full) == 2_500
    assert not any("more" in line for line in full)


def test_the_list_does_not_depend_on_the_order_of_the_outcomes() -> None:
    outcomes = [
        page(f"{n}", *((f"{shape}/{n * 7 + each}", Reason.EXCLUDED) for each in range(9)))
        for n in range(400)
        for shape in "pq"
    ]
    for seed in range(3):
        shuffled = random.Random(seed).sample(outcomes, len(outcomes))
        assert listing(*shuffled) == listing(*outcomes)


def test_hrefs_that_are_no_urls_are_not_listed_as_rejected() -> None:
    found = Page(SITE, 200, httpx.Headers(), b"", rejected=(RejectedLink("x", Reason.BAD_URL),))
    assert "Rejected" not in told(found, why=True)
