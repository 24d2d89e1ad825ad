"""Anchors: the text of each link, the same from every reader of HTML."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping

import pytest
from cases import examples, for_each
from hypothesis import example, given
from hypothesis import strategies as st

from trio_crawler import Reason
from trio_crawler.model import Anchor
from trio_crawler.page import accelerator
from trio_crawler.page.html.anchors import MAX_TEXT, WINDOW, AnchorCollector
from trio_crawler.page.read import read

URL = "http://e.test/a/b.html"
X = "http://e.test/x"
# Whether the tags of a page are found by the compiled scanner, if there is one.
READERS = {"compiled": accelerator.tags, "python": None}


@pytest.fixture(params=READERS)
def reader(request, monkeypatch):
    monkeypatch.setattr(accelerator, "tags", READERS[request.param])


def anchors(markup: str, media: str = "text/html") -> Mapping[str, Anchor]:
    body = markup.encode("utf-8", "surrogatepass")
    return read(body, media, URL, anchors=True).anchors


TEXTS = [
    ("<a href=/x>text</a>", "text"),
    ('<a href="/x">text</a>', "text"),
    ('<a class="c" href="/x" title="t">text</a>', "text"),
    ("<A HREF='/x'>text</A >", "text"),
    ('<a href="/x">a &amp; b&eacute; &lt;i&gt;</a>', "a & b\u00e9 <i>"),
    ("<a href=/x>a &lt; b &amp</a>", "a < b &"),
    ('<a href="/x"> \n a \t b\r\n</a>', "a b"),
    ('<a href="/x">a  b</a>', "a b"),
    ('<a href="/x">\u00a0a\u2003&nbsp;b\u3000</a>', "a b"),
    ('<a href="/x">a\0b</a>', "a\ufffdb"),
    ('<a href="/x">\u4e2d\u6587 \U0001f600</a>', "\u4e2d\u6587 \U0001f600"),
    ('<a href="/x">the <b>bold</b> w<i class="c">or</i>d</a>', "the bold word"),
    ('<a href="/x"><abbr>HTML</abbr></a>', "HTML"),
    ('<a href="/x">a<br>b<br/>c</a>', "a b c"),
    ('<a href="/x"><h3>Name</h3><p>What it is</p></a>', "Name What it is"),
    ('<a href="/x">a<!-- no -->b</a>', "ab"),
    ('<a href="/x">a<!-- </a> -->b</a>', "ab"),
    ('<a href="/x">a<script>no("</a>")</script>b</a>', "ab"),
    ('<a href="/x">a<style>p{}</style>b</a>', "ab"),
    ('<a href="/x">a<template><p>no</template>b</a>', "ab"),
    ('<a href="/x"><svg><path d="m"/></svg>b</a>', "b"),
    ('<a href="/x"><img src="s" alt="A &amp; b"></a>', "A & b"),
    ("<a href=/x><IMG ALT=' a  b ' SRC=s></a>", "a b"),
    ('<a href="/x"><img alt="a"><img alt="b"><img alt="a"></a>', "a b"),
    ('<a href="/x"><img src="?a=b" alt="no">text</a>', "text"),
    ('<a href="/x"> <img src="s"> </a>', ""),
    ('<a href="/x"></a>', ""),
    ('<a href="/x">one<a href="/y">two</a>', "one"),
    ('<a href="/x">one<a name="n">two</a>', "one"),
    ('<a href="/x">one<p>two', "one two"),
    ('<a href="/x">one</b></a>two', "one"),
    ('<a href="/x">a<meta content="?a=b">b</a>', "ab"),
    ('<a href="/x" rel="nofollow">text</a>', "text"),
    ('<a href="/x#f">text</a>', "text"),
    ('<a href="/x"></a><a href="/x"> </a><a href="../x">b</a><a href="/x">c</a>', "b"),
    ('<a href="/x"></a><a href="/x#1"><b>b</b></a><a href="/x">c</a>', "b"),
    ('<a href="/x">a</a><a href="/x">b</a>', "a"),
    ('<a href="/x"></a><a href="/x" rel="nofollow">b</a>', "b"),
    ('<a href="/x"></a><a href="/x">a</a><a href="../x">b</a>', "a"),
    ('<a href="/x"></a><a href="../x"></a><a href="../x">a</a><a href="/x">b</a>', "a"),
]


@pytest.mark.usefixtures("reader")
@for_each("markup, text", TEXTS)
def test_the_text_of_a_link_is_what_a_reader_sees(markup, text):
    assert anchors(markup)[X] == Anchor("a", text)


@pytest.mark.usefixtures("reader")
@for_each(
    "markup, text",
    [
        ('<area href="/x" alt="a &amp; b">text', "a & b"),
        ("<AREA ALT=a HREF=/x>", "a"),
        ("<area shape=rect href=/x>text</area>", ""),
        ("<map><area alt=' a\n b ' href=/x></map>", "a b"),
    ],
)
def test_the_text_of_an_area_is_its_alt(markup, text):
    assert anchors(markup) == {X: Anchor("area", text)}


@pytest.mark.usefixtures("reader")
def test_the_first_anchor_with_a_text_counts_for_area_and_a():
    both = anchors("<area href=/x><a href=/x>text</a>")
    assert both == {X: Anchor("a", "text")}
    assert anchors("<a href=/x></a><area href=/x alt=t>") == {X: Anchor("area", "t")}
    assert anchors("<area href=/x><a href=/x></a>") == {X: Anchor("area", "")}


@pytest.mark.usefixtures("reader")
def test_every_link_and_every_malformed_href_has_an_anchor():
    markup = (
        "<a href=/1>a</a><a href='http://[x#f'>b</a><a href='/2' rel=nofollow>c</a>"
        "<a href='mailto:a@b'>d</a><area href='http://['><a href='http://[' rel=nofollow>e</a>"
    )
    facts = read(markup.encode(), "text/html", URL, anchors=True)
    texts = {url: anchor.text for url, anchor in facts.anchors.items()}
    assert texts == {
        "http://e.test/1": "a",
        "http://e.test/2": "c",
        "mailto:a@b": "d",
        "http://[x": "b",
        "http://[": "e",
    }
    assert set(texts) == {*facts.links, *facts.malformed}


@pytest.mark.usefixtures("reader")
def test_anchors_are_found_by_the_urls_that_their_links_resolve_to():
    markup = "<base href='mailto:x'><a href='#f'>a</a><a href='http://e.test/x#g'>b</a>"
    assert {text for _, text in anchors(markup).values()} == {"a", "b"}
    markup = "<base href=/d/><a href=x>a</a>"
    assert anchors(markup) == {"http://e.test/d/x": Anchor("a", "a")}


@pytest.mark.usefixtures("reader")
def test_links_that_differ_only_in_the_fragment_share_the_first_text():
    markup = "<a href='/x#1'></a><a href='/x#2'>first</a><a href='/x#3'>b</a><a href=/x>c</a>"
    assert anchors(markup) == {X: Anchor("a", "first")}
    assert anchors("<a href='/x#1'></a><area href=/x alt=t>") == {X: Anchor("area", "t")}


@pytest.mark.usefixtures("reader")
def test_a_fragment_and_an_empty_href_differ_if_the_base_is_not_http():
    markup = "<base href='mailto:x'><a href=''>none</a><a href='#f'>text</a>"
    texts = {url: anchor.text for url, anchor in anchors(markup).items()}
    assert texts == {"": "none", "mailto:x": "text"}


def test_a_text_is_read_once_for_all_fragments_of_a_page():
    text = "<a href='#0'>0</a>"
    collector = AnchorCollector(text)
    collector.add("#0", "a", text.index(">") + 1)
    for number in range(1, 100):
        # An anchor that is read there has no text, and would be added.
        collector.add(f"#{number}", "a", len(text))
    assert collector.found == {"#0": Anchor("a", "0")}


@pytest.mark.usefixtures("reader")
def test_a_long_text_is_cut_by_characters():
    for unit in ("\u4e2d", "&eacute;", "<b>x</b>", "w "):
        text = anchors(f'<a href="/x">{unit * 300}</a>')[X].text
        assert len(text) == MAX_TEXT - (unit == "w ")
    assert anchors(f"<a href=/x><img alt='{'x' * 300}'></a>")[X].text == "x" * MAX_TEXT
    assert anchors(f"<area href=/x alt='{'x' * 300}'>")[X].text == "x" * MAX_TEXT


@pytest.mark.usefixtures("reader")
def test_a_text_far_behind_its_link_is_ignored():
    tags = "<i></i>" * (WINDOW // 7 + 1)
    assert anchors(f"<a href=/x>{tags}text</a>")[X].text == ""
    assert anchors(f"<a href=/x>near{tags}text</a>")[X].text == "near"


@pytest.mark.usefixtures("reader")
def test_links_beyond_the_limit_have_no_anchors():
    markup = "".join(f"<a href={n}>{n}</a>" for n in range(9))
    body = markup.encode()
    facts = read(body, "text/html", URL, max_links=4, anchors=True)
    assert {url: text for url, (_, text) in facts.anchors.items()} == {
        f"http://e.test/a/{n}": str(n) for n in range(4)
    }
    assert facts.flaws == (Reason.TOO_MANY_LINKS,)


def test_the_anchors_of_xhtml_are_read():
    page = '<html><a href="/x"><b>a</b><img alt="no"/></a><a name="n"/>no</html>'
    assert anchors(page, media="application/xhtml+xml") == {X: Anchor("a", "a")}


def test_facts_differ_only_in_the_anchors_if_none_are_requested():
    for markup, _ in TEXTS:
        body = markup.encode()
        facts, plain = (read(body, "text/html", URL, anchors=asked) for asked in (True, False))
        assert plain.anchors == {}
        assert facts.anchors
        fields = [name for name in plain.__slots__ if name != "anchors"]
        assert [getattr(facts, f) for f in fields] == [getattr(plain, f) for f in fields]


PIECES = re.split(
    r"\s{2,}",
    """<a href="/1">  <a href='/2'>  <a class="c" href="/3#f">  <A HREF=/1>  <a name="n">  </a>
    </A>  </a >  text  w  &amp;  &nbsp;  <b>  </b>  <i class="c">  </i>  <p>  <br>  <div>  </div>
    <img src="s" alt="A">  <img alt='b'>  <IMG>  <area href="/4" alt="area">  <!-- c -->
    <!-- </a> -->  <script>"</a>"</script>  <style>s</style>  <svg><path/></svg>  <abbr>  </abbr>
    <a href="/5" rel="nofollow">  <a href="http://[">  <meta content="x">  <template><p></template>
    <article>  <address>  <select><option></select>""",
)


@examples(800)
@given(st.lists(st.sampled_from([*PIECES, " ", "\n"]), max_size=14).map("".join))
@example('<a href="/1"><img alt="A"><!-- c --><b>text<svg><path/></svg>w</b>')
def test_both_readers_find_the_same_anchors(markup):
    with pytest.MonkeyPatch.context() as patched:
        compiled = anchors(markup)
        patched.setattr(accelerator, "tags", None)
        assert anchors(markup) == compiled


HOSTILE = re.split(
    r"  ",
    """<a href=/  <a href='  <a href="/q">  '>  ">  <area href=x alt=  </a  <!--  -->  <script>"""
    """  </script>  <svg>  <title>  <textarea>  <template>  <img alt='  &  &#  <  >  \0  \ud800"""
    """  \u00a0  \x85  <plaintext>  <style>  <base href=  =  \"""",
)


@pytest.mark.slow
@examples(800)
@given(
    st.lists(st.sampled_from([*HOSTILE, *PIECES]) | st.text(max_size=300), max_size=20),
    st.sampled_from(["text/html", "application/xhtml+xml"]),
    st.sampled_from([0, 3, 100_000]),
)
def test_no_markup_raises_and_no_text_is_long(pieces, media, most):
    body = "".join(pieces).encode("utf-8", "surrogatepass")
    facts = read(body, media, URL, max_links=most, anchors=True)
    assert set(facts.anchors) == {*facts.links, *facts.malformed}
    for kind, text in facts.anchors.values():
        assert kind in ("a", "area")
        assert len(text) <= MAX_TEXT
        assert text == " ".join(text.split())


@given(st.binary(max_size=300))
def test_no_bytes_raise(body):
    read(b"<a href=/x>" + body, "", URL, anchors=True)


def spent(markup: str) -> float:
    times = []
    for _ in range(2):
        started = time.process_time()
        facts = read(markup.encode(), "text/html", URL, anchors=True)
        times.append(time.process_time() - started)
    assert facts.links
    return min(times)


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        "<a href=x>",
        "<a href=%d>",
        '<a href="%d">text',
        '<a href="x"></a>',
        "<a href=%d><b>",
        "<a href=%d><img alt='",
        '<a href="%d"><img alt="a">',
        "<a href=%d><!--",
        "<a href=%d><!-- -->",
        "<a href=%d><script>",
        "<a href=%d><script></script>",
        "<a href=%d></",
        "<a href=%d><",
        "<a href=%d>&",
        "<svg><a href=%d><style>",
        "<svg><a href=%d><template>",
        "<svg><a href=%d><!-- <a --><style>",
        "<math><a href=%d><textarea><a href=%d>",
        "<area href=%d alt='x'>",
        "<area href=%d alt=x ",
        "<a href=%d rel=nofollow>",
        "<b>",
        "<!--",
        "<img alt='x'>",
        "<b x='",
    ],
)
@pytest.mark.usefixtures("reader")
def test_the_time_for_anchors_grows_with_the_page_and_no_faster(piece):
    """Quadratic time would be sixteen times as long; ten leaves room for slow CI."""
    one, four = (
        spent(
            "<a href=first>"
            + "".join(piece.replace("%d", str(n)) for n in range(length // len(piece)))
        )
        for length in (30_000, 120_000)
    )
    assert four < 10 * one + 0.02


def test_100_000_links_without_end_tags_take_at_most_a_second():
    """To read a whole window for each link would be 400 MB; two seconds leave room for slow CI."""
    body = b"<a href=x>" * 100_000
    started = time.process_time()
    facts = read(body, "text/html", URL, anchors=True)
    assert time.process_time() - started < 2
    assert facts.anchors == {"http://e.test/a/x": Anchor("a", "")}
