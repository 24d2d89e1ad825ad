"""What the report says of pages that want a login (401)."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from cases import for_each

from trio_crawler.model import Outcome, Page, Redirect, Statistics
from trio_crawler.report import CrawlFacts, Report

HOME = "https://a.test/"
WANTS = "      the server wants a user and a password: give --auth USER"
REFUSED = "      the server refused the user and the password that it was given"


def page(url: str, *challenges: str, status: int = 401, referrer: str | None = HOME) -> Page:
    headers = httpx.Headers([("WWW-Authenticate", each) for each in challenges])
    return Page(url, status, headers, b"", referrer=referrer)


def told(*outcomes: Outcome, **facts: Any) -> list[str]:
    """Return the lines of the broken links."""
    report = Report()
    for outcome in outcomes:
        report.add(outcome)
    text = report.text(CrawlFacts(Statistics(), 1, **{"seeds": [HOME], "authorized": (), **facts}))
    return ("\n\n" + text).partition("\n\nBroken links (")[2].partition("\n\n")[0].splitlines()[1:]


SEED = page(HOME, 'Basic realm="x"', referrer=None)


def test_a_seed_that_wants_a_login_is_told_with_what_to_do() -> None:
    assert told(SEED) == [f"  401 {HOME}", WANTS, "      (seed)"]


def test_a_login_that_was_refused_is_told_as_such() -> None:
    lines = told(SEED, authorized=["https://a.test"])
    assert lines == [f"  401 {HOME}", REFUSED, "      (seed)"]


def test_where_logins_are_unknown_both_are_told() -> None:
    both = "      the server wants a user and a password, or refused those of --auth"
    assert told(SEED, authorized=None) == [f"  401 {HOME}", both, "      (seed)"]


def test_the_login_of_another_origin_is_not_the_one_that_was_refused() -> None:
    for other in ("http://a.test", "https://a.test:444", "https://b.test"):
        assert told(SEED, authorized=[other])[1] == WANTS


def test_each_origin_is_advised_once() -> None:
    pages = [page(f"{HOME}{n}", 'basic realm="x"') for n in range(30)]
    lines = told(*pages, page("http://b.test/a"), page("http://b.test/b"))
    assert [line for line in lines if "--auth" in line] == [
        "      the server wants a user and a password: crawl http://b.test/ by its own URL, "
        "with --auth USER",
        WANTS,
    ]
    assert lines.index(WANTS) == lines.index(f"  401 {HOME}0") + 1


def test_a_seed_that_leads_to_another_origin_is_advised_for_that() -> None:
    moved = Redirect("http://a.test/", 301, HOME)
    lines = told(moved, SEED, seeds=["http://a.test/"], authorized=["http://a.test"])
    assert "crawl https://a.test/ by its own URL, with --auth USER" in lines[1]


@pytest.mark.parametrize(
    ("challenges", "scheme"),
    [
        (['Digest realm="r", qop="auth", nonce="Basic x"'], "Digest"),
        (["Negotiate", "NTLM"], "Negotiate"),
        (["Bearer"], "Bearer"),
        (['Bearer realm="a, basic b"'], "Bearer"),
    ],
)
def test_a_login_that_the_command_cannot_do_is_named(challenges: list[str], scheme: str) -> None:
    lines = told(page(HOME, *challenges, referrer=None))
    assert lines[1] == (
        f"      the server wants a login by {scheme}; --auth can only log in by Basic"
    )


@for_each(
    "challenges",
    [
        [],
        [""],
        ["Basic"],
        ['BASIC realm="r"'],
        ['Digest realm="r", nonce="n", Basic realm="r"'],
        ["Negotiate", 'Basic realm="r"'],
        ["\x1b[31m"],
        ["x" * 500],
        ["=,=" * 1000],
    ],
)
def test_a_login_by_basic_or_by_nothing_known_is_worth_a_try(challenges: list[str]) -> None:
    assert told(page(HOME, *challenges, referrer=None))[1] == WANTS


@pytest.mark.parametrize("status", [400, 403, 407, 404])
def test_no_other_status_is_about_a_login(status: int) -> None:
    lines = told(page(HOME, "Basic", status=status, referrer=None))
    assert not any("--auth" in line or "password" in line for line in lines)
