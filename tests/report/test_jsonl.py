from __future__ import annotations

import json
from typing import Any

import httpx
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from report.crawls import HOME, page, redirect

from trio_crawler.ledger import Ledger
from trio_crawler.model import (
    Failure,
    Outcome,
    Page,
    Phase,
    Reason,
    Redirect,
    RejectedLink,
    Skipped,
)
from trio_crawler.report.lines import jsonl_with_links, to_jsonl

URL = "https://a.test/"
PAGE = Page(
    url=URL,
    status=200,
    headers=httpx.Headers(),
    body=b"<title>A</title>",
    content_type="text/html",
    charset="utf-8",
    title="A",
    seconds=0.0123456,
    links=("https://a.test/b",),
    rejected=(RejectedLink("https://b.test/", Reason.OTHER_SITE),),
    flaws=(Reason.BAD_CHARSET,),
)
# A high surrogate followed by a low one spells one character, in JSON as in UTF-16.
texts = st.text(st.one_of(st.characters(), st.characters(categories=["Cs"], max_codepoint=0xDBFF)))
reasons = st.sampled_from(Reason)
phases = st.none() | st.sampled_from(Phase)
maybe = st.none() | texts
outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(
        Page,
        url=texts,
        status=st.integers(200, 599),
        headers=st.just(httpx.Headers()),
        body=st.binary(),
        referrer=maybe,
        title=maybe,
        content_type=texts,
        links=st.lists(texts).map(tuple),
        rejected=st.lists(st.builds(RejectedLink, texts, reasons)).map(tuple),
        seconds=st.floats(0, 1e6),
        canonical=maybe,
        robots=st.lists(texts).map(tuple),
        duplicate_of=maybe,
    ),
    st.builds(
        Redirect, url=texts, status=st.just(301), target=texts, rejected=st.none() | reasons
    ),
    st.builds(Failure, url=texts, reason=reasons, detail=texts, target=maybe, phase=phases),
    st.builds(Skipped, url=texts, reason=reasons, referrer=maybe),
)


def read(outcome: Outcome) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(to_jsonl(outcome))
    return loaded


def test_a_page_has_these_keys_in_this_order() -> None:
    expected = {
        "kind": "page",
        "url": URL,
        "status": 200,
        "content_type": "text/html",
        "charset": "utf-8",
        "title": "A",
        "size": 16,
        "depth": 0,
        "referrer": None,
        "tries": 1,
        "seconds": 0.012,
        "links": ["https://a.test/b"],
        "rejected": [{"url": "https://b.test/", "reason": "other_site"}],
        "flaws": ["bad_charset"],
    }
    assert read(PAGE) == expected
    assert list(read(PAGE)) == list(expected)


def test_links_that_were_cut_off_are_counted_only_when_there_are_some() -> None:
    page = Page(URL, 200, httpx.Headers(), b"", links_beyond=7)
    assert read(page)["links_beyond"] == 7
    assert "links_beyond" not in read(PAGE)


def test_hints_of_a_page_for_robots_come_last_and_only_if_there_are_any() -> None:
    said = {
        "canonical": "https://a.test/c",
        "robots": ["noindex"],
        "duplicate_of": "https://a.test/d",
    }
    page = replace(
        PAGE, canonical="https://a.test/c", robots=("noindex",), duplicate_of="https://a.test/d"
    )
    assert read(page) == read(PAGE) | said
    assert list(read(page)) == [*read(PAGE), *said]


def test_redirects_failures_and_skipped_urls_have_their_reasons() -> None:
    assert read(Redirect(URL, 301, "https://b.test/", rejected=Reason.OTHER_SITE)) == {
        "kind": "redirect",
        "url": URL,
        "status": 301,
        "target": "https://b.test/",
        "reason": "other_site",
        "depth": 0,
        "referrer": None,
        "tries": 1,
        "seconds": 0.0,
    }
    assert read(Failure(URL, Reason.DNS, "no such host", depth=2, referrer="r", tries=3)) == {
        "kind": "failure",
        "url": URL,
        "reason": "dns",
        "detail": "no such host",
        "target": None,
        "depth": 2,
        "referrer": "r",
        "tries": 3,
        "seconds": 0.0,
    }
    assert read(Skipped(URL, Reason.STOPPED, 1, "r")) == {
        "kind": "skipped",
        "url": URL,
        "reason": "stopped",
        "depth": 1,
        "referrer": "r",
    }


@for_each("phase", Phase)
def test_the_phase_of_a_failure_is_there_where_it_is_known(phase: Phase) -> None:
    told = read(Failure(URL, Reason.RESET, "d", phase=phase))
    assert told["phase"] == phase.value
    assert list(told)[:6] == ["kind", "url", "reason", "detail", "phase", "target"]
    assert told.keys() - {"phase"} == read(Failure(URL, Reason.RESET)).keys()


def test_a_redirect_whose_target_was_admitted_has_no_reason() -> None:
    assert read(Redirect(URL, 301, "https://a.test/b"))["reason"] is None


@given(outcomes)
def test_every_string_comes_back_from_one_line_without_control_bytes(outcome: Outcome) -> None:
    encoded = to_jsonl(outcome)
    assert encoded.endswith(b"\n")
    assert not any(byte < 0x20 or byte == 0x7F for byte in encoded[:-1])
    told = json.loads(encoded)
    names = "url referrer title target detail content_type canonical duplicate_of"
    for key in names.split():
        if key in told:
            assert told[key] == getattr(outcome, key)
    if isinstance(outcome, Page):
        assert told["links"] == list(outcome.links)
        assert told.get("robots", []) == list(outcome.robots)
        assert [tuple(each.values()) for each in told["rejected"]] == list(outcome.rejected)


def test_escapes_and_lone_surrogates_are_written_as_escapes() -> None:
    title = "\x1b]0;\u202e\x9b\ud800é"
    page = Page(URL, 200, httpx.Headers(), b"", title=title)
    assert rb"\u001b]0;\u202e\u009b\ud800" in to_jsonl(page)
    assert read(page)["title"] == title


def test_a_line_of_a_whole_crawl_has_its_inlinks_and_the_redirects_that_lead_to_it():
    outcomes = [
        page("/", "/old"),
        redirect("/old", "/older"),
        redirect("/older", "/a"),
        page("/a", "/"),
    ]
    with Ledger() as ledger:
        for outcome in outcomes:
            ledger.add(outcome)
        lines = [
            line for each in outcomes for line in (b'"%b"\n' % each.url.encode(), to_jsonl(each))
        ]
        found = [*map(json.loads, jsonl_with_links(lines, ledger))]
    assert [(each.pop("inlinks"), each.pop("redirected_from")) for each in found] == [
        (1, []),
        (1, []),
        (0, [f"{HOME}old"]),
        (0, [f"{HOME}old", f"{HOME}older"]),
    ]
    assert found == [json.loads(to_jsonl(each)) for each in outcomes]
