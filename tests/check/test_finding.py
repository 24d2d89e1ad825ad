from __future__ import annotations

import random
from typing import Any

import pytest
from cases import for_each
from check.findings import FACTS, MOVED, PAGE, SEED, SEVERAL, finding, several
from hypothesis import given

from trio_crawler.check import to_annotations, to_json, to_junit, to_markdown, to_sarif
from trio_crawler.check.finding import Finding, Hop, Identity, in_order
from trio_crawler.model import Reason
from trio_crawler.policy.verdict import Defect, Verdict
from trio_crawler.report.codes import SENTENCES, sentence

NOTE = Verdict.NOTE


def test_every_reason_has_a_sentence_and_no_other_code_has_one() -> None:
    assert set(SENTENCES) == {*Reason, *Defect}
    assert len(set(SENTENCES.values())) == len(SENTENCES)
    for said in SENTENCES.values():
        assert said[0].isupper()
        assert said[-1] != "."
        assert said.isascii()


@for_each(
    "code, said",
    [
        ("404", "The server answers 404 (Not Found)"),
        ("999", "The server answers 999"),
        ("308", "The server redirects for good (308): update the link"),
        ("302", "The server redirects (302)"),
        ("dns", "The name server cannot look up the name of the host"),
    ],
)
def test_a_code_has_one_sentence(code: str, said: str) -> None:
    assert sentence(code) == said


HOPS = (Hop(301, "https://b.test/1"), Hop(302, "https://b.test/%C3%BC"))
DETAIL = "the name of x.test is not known"


@for_each(
    "fields, said",
    [
        ({}, "The server answers 404 (Not Found)"),
        ({"detail": "ignored"}, "The server answers 404 (Not Found)"),
        (
            {"chain": HOPS},
            "The server answers 404 (Not Found), after 2 redirects to https://b.test/ü",
        ),
        (
            {"code": "301", "verdict": NOTE, "chain": HOPS},
            "The server redirects for good (301) to https://b.test/ü: update the link",
        ),
        ({"code": "no_such_host", "detail": DETAIL}, "The name of x.test is not known"),
        ({"code": "connection_refused", "detail": "x.test refused"}, "x.test refused"),
        ({"code": "403"}, "The server answers 403 (Forbidden)"),
        (
            {"code": "403", "verdict": NOTE},
            "The server answers 403 (Forbidden), so the link could not be checked",
        ),
        ({"code": "robots", "verdict": NOTE}, "The robots.txt of the host disallows the URL"),
    ],
)
def test_a_finding_says_what_is_wrong(fields: dict[str, Any], said: str) -> None:
    assert finding(**fields).says == said


def test_what_it_says_is_one_short_line_that_steers_no_terminal() -> None:
    said = finding(code="tls", detail="a\x1b[31m\nb\u202e" + "c" * 10_000).says
    assert said.startswith(r"a\x1b[31m\x0ab\u202eccc")
    assert len(said) == 500
    assert said.endswith("c…")


@for_each(
    "fields, identity",
    [
        ({}, ("/docs/", "/gone", "404")),
        ({"line": 9, "column": 1, "text": "x", "as_written": "y", "kind": "image"}, None),
        ({"verdict": NOTE, "detail": "z", "external": True}, None),
        ({"page": "https://staging.test/docs/", "url": "https://staging.test/gone"}, None),
        ({"fragment": "top"}, ("/docs/", "/gone#top", "404")),
        ({"page": None}, ("", "https://a.test/gone", "404")),
        ({"url": "https://a.test.b/x"}, ("/docs/", "https://a.test.b/x", "404")),
        ({"url": "http://a.test/gone"}, ("/docs/", "http://a.test/gone", "404")),
        ({"page": "https://a.test/docs/?p=2"}, ("/docs/?p=2", "/gone", "404")),
        ({"page": "no url", "url": "x:"}, ("no url", "x:", "404")),
        ({"code": "410"}, ("/docs/", "/gone", "410")),
    ],
)
def test_a_finding_is_the_same_by_page_target_and_code_on_any_host(
    fields: dict[str, Any], identity: tuple[str, str, str] | None
) -> None:
    found = finding(**fields)
    assert found.identity == Identity(*(identity or finding().identity))
    assert (found.fingerprint == finding().fingerprint) == (identity in (None, finding().identity))
    assert len(found.fingerprint) == 32


def test_a_fingerprint_stays_the_same_from_one_version_to_the_next() -> None:
    assert finding().fingerprint == "95dc319b382b7bad6676718992dc8751"


def test_findings_are_in_the_order_of_pages_and_lines_with_seeds_first() -> None:
    assert [(each.page, each.line) for each in in_order(SEVERAL)] == [
        (None, 0),
        ("https://a.test/", 0),
        (PAGE, 1),
        (PAGE, 3),
        (PAGE, 9),
    ]


@given(several)
def test_the_same_findings_are_in_the_same_order_and_the_same_bytes(found: list[Finding]) -> None:
    shuffled = random.Random(1).sample(found, len(found))
    assert in_order(shuffled) == in_order(found)
    for write in (to_json, to_junit, to_sarif, to_markdown):
        assert [*write(shuffled, FACTS)] == [*write(found, FACTS)]
    assert [*to_annotations(shuffled)] == [*to_annotations(found)]


def test_a_finding_is_a_value() -> None:
    assert {MOVED, SEED, finding(), finding()} == {MOVED, SEED, finding()}
    with pytest.raises(AttributeError):
        SEED.url = "x"  # type: ignore[misc]


@for_each(
    "fields, kind, sentence",
    [
        ({"verdict": "fault"}, TypeError, "verdict must be a Verdict, not 'fault'"),
        ({"verdict": Verdict.FINE}, ValueError, "verdict must be a note or a fault: a fine link"),
        ({"code": "nothing"}, ValueError, "code must be a status, a Reason, or one of missing_fr"),
        ({"code": "1000"}, ValueError, "code must be a status, a Reason, or one of missing_frag"),
        ({"code": "\u0664\u0660\u0664"}, ValueError, "code must be a status, a Reason, or one of"),
    ],
)
def test_a_wrong_field_is_refused_by_its_name(
    fields: dict[str, Any], kind: type[Exception], sentence: str
) -> None:
    with pytest.raises(kind) as refused:
        finding(**fields)
    assert str(refused.value).startswith(sentence)
