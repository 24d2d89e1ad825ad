from __future__ import annotations

from dataclasses import replace

import httpx
import pytest

from trio_crawler.model import Failure, Outcome, Page, Reason, Redirect, Refused, Skipped
from trio_crawler.report.summary import Tally


def page(
    status: int = 200, content_type: str = "text/html", refused: tuple[Refused, ...] = ()
) -> Page:
    return Page("u", status, httpx.Headers(), b"12345", content_type=content_type, refused=refused)


def counted(*outcomes: Outcome, why: bool = False) -> Tally:
    tally = Tally(why)
    for outcome in outcomes:
        tally.add(outcome)
    return tally


@pytest.mark.parametrize(
    ("outcome", "counters"),
    [
        (page(), {"html": 1, "html_bytes": 5}),
        (page(content_type="Text/HTML; charset=x"), {"html": 1, "html_bytes": 5}),
        (page(content_type="application/xhtml+xml"), {"html": 1, "html_bytes": 5}),
        (page(content_type="image/png"), {"other": 1, "other_bytes": 5}),
        (page(204, ""), {"other": 1, "other_bytes": 5}),
        (page(404), {"error": 1, "error_bytes": 5, "status_404": 1}),
        (page(304), {"unchanged": 1}),
        (Redirect("u", 301, "v"), {"redirect": 1}),
        (
            Redirect("u", 301, "v", refused=Reason.OTHER_SITE),
            {"redirect": 1, "refused": 1, "refused_other_site": 1},
        ),
        (Failure("u", Reason.DNS), {"fail": 1, "fail_dns": 1}),
        (Skipped("u", Reason.STOPPED), {"skipped": 1, "skipped_stopped": 1}),
    ],
)
def test_each_outcome_is_counted_under_the_keys_of_the_chapter(
    outcome: Outcome, counters: dict[str, int]
) -> None:
    assert counted(outcome).counters == counters


@pytest.mark.parametrize(
    ("canonical", "robots", "duplicate_of", "keys"),
    [
        ("http://a/%7e", (), None, []),
        ("http://a/", (), None, ["canonical"]),
        (None, ("noindex", "nofollow"), None, ["noindex"]),
        (None, ("nofollow",), None, []),
        (None, (), "http://a/", ["duplicate"]),
        ("http://a/", ("noindex",), "http://a/", ["canonical", "duplicate", "noindex"]),
    ],
)
def test_what_pages_say_of_themselves_is_counted(
    canonical: str | None, robots: tuple[str, ...], duplicate_of: str | None, keys: list[str]
) -> None:
    about = {"canonical": canonical, "robots": robots, "duplicate_of": duplicate_of}
    tally = counted(replace(page(), url="http://a/~", **about))
    assert tally.counters == {"html": 1, "html_bytes": 5, **dict.fromkeys(keys, 1)}
    assert tally.indexable == ([] if keys else ["http://a/~"])


def test_a_refused_link_counts_once_for_each_page_that_has_it() -> None:
    refused = (Refused("x", Reason.EXCLUDED), Refused("y", Reason.OTHER_SITE))
    tally = counted(page(refused=refused), page(refused=refused[:1]))
    assert tally.counters["refused"] == 3
    assert tally.counters["refused_excluded"] == 2


def test_refused_urls_are_kept_only_when_somebody_asks_why() -> None:
    refused = (Refused("x", Reason.EXCLUDED),)
    assert counted(page(refused=refused)).refused == {}
    assert counted(page(refused=refused), why=True).refused == {Reason.EXCLUDED: {"x": "u"}}


def test_the_referrer_of_a_refused_url_does_not_depend_on_the_order() -> None:
    pages = [
        Page(url, 200, httpx.Headers(), b"", refused=(Refused("x", Reason.EXCLUDED),))
        for url in ("a", "b")
    ]
    assert counted(*pages, why=True).refused == counted(*reversed(pages), why=True).refused


def test_the_five_slowest_pages_are_kept() -> None:
    pages = [Page(f"u{at}", 200, httpx.Headers(), b"", seconds=at) for at in range(9)]
    assert [url for _, url in counted(*pages).slowest.items] == ["u8", "u7", "u6", "u5", "u4"]
