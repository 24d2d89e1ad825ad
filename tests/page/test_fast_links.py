"""Tidy pages: `find_links` finds what lexbor and the tokenizer find."""

from __future__ import annotations

import re
import time

import pytest
from cases import for_each
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from trio_crawler.page.html import fast_links, tokenizer
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
    -->  <!-- <script  </script  <img alt="<-"  <img alt="<b>">  <meta content="a > b" x>
    <a href="?a=1&copy=2&lt;">  <![CDATA[  ]]>  <noscript>  </noscript>  <a x="1"  <a x='2'""",
)


# Where a script ends depends on the comments and scripts in it.
SCRIPT = ["<script>", "</script>", "<!--", "-->", "-", ">", "<", "--!>", "</script", " x=", "a"]


def by_tokenizer(text: str) -> tuple[list[str], str | None, str | None, list[str]]:
    tags = list(tokenizer.tags(text))
    links = [(nofollow, source) for name, source, nofollow, _ in tags if name in ("a", "area")]
    first = {name: source for name, source, *_ in reversed(tags)}
    nofollow = [source for each, source in links if each]
    hrefs = [source for each, source in links if not each]
    return hrefs, first.get("base"), first.get("title"), nofollow


def by_lexbor(text: str) -> tuple[set[str], str, str | None]:
    tree = LexborHTMLParser(text)
    hrefs = {node.attributes["href"] or "" for node in tree.css("a[href], area[href]")}
    based = any("href" in node.attributes for node in tree.tags("base"))
    titles = [" ".join(node.text().split()) for node in tree.tags("title")]
    return hrefs, URL + "d/" if based else URL, (titles[0] if titles else "") or None


def pages(pieces: list[str], longest: int) -> st.SearchStrategy[str]:
    chosen = st.lists(st.sampled_from(pieces), max_size=longest)
    return chosen.map(lambda several: "".join(several).replace("\t", " "))


@pytest.mark.slow
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


@pytest.mark.slow
@settings(max_examples=1_500, deadline=None)
@given(pages(SCRIPT, 12).map(lambda text: f"<script>{text}<a href=no></script><a href=x>"))
@example("<script><!--<script></script>--></script><a href=x>")
@example("<script><!-- <script></script><a href=no></script><a href=x>")
@example("<script><!--></script><a href=x>")
@example("<script><!--<script>--></script><a href=x>")
@example("<script><!-- <scripts></script><a href=x>")
@example("<script></script><script></script ")
def test_a_script_ends_where_it_ends_for_the_tokenizer(text):
    found = find_links(text)
    if found is not None:
        assert found[:4] == by_tokenizer(text)


@pytest.mark.parametrize(
    "script",
    ["<!--", "<!-- -->", "<!--//--><![CDATA[//><!--\n//--><!]]>", "<!-- <script></script> -->"],
)
def test_a_page_with_a_comment_in_a_script_is_tidy(script):
    found = find_links(f"<script>{script}</script><a href='x'>")
    assert found is not None
    assert found.hrefs == ["x"]


@pytest.mark.parametrize("text", ['<p>a = "<b>"</p>', "a = '<i>", '<img alt="<-">', "<p>a > b"])
def test_signs_in_a_text_or_in_an_image_are_tidy(text):
    assert find_links(text) is not None


@pytest.fixture
def short_slices(monkeypatch):
    monkeypatch.setattr(fast_links, "_SLICE", 40)


@pytest.mark.usefixtures("short_slices")
@settings(
    max_examples=700,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(pages(PLAIN, 20) | pages(PLAIN + ODD, 20))
def test_a_page_in_slices_is_read_as_the_tokenizer_reads_it(text):
    found = find_links(text)
    if found is not None:
        hrefs, base, title, nofollow = by_tokenizer(text)
        # A longer page than one slice has each href once.
        once = [list(dict.fromkeys(each)) for each in (hrefs, nofollow)]
        assert list(dict.fromkeys(found.hrefs)) == once[0]
        assert (found.base, found.title) == (base, title)
        assert list(dict.fromkeys(found.nofollow_hrefs)) == once[1]


@pytest.mark.usefixtures("short_slices")
def test_a_slice_ends_before_a_link_and_in_no_script():
    page = "<a href=1><script>a<b<c</script>"
    found = find_links(page * 3 + "<title>t</title><base href=b>")
    assert found is not None
    assert found[:4] == (["1"], "b", "t", [])


@given(pages(PLAIN, 20))
def test_ordinary_markup_is_tidy(text):
    assert find_links(text) is not None


@for_each(
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
        "<script><!--<script></script>",
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
        '<img a="',
        '<img a=" b=" c="',
        "<script><!--",
        "<script><!--<script>",
        "<script><!--<script></script>",
        "<script><!---->",
        "-->",
        "-",
        '<p>="',
    ],
)
def test_a_page_that_is_not_tidy_is_rejected_in_linear_time(piece):
    """Quadratic time would be minutes; the bound leaves room for slow CI."""
    text = piece * (1_000_000 // len(piece))
    started = time.process_time()
    find_links(text)
    find_links(text + '"' + "<p>" * 10)
    assert time.process_time() - started < 4


def test_a_very_long_page_is_left_to_the_tokenizer_with_its_anchors_or_too_many_links():
    text = "<p>" * 400_000 + "<a href=1><a href=2><a href=2>"
    found = find_links(text)
    assert found is not None
    assert found.hrefs == ["1", "2"]
    assert find_links(text, anchors=True) is None
    assert find_links(text, max_links=2) is not None
    assert find_links(text, max_links=1) is None
    assert find_links("<a>" * 499_999) is not None
    assert find_links("<a>" * 500_000) is None
