"""The facts of a page: what it says of itself."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from trio_crawler.facts import PageFacts
from trio_crawler.page.facts import page_facts

URL = "https://site.test/dir/page"


def facts(html: str, kind: str = "text/html", **headers: str) -> PageFacts:
    body = html.encode("utf-8", "replace")
    return page_facts(body, kind, "utf-8", URL, httpx.Headers(headers), fetched=1.0)


@for_each(
    "html, name, value",
    [
        ('<html lang="de-AT"><p>', "lang", "de-AT"),
        ("<!-- <html lang=xx> --><!doctype html>\n<HTML class=a lang=en>", "lang", "en"),
        ("<p><html lang=en>", "lang", ""),
        ("<h1>A &amp; <b>b</b><br>c</h1><h1 class=x>\n D\n</h1>", "h1", ("A & b c", "D")),
        ("<h1>Title<a href=#t>¶</a></h1>", "h1", ("Title¶",)),
        ("<h1>A<script>no()</script><!-- no --></h1>", "h1", ("A",)),
        ("<h1><a href=/><img src=l.png alt='The logo'></a></h1>", "h1", ("The logo",)),
        ("<h1>One<h2>Two</h2>", "h1", ("One",)),
        (
            "<!-- <h1>A</h1> --><script>'<h1>B</h1>'</script><template><h1>C</h1></template>",
            "h1",
            (),
        ),
        ("<h1>x</h1>" * 12, "h1", ("x",) * 10),
        ("<h1>x</h1>" * 12, "h1_count", 12),
        ("<h1></h1>", "h1", ("",)),
        ("<h10>no</h10>", "h1_count", 0),
        ('<meta name="Description" content=" a&amp;b \n c ">', "description", "a&b c"),
        ("<meta name=description content=a><meta name=description content=b>", "description", "a"),
        ("<meta name=description>", "description", None),
        ("<p>", "description", None),
        (
            "<meta property='og:title' content=A><meta property=og:title content=B>"
            "<meta name=twitter:card content=C><meta name=author content=D>",
            "social",
            {"og:title": "A", "twitter:card": "C"},
        ),
        (
            "<link rel='alternate' hreflang=de href=de#a><link rel=alternate href=feed>"
            "<link rel=alternate hreflang=x-default href='/'>",
            "hreflang",
            (("de", "https://site.test/dir/de"), ("x-default", "https://site.test/")),
        ),
        (
            "<base href=/other/><link rel=alternate hreflang=de href=de>",
            "hreflang",
            (("de", "https://site.test/other/de"),),
        ),
        ("<link rel=alternate hreflang=de href='https://[x'>", "hreflang", ()),
        (
            '<script type="application/ld+json">{"@type": "A"}</script>'
            '<script type="application/ld+json">[{"@graph": [{"@type": ["B", "C"]}]}, 1]</script>',
            "json_ld",
            ("A", "B", "C"),
        ),
        (
            '<script type="application/ld+json">{"@type": "A",}</script>',
            "json_ld_errors",
            ("trailing comma in object (byte 14)",),
        ),
        ('<script type="application/ld+json">' + "[" * 100_000 + "</script>", "json_ld", ()),
        ("<title>no</title><p>one two<br>three<script>no</script> <b>4</b>", "words", 4),
        ("<img src=a><img src=b alt=''><img src=c alt=c><svg><image href=d></svg>", "images", 3),
        ("<img src=a><img src=b alt=''><img src=c alt=c>", "images_without_alt", 1),
        (
            "<img src=http://a/><a href=http://b/><link rel=stylesheet href='HTTP://c/'>"
            "<link rel=canonical href=http://d/><script src=//e/></script><img src=http://a/>",
            "insecure",
            ("http://a/", "HTTP://c/"),
        ),
        ("<div id=root></div><script src=a.js></script>", "scripted", True),
        ('<div id="root"></div><script src=a.js></script>', "scripted", True),
        ("<app-root></app-root><script src=a.js></script>", "scripted", True),
        ("<div id=root>A</div><script src=a.js></script>", "scripted", False),
        ("<div id=root></div>", "scripted", False),
        ("<div id=root></div><script></script>" + "<p>word" * 10, "scripted", False),
    ],
)
def test_a_fact_is_read_as_a_browser_would_show_it(html: str, name: str, value: Any) -> None:
    assert getattr(facts(html), name) == value


def test_only_a_good_page_in_html_has_facts_of_its_content():
    html = "<h1>A</h1>"
    served = {"server": "s"}
    for kind in ("", "application/pdf", "application/xml"):
        assert facts(html, kind, Server="s", Date="x") == PageFacts(1.0, served)
    assert facts(f"<html xmlns='http://www.w3.org/1999/xhtml'>{html}</html>", "text/xml").h1


def test_a_header_has_at_most_500_characters():
    assert facts("", **{"Content-Security-Policy": "x" * 501}).headers == {
        "content-security-policy": "x" * 500
    }


@pytest.mark.parametrize(
    "piece",
    [
        "<h1 ",
        "<h1>",
        "<h1><a ",
        "<!--",
        "<script>",
        "<div id=a>",
        "<b x=1><p>",
        "<a-b>",
        "<img alt='",
        "<meta content=",
        "</h1",
        "<html ",
        "&#60;h1>",
        "<h1><!--",
        "<h1><script",
    ],
)
def test_the_time_is_linear_for_every_page(piece: str):
    def took(size: int) -> float:
        html = piece * (size // len(piece))
        began = time.process_time()
        facts(html)
        return time.process_time() - began

    # A quadratic reader takes 64 times as long, and minutes for 1 MiB.
    assert took(1 << 20) < 16 * max(took(1 << 17), 0.05)


pieces = st.sampled_from(
    "<h1 </h1> <!-- --> <script> </script> <html lang=a <meta name=description content= <img alt "
    '<template> </template> \' " > & &amp; \0 \ud800 <svg> </svg> <base href= {"@type":"\\ud800"} '
    '<script type="application/ld+json"> x <link rel=alternate hreflang=a href=b>'.split(" ")
)


@given(st.lists(pieces, max_size=30).map("".join))
def test_no_page_raises(html: str):
    facts(html)
