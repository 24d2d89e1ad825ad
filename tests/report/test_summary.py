from __future__ import annotations

import httpx
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from trio_crawler.ledger.ledger import Ledger
from trio_crawler.model import Failure, Outcome, Page, Reason, Redirect, RejectedLink, Skipped
from trio_crawler.report.summary import FirstItems, Summary


def page(
    status: int = 200,
    content_type: str = "text/html",
    rejected: tuple[RejectedLink, ...] = (),
    url: str = "http://u/",
) -> Page:
    return Page(
        url, status, httpx.Headers(), b"12345", content_type=content_type, rejected=rejected
    )


def ledger_of(*outcomes: Outcome) -> Ledger:
    ledger = Ledger()
    for outcome in outcomes:
        ledger.add(outcome)
    return ledger


def counted(*outcomes: Outcome) -> Summary:
    return Summary(ledger_of(*outcomes))


@for_each(
    "outcome, counters",
    [
        (page(), {"html": 1, "html_bytes": 5}),
        (page(content_type="Text/HTML; charset=x"), {"html": 1, "html_bytes": 5}),
        (page(content_type="application/xhtml+xml"), {"html": 1, "html_bytes": 5}),
        (page(content_type="image/png"), {"other": 1, "other_bytes": 5}),
        (page(204, ""), {"other": 1, "other_bytes": 5}),
        (page(404), {"error": 1, "error_bytes": 5, "status_404": 1}),
        (page(304), {"unchanged": 1}),
        (Redirect("http://u/", 301, "v"), {"redirect": 1}),
        (
            Redirect("http://u/", 301, "v", rejected=Reason.OTHER_SITE),
            {"redirect": 1, "rejected": 1, "rejected_other_site": 1},
        ),
        (Failure("http://u/", Reason.DNS), {"fail": 1, "fail_dns": 1}),
        (Skipped("http://u/", Reason.STOPPED), {"skipped": 1, "skipped_stopped": 1}),
    ],
)
def test_each_outcome_is_counted_under_the_keys_of_the_chapter(
    outcome: Outcome, counters: dict[str, int]
) -> None:
    assert counted(outcome).counters == counters


@for_each(
    "canonical, robots, duplicate_of, keys",
    [
        ("http://a/%7e", (), None, []),
        ("http://a/", (), None, ["canonical"]),
        (None, ("noindex", "nofollow"), None, ["noindex"]),
        (None, ("nofollow",), None, []),
        (None, (), "http://a/", ["duplicate"]),
        ("http://a/", ("noindex",), "http://a/", ["canonical", "duplicate", "noindex"]),
    ],
)
def test_canonical_pages_noindex_and_duplicates_are_counted(
    canonical: str | None, robots: tuple[str, ...], duplicate_of: str | None, keys: list[str]
) -> None:
    about = {"canonical": canonical, "robots": robots, "duplicate_of": duplicate_of}
    ledger = ledger_of(replace(page(), url="http://a/~", **about))
    assert Summary(ledger).counters == {"html": 1, "html_bytes": 5, **dict.fromkeys(keys, 1)}
    assert [row.indexable for _, row in ledger.ends()] == [not keys]


def test_a_rejected_link_counts_once_for_each_page_that_has_it() -> None:
    rejected = (RejectedLink("x", Reason.EXCLUDED), RejectedLink("y", Reason.OTHER_SITE))
    summary = counted(page(rejected=rejected), page(rejected=rejected[:1], url="http://v/"))
    assert summary.counters["rejected"] == 3
    assert summary.counters["rejected_excluded"] == 2


def test_the_five_slowest_pages_are_kept() -> None:
    pages = [Page(f"u{at}", 200, httpx.Headers(), b"", seconds=at) for at in range(9)]
    assert [url for _, url in counted(*pages).slowest.items] == ["u8", "u7", "u6", "u5", "u4"]


items = st.lists(st.tuples(st.integers(), st.text()))


@given(items, st.none() | st.integers(0, 5))
def test_a_shortlist_keeps_the_least_in_order_and_counts_the_rest(
    added: list[tuple[int, str]], most: int | None
) -> None:
    found: FirstItems[tuple[int, str]] = FirstItems(most)
    for item in added:
        found.add(item)
    assert found.items == sorted(added)[:most]
    assert found.total == len(added)
    assert found.omitted == len(added) - len(found.items)
