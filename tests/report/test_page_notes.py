"""Notes on pages, by their facts."""

from __future__ import annotations

from typing import Any

import httpx
from cases import for_each
from report.crawls import HOME, page, redirect

from trio_crawler.facts import PageFacts
from trio_crawler.ledger import Ledger
from trio_crawler.model import Failure, Listing, Outcome, Page, Reason, Statistics
from trio_crawler.report import CrawlFacts, Report
from trio_crawler.report.hints import page_notes

GOOD: dict[str, Any] = {"h1": ("A",), "h1_count": 1}


def known(path: str, *, title: str | None = "", **more: Any) -> Page:
    """Return a page without a note, but for what is given; a title of None is missing."""
    of_page = {
        name: more.pop(name)
        for name in ("robots", "canonical", "duplicate_of", "status")
        if name in more
    }
    facts = PageFacts(**(GOOD | {"description": f"About {path}"} | more))
    named = None if title is None else title or f"Title of {path}"
    return page(path, title=named, facts=facts, **of_page)


def notes(*outcomes: Outcome, **about: Any) -> dict[str, list[tuple[str, str]]]:
    facts = CrawlFacts(Statistics(), 1, seeds=[HOME], **about)
    with Ledger() as ledger:
        for outcome in outcomes:
            ledger.add(outcome)
        found = page_notes(ledger, facts)
    return {
        code: [(url.removeprefix(HOME), detail.removeprefix(HOME)) for url, detail in pages]
        for code, pages in found.items()
    }


def listing(url: str) -> Listing | None:
    return Listing("map.xml") if url == f"{HOME}a" else None


@for_each(
    "outcomes, wanted",
    [
        ([known("/a"), known("/b")], {}),
        ([page("/a")], {}),
        ([known("/a", title=None)], {"no_title": [("a", "")]}),
        ([known("/a", title="x" * 61)], {"long_title": [("a", "x" * 61)]}),
        ([known("/a", title="x" * 60)], {}),
        ([known("/a", title="x"), known("/b", title="y"), known("/c", title="x"),
          known("/d", title="y")],
         {"same_title": [("a", "x"), ("c", "x"), ("b", "y"), ("d", "y")]}),
        ([known("/a", title="x"), known("/b", title="x", robots=("noindex",))], {}),
        ([known("/a", title="x"), known("/b", title="x", duplicate_of=f"{HOME}a")], {}),
        ([known("/a", description=None)], {"no_description": [("a", "")]}),
        ([known("/a", description="")], {"no_description": [("a", "")]}),
        ([known("/a", description="x" * 161)], {"long_description": [("a", "x" * 161)]}),
        ([known("/a", description="x"), known("/b", description="x")],
         {"same_description": [("a", "x"), ("b", "x")]}),
        ([known("/a", h1=(), h1_count=0)], {"no_h1": [("a", "")]}),
        ([known("/a", h1=("A", "B"), h1_count=2)], {"several_h1": [("a", "A · B")]}),
        ([known("/a", canonical=f"{HOME}a"), known("/b", canonical=f"{HOME}a")], {}),
        ([known("/a", canonical=f"{HOME}old"), redirect("/old", "/b")],
         {"canonical_redirects": [("a", "old")]}),
        ([known("/a", canonical=f"{HOME}x"), page("/x", status=404)],
         {"canonical_fails": [("a", "x")]}),
        ([known("/a", canonical=f"{HOME}x"), Failure(f"{HOME}x", Reason.TIMEOUT)],
         {"canonical_fails": [("a", "x")]}),
        ([known("/a", canonical="http://b.test/")],
         {"canonical_elsewhere": [("a", "http://b.test/")]}),
        ([known("/a", robots=("noindex",)), known("/b", robots=("noindex",))],
         {"noindex_listed": [("a", "map.xml")]}),
        ([known("/a", hreflang=(("de", f"{HOME}b"), ("en", f"{HOME}a"))),
          known("/b", hreflang=(("en", f"{HOME}a"),))], {}),
        ([known("/a", hreflang=(("de", f"{HOME}b"), ("fr", f"{HOME}c"))),
          known("/b", hreflang=(("en", f"{HOME}x"),)), known("/c")],
         {"hreflang_no_return": [("a", "b")]}),
        ([known("/a", insecure=("http://a.test/i.png",))],
         {"insecure": [("a", "http://a.test/i.png")]}),
        ([known("/a", json_ld_errors=("x",))], {"bad_json_ld": [("a", "x")]}),
        ([known("/a", images=3, images_without_alt=2)], {"no_alt": [("a", "2 of 3 images")]}),
        ([known("/a", scripted=True)], {"scripted": [("a", "")]}),
        ([known("/a", scripted=True, status=404)], {}),
    ],
)  # fmt: skip
def test_a_page_has_a_note_for_what_its_facts_lack(outcomes, wanted) -> None:
    assert notes(*outcomes, listing=listing) == wanted


@for_each(
    "title, heading, answer, is_soft",
    [
        ("Page not found", "A", ..., True),
        ("A", "Error 404", ..., True),
        ("A", "The page does not exist", ..., True),
        ("A", "1,404 things that are found", ..., False),
        ("Page not found", "A", None, False),
        ("Page not found", "A", ("Sorry", "A"), True),
        ("Page not found", "A", ("Sorry", "No"), False),
        ("Sorry", "A", ("Sorry", "No"), True),
        ("", "A", ("", "B"), False),
    ],
)
def test_a_page_is_a_soft_404_if_its_host_answers_an_invented_url_alike(
    title: str, heading: str, answer: Any, is_soft: bool
) -> None:
    missing = {} if answer is ... else {HOME.rstrip("/"): answer}
    found = notes(known("/a", title=title or None, h1=(heading,)), missing=missing)
    assert ("soft_404" in found) is is_soft


def test_of_each_host_one_page_that_looks_missing_is_asked_about() -> None:
    report = Report()
    assert report.looks_missing(9) == []
    for host in "ab":
        for path in ("x", "y"):
            about = {"content_type": "text/html", "facts": PageFacts(h1=("Not found",))}
            url = f"http://{host}.test/{path}"
            report.add(Page(url, 200, httpx.Headers(), b"", **about))
    assert report.looks_missing(9) == ["http://a.test/x", "http://b.test/x"]
    assert report.looks_missing(1) == ["http://a.test/x"]


def test_the_report_lists_three_pages_of_each_note_and_with_full_all() -> None:
    crawl = CrawlFacts(Statistics(), 1, seeds=[HOME])
    texts = []
    for full in (False, True):
        report = Report(full=full)
        for at in range(5):
            report.add(known(f"/{at}", description=None))
        texts.append(report.text(crawl))
    brief, whole = texts
    told = ["Notes on pages, by their facts", "  5 without a description"]
    listed = [f"    {HOME}{at}" for at in range(5)]
    more = "    and 2 more, use -v to list all"
    assert "\n".join([*told, *listed[:3], more]) in brief
    assert "\n".join([*told, *listed]) in whole


def test_an_outcome_that_comes_later_takes_the_place_of_the_facts() -> None:
    assert notes(known("/a", title=None), known("/a")) == {}
    assert notes(known("/a", title=None), Failure(f"{HOME}a", Reason.TIMEOUT)) == {}
