"""The values of links: srcset, refresh, Link fields, manifests, mailto and tel."""

from __future__ import annotations

import json

from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from trio_crawler.check.finding import mailto_fault
from trio_crawler.page import values


@for_each(
    "value, urls",
    [
        ("a", ["a"]),
        ("a 1x, b 2x", ["a", "b"]),
        ("a,b 2x", ["a,b"]),
        ("a, b", ["a", "b"]),
        ("a,, , b,", ["a", "b"]),
        (",,a,,", ["a"]),
        ("a 1x,b 2x", ["a", "b"]),
        ("data:image/png;base64,AA== 1x, b 2x", ["data:image/png;base64,AA==", "b"]),
        ("a 100w 50h, b 50h 100w", ["a", "b"]),
        ("a (x, y), b", ["b"]),
        ("a (x, y", []),
        ("a 1x 2x, b", ["b"]),
        ("a 0w, b 50h, c -1x, d 1.5x, e .5x, f 1e3x", ["d", "e", "f"]),
        ("a 1xx, b +1x, c 1.x, d \u0661x", []),
        ("\t\n\f\ra\n1x\r", ["a"]),
        ("", []),
        (" , ", []),
        (f"a {'9' * 5_000}w", ["a"]),
    ],
)
def test_the_candidates_of_a_srcset_are_those_of_the_standard(value, urls):
    assert list(values.in_srcset(value)) == urls


@for_each(
    "value, target",
    [
        ("5", ""),
        ("5; url=x", "x"),
        (" 5.7.1 , URL = 'x y' z", "x y"),
        ('0;url="x', "x"),
        ("5 x", "x"),
        ("5;x=y", "x=y"),
        ("5;url x", "url x"),
        ("5;urx", "urx"),
        (".5;x", "x"),
        ("5;'x'y", "x"),
        ("5;;x", ";x"),
        ("5;", ""),
        ("x", None),
        ("5x", None),
        ("", None),
        (";x", None),
        ("-1;x", None),
    ],
)
def test_a_refresh_is_read_as_the_standard_says(value, target):
    assert values.in_refresh(value) == target


@for_each(
    "field, found",
    [
        ("<x>; rel=next", [("x", "next")]),
        ('<x,y>; rel="a b"; title="c, d", <z>', [("x,y", "a b"), ("z", "")]),
        ("<x>; REL=a; rel=b", [("x", "a")]),
        ('<x>; rel="a\\"b"', [("x", 'a"b')]),
        ("x; rel=next", []),
        ("<x", []),
        ("", []),
    ],
)
def test_the_links_of_a_link_field_are_read(field, found):
    assert [(link.target, link.rel) for link in values.in_link_field(field)] == found


@for_each(
    "body, found",
    [
        ({"start_url": "/s", "icons": [{"src": "i"}, {"src": 5}, {}, 5]}, ["link /s", "icon i"]),
        ({"screenshots": [{"src": "p"}]}, ["image p"]),
        ({"shortcuts": [{"url": "u", "icons": [{"src": "v"}]}]}, ["link u", "icon v"]),
        ({"start_url": 5, "icons": {"src": "i"}, "scope": "/", "id": "x"}, []),
        ([], []),
    ],
)
def test_what_a_manifest_points_to_is_read(body, found):
    source = b"\xef\xbb\xbf" + json.dumps(body).encode()
    assert [f"{kind} {value}" for kind, value in values.in_manifest(source)] == found


@for_each(
    "body", [b"", b"{", b"\xff", b"[" * 500_000, b'{"icons":' * 100_000, b'"' + b"x" * (1 << 21)]
)
def test_a_manifest_that_cannot_be_read_has_no_links(body):
    assert list(values.in_manifest(body)) == []


@for_each(
    "url",
    [
        "mailto:a@b.test",
        "mailto:a@b.test,c.d+e@f.test",
        "mailto:a@b.test?subject=x%20y&body=http://e.test/?a",
        "mailto:?to=a@b.test&subject=x",
        "mailto:",
        "mailto:%22not%40me%22@e.test",
        "mailto:a@[127.0.0.1]",
        "mailto:%C3%A9@%C3%BC.test",
        "mailto:gorby%25kremvax@e.test",
    ],
)
def test_a_link_of_good_syntax_has_no_fault(url):
    assert mailto_fault(url.removeprefix("mailto:")) == ""


@for_each(
    "url, shown",
    [
        ("mailto:a", "'a'"),
        ("mailto:a@b@c", "'a@b@c'"),
        ("mailto:a b@c.test", "'a b@c.test'"),
        ("mailto:a@b.test,", "''"),
        ("mailto:a..b@c.test", "'a..b@c.test'"),
        ("mailto:A%20%3Ca@b.test%3E", "'A <a@b.test>'"),
        ("mailto:a@b.test?subject", "'subject'"),
        ("mailto:a@b.test?cc=x", "'x'"),
        ("mailto:a@b.test?a=b&", "''"),
        ("mailto:a%@b.test", '"%"'),
        ("mailto:" + "x" * 1_000, "…"),
    ],
)
def test_a_fault_of_syntax_is_a_sentence_that_shows_it(url, shown):
    fault = mailto_fault(url.removeprefix("mailto:"))
    assert shown in fault
    assert len(fault) < 200


@given(st.text(max_size=100))
def test_no_value_raises(value):
    assert all(url in value for url in values.in_srcset(value))
    assert values.in_refresh(value) is None or values.in_refresh(value) in value
    assert all(link.target in value for link in values.in_link_field(value))
    assert len(mailto_fault(value)) < 500
