"""Tidy pages: `find_links` finds what lexbor finds."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from trio_crawler.page.html.fast_links import find_links
from trio_crawler.page.html.read import parse_html

URL = "http://e.test/"

# Two spaces or more stand between the pieces.
PLAIN = re.split(
    r"\s{2,}",
    """<p>  </p>  <div>  </div>  text  <b>  </b>  <br>  <a href="x1">  <a class="c" href="x2">
    </a>  <a href="x3" title="t">  <li id="i">  <img src="?a=b">  <img alt="it's">  <!-- c -->
    <!doctype html public "-//x">  <area href="x4">  <script>"</a"</script>  <tt>
    <script async src="s"></script>  <style>p{}</style>  <title>a&amp;b</title>  <base href="/d/">
    <TITLE>T</TITLE>  <svg><path d="m"/></svg>  <select><option></select>
    <template><p></template>  <i>""",
)
ODD = re.split(
    r"\s{2,}",
    """<p ="b= ">  x">  <p a=b "c= ">  <p a=" " b=' '>  "  '  <  >  =  </  <!-- -->  --!>  <!-->
    y>  <a href='y1'>  <a href=y2>  <A HREF="y3">  <a hreflang="x" href="y4">  <a/href="y5"/>
    <a href>  <a href="y6"="z">  <a x=">" href="y7">  <p a="<a href=no>">  <svg>  </svg>
    <math>  </math>  <template>  </template>  <select>  </select>  <script>  </script>
    <script><!--  </script x>
    <title>  </title>  <title a="x>y">  <textarea>  </textarea>  <style>  </style>  <iframe>  <xmp>
    </iframe>  </xmp>  <frameset>  <plaintext>  <?x  <!x "y  a < b  &amp;  <title/>  <desc>  <g>
    <a href="?a=1&copy=2&lt;">  <![CDATA[  ]]>  <noscript>  </noscript>  <a x="1"  <a x='2'""",
)


def by_lexbor(text: str) -> tuple[set[str], str, str | None]:
    tree = LexborHTMLParser(text)
    hrefs = {node.attributes["href"] or "" for node in tree.css("a[href], area[href]")}
    based = any("href" in node.attributes for node in tree.tags("base"))
    titles = [" ".join(node.text().split()) for node in tree.tags("title")]
    return hrefs, URL + "d/" if based else URL, (titles[0] if titles else "") or None


def pages(pieces: list[str], longest: int) -> st.SearchStrategy[str]:
    chosen = st.lists(st.sampled_from(pieces), max_size=longest)
    return chosen.map(lambda several: "".join(several).replace("\t", " "))


@settings(max_examples=1_500, deadline=None)
@given(pages(PLAIN, 12) | pages(PLAIN + ODD, 5) | pages(ODD, 4))
@example('<p ="b= ">x"><a href="no">">')
@example('<p a=b "c= "><a href="no">">')
@example('<p title="<!-- "><a href="no">-->">')
@example('<a href="x" title="><a href=no>">')
@example('<a href="x" href="no">')
@example("<title>a</titles>b</title>")
@example('<!-- --!><a href="x">-->')
@example('<!--><a href="x">-->')
@example('<!---><a href="x">-->')
def test_a_tidy_page_is_read_as_lexbor_reads_it(text):
    if find_links(text) is not None:
        page = parse_html(text, URL)
        assert (set(page.hrefs), page.base, page.title) == by_lexbor(text)


@given(pages(PLAIN, 20))
def test_ordinary_markup_is_tidy(text):
    assert find_links(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "<p title='a > b'>",
        '<p title="<i>">',
        "<p <a href=x>>",
        '<a href="x" <a href=y>>',
        "<p",
        "a < b <i>",
        "<svg><title>x</title></svg>",
        "<svg><a href=x></svg>",
        "<svg>",
        "<select><a href=x></select>",
        "<template><a href=x></template>",
        "<script><!--</script>",
        "<script>",
        "<title>",
        "<!-- ",
        "<frameset>",
        "<plaintext>",
    ],
)
def test_a_page_that_needs_another_reader_is_not_tidy(text):
    assert find_links("<p>" + text) is None


def test_the_order_of_the_links_is_that_of_the_page():
    text = '<a href=1><a href=\'2\'><area href=3><a href="4"><a name=n><a href="5" id=i><a href=6>'
    found = find_links(text)
    assert found is not None
    assert found.hrefs == list("123456")


@pytest.mark.parametrize(
    "piece",
    [
        "<!--",
        "<script>",
        "<svg>",
        "<select><p>",
        "<title>",
        '<a x="y" ',
        '<a x="y">',
        '="',
        "='",
        "= ",
        "='=\"",
        "<!--x--",
        "<script></script ",
        '<a href="x" title=',
        '<p a="b=c">',
    ],
)
def test_a_page_that_is_not_tidy_is_rejected_in_linear_time(piece):
    """Quadratic time would be minutes; the bound leaves room for slow CI."""
    text = piece * (1_000_000 // len(piece))
    started = time.process_time()
    find_links(text)
    find_links(text + '"' + "<p>" * 10)
    assert time.process_time() - started < 4


def test_a_very_long_page_is_left_to_the_tokenizer():
    assert find_links("<p>" * 1_000_000) is None
