from __future__ import annotations

import httpx
from cases import for_each
from msgspec.structs import replace

from trio_crawler.model import Failure, Outcome, Page, Phase, Reason, Redirect, Skipped
from trio_crawler.report import one_line

URL = "https://a.test/"


def page(title: str | None = None, url: str = URL) -> Page:
    return Page(url, 200, httpx.Headers(), b"x" * 12_595, title=title, seconds=0.034)


@for_each(
    "outcome, told",
    [
        (page("Home"), '200    12.3 KiB    34 ms  https://a.test/  "Home"'),
        (page(), "200    12.3 KiB    34 ms  https://a.test/"),
        (
            replace(page("Home"), robots=("nofollow", "noindex")),
            '200    12.3 KiB    34 ms  https://a.test/  "Home" (noindex)',
        ),
        (
            replace(page(), duplicate_of="https://a.test/b", robots=("noindex",)),
            "200    12.3 KiB    34 ms  https://a.test/ (noindex) (same as https://a.test/b)",
        ),
        (Redirect(URL, 301, "https://a.test/b"), "301  https://a.test/ -> https://a.test/b"),
        (
            Redirect(URL, 302, "https://b.test/", rejected=Reason.OTHER_SITE),
            "302  https://a.test/ -> https://b.test/ (other_site)",
        ),
        (Failure(URL, Reason.CONNECTION_REFUSED), "fail connection_refused https://a.test/"),
        (Failure(URL, Reason.DNS, "no such host"), "fail dns https://a.test/: no such host"),
        (
            Failure(URL, Reason.RESET, "it hung up", phase=Phase.WAIT),
            "fail reset (wait) https://a.test/: it hung up",
        ),
        (Skipped(URL, Reason.STOPPED), "skip stopped https://a.test/"),
    ],
)
def test_an_outcome_is_one_line(outcome: Outcome, told: str) -> None:
    assert one_line(outcome) == told


def test_a_title_is_cut_and_a_url_is_not() -> None:
    url = URL + "x" * 500
    told = one_line(page("t" * 500, url))
    assert url in told
    assert told.endswith('"' + "t" * 79 + '…"')


@for_each(
    "outcome",
    [
        page("\x1b[2J"),
        page(url="u\x1b"),
        replace(page(), duplicate_of="\x1b"),
        Redirect("u", 301, "\x1b"),
        Redirect("\x1b", 301, "u"),
        Failure("u", Reason.DNS, "\x1b"),
        Failure("\x1b", Reason.DNS),
        Skipped("\x1b", Reason.STOPPED),
    ],
)
def test_no_escape_sequence_gets_into_the_line(outcome: Outcome) -> None:
    told = one_line(outcome)
    assert "\x1b" not in told
    assert r"\x1b" in told
