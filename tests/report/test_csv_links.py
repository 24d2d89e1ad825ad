from __future__ import annotations

import csv
import io

import httpx

from trio_crawler.model import (
    Anchor,
    Failure,
    Outcome,
    Page,
    Reason,
    Redirect,
    RejectedLink,
    Skipped,
)
from trio_crawler.report.lines import LINKS_HEAD, link_rows

URL = "https://a.test/"
LINKS = ("https://a.test/b", "https://a.test/c")
REFUSED = (
    RejectedLink("https://b.test/", Reason.OTHER_SITE),
    RejectedLink("=1+1", Reason.BAD_URL),
)


def read(outcome: Outcome) -> list[list[str]]:
    lines = list(csv.reader(io.StringIO((LINKS_HEAD + link_rows(outcome)).decode(), newline="")))
    assert lines[0] == ["page", "url", "kind", "text", "reason"]
    return lines[1:]


def page(**more: object) -> Page:
    return Page(URL, 200, httpx.Headers(), b"", links=LINKS, rejected=REFUSED, **more)  # type: ignore[arg-type]


def test_each_link_is_a_line_with_its_anchor_and_the_reason_of_its_refusal() -> None:
    anchors = {
        LINKS[0]: Anchor("a", "B, the first"),
        LINKS[1]: Anchor("area", ""),
        "https://b.test/": Anchor("a", "elsewhere"),
        "=1+1": Anchor("a", "@sum"),
    }
    assert read(page(anchors=anchors)) == [
        [URL, "https://a.test/b", "a", "B, the first", ""],
        [URL, "https://a.test/c", "area", "", ""],
        [URL, "https://b.test/", "a", "elsewhere", "other_site"],
        [URL, "'=1+1", "a", "'@sum", "bad_url"],
    ]


def test_without_anchors_kind_and_text_are_empty() -> None:
    assert [line[2:] for line in read(page())] == [
        ["", "", ""],
        ["", "", ""],
        ["", "", "other_site"],
        ["", "", "bad_url"],
    ]


def test_a_redirect_is_a_link_to_its_target() -> None:
    assert read(Redirect(URL, 301, "https://b.test/", rejected=Reason.OTHER_SITE)) == [
        [URL, "https://b.test/", "redirect", "", "other_site"]
    ]
    assert read(Redirect(URL, 301, "https://a.test/b")) == [
        [URL, "https://a.test/b", "redirect", "", ""]
    ]


def test_what_links_to_nothing_has_no_line() -> None:
    assert read(Failure(URL, Reason.TIMEOUT)) == read(Skipped(URL, Reason.STOPPED)) == []
    assert read(Page(URL, 200, httpx.Headers(), b"")) == []
