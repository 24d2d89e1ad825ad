"""Metadata of pages and links: canonical URLs, meta robots, rel=nofollow."""

from __future__ import annotations

import re
import time

import pytest
from cases import examples, for_each
from hypothesis import example, given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from trio_crawler.page.html.head import (
    HeadMetadata,
    canonical_in_headers,
    keywords_of,
    parse_head,
)
from trio_crawler.page.read import Facts, parse_html, read, usual_head

URL = "http://e.test/a/b.html"
# The beginning of a page that decides which reader reads it.
READERS = {"scanner": "", "tokenizer": "<template><a></template>"}


def facts(markup: str, media: str = "text/html", agent: str = "") -> Facts:
    return read(markup.encode("utf-8", "surrogatepass"), media, URL, agent=agent)


@for_each(
    "head, expected",
    [
        ('<link rel="canonical" href="/x#f">', "http://e.test/x"),
        ("<LINK HREF='HTTPS://E.org' REL='Canonical'>", "https://e.org/"),
        ("<Link rel=canonical href=c>", "http://e.test/a/c"),
        ("<link/rel='canonical'/href='/x'/>", "http://e.test/x"),
        ('<link rel="a\ncanonical\tb" type=x href="/x">', "http://e.test/x"),
        ("<link rel=\"c&#97;nonical\" href='/?a&amp;b'>", "http://e.test/?a&b"),
        ("<link rel=&#x43;ANONICAL href=/x>", "http://e.test/x"),
        ("<link rel=canonical href=c><base href=/d/>", "http://e.test/d/c"),
        ("<link rel=canonical rel=next href=/x href=/y>", "http://e.test/x"),
        ("<link rel=next rel=canonical href=/x>", None),
        ("<link rel=canonicals href=/x>", None),
        ("<link rel='a\u00a0canonical' href=/x>", None),
        ("<link rel=canon\u0130cal href=/x>", None),
        ("<link rel='' title=canonical href=/x>", None),
        ("<a rel=canonical href=/x>", None),
        ("<meta name=canonical content=/x>", None),
        ("<link rel=canonical>", None),
        ("<link rel=canonical href>", None),
        ("<link rel=canonical href=' '>", None),
        ("<link rel=canonical href='http://[x'>", None),
        ("<link rel=canonical href='mailto:a@b'>", None),
        ("<link rel=canonical href=/x><link rel=canonical href=./../x#f>", "http://e.test/x"),
        ("<link rel=canonical href=/x><link rel=canonical href=/y>", None),
        ("<link rel=canonical href=''><link rel=canonical href=/y>", "http://e.test/y"),
        ("<link rel=canonical href=http://u:p@e.test/>", "http://e.test/"),
    ],
)
def test_a_canonical_url_is_read_however_it_is_written(head, expected):
    for page in (f"<head>{head}</head><body>", head, f"<HEAD>{head}</HEAD><BODY>"):
        assert facts(page).canonical == expected


@for_each(
    "head, expected",
    [
        ("<meta name='robots' content='noindex, nofollow'>", ("noindex, nofollow",)),
        ("<META CONTENT=NoIndex NAME=ROBOTS>", ("NoIndex",)),
        ("<meta name=SomeBot content=a><meta content=b name=robots>", ("a", "b")),
        ("<meta name=robots content=a><meta name=robots content=a>", ("a",)),
        ("<meta name=r&#111;bots content='a&#44;b'>", ("a,b",)),
        ("<meta name=some&#66;ot content=a>", ("a",)),
        ("<meta name=otherbot content=a><meta name=robotsx content=a>", ()),
        ("<meta property=robots content=a><meta name=robots>", ()),
        ("<meta name=x name=robots content=a><link name=robots content=a>", ()),
        ("<meta name=robots content='a\0'>", ("a\ufffd",)),
    ],
)
def test_meta_robots_are_those_for_all_and_those_for_the_agent(head, expected):
    for page in (f"<head>{head}</head><body>", head):
        assert facts(page, agent="somebot").meta_robots == expected


def test_what_looks_like_the_end_of_a_head_in_a_value_ends_nothing():
    found = facts('<link rel=canonical href="/x</head><body>y"></head><body>')
    assert found.canonical == "http://e.test/x%3C/head%3E%3Cbody%3Ey"


def test_without_an_agent_only_meta_robots_for_all_count():
    assert facts("<meta name='' content=a><meta name=x content=b>").meta_robots == ()


CANONICAL = "<link rel=canonical href=/x>"


@for_each(
    "before",
    [
        "<!-- {} -->",
        "<!-- </head> <body> -->",
        "<!--></head><!---->",
        "<!-- --!>",
        "<script>{}</script>",
        "<script>'</head><body>'</script>",
        "<script><!-- <script>{}</script> {} --></script>",
        "<style></head><body>{}</style>",
        "<title>The </head> tag {}</title>",
        "<noscript>{}<img src=x></noscript>",
        "<noframes>{}</noframes>",
        "<template><p>{}<template>{}</template>{}<script></template></script></template>",
        "<template><svg><title></template>",
        "<meta content='</head><p>'>",
        '<meta content="{}">',
        "<?xml version='1.0'?><!x>",
        "</p></link></a x='>'></head></title>",
        "<base href=/d/><basefont><bgsound><html lang=en>",
        "\n<!doctype html>\t<html>\f<head x='>'>\r ",
    ],
)
def test_other_elements_of_a_head_neither_contain_metadata_nor_end_it(before):
    other = "<link rel=canonical href=/other><meta name=robots content=no>"
    for end in ("</head><body>", ""):
        page = facts(before.format(*[other] * 3) + CANONICAL + end)
        assert (page.canonical, page.meta_robots) == ("http://e.test/x", ())


@for_each(
    "before",
    "<body> </head><body> text <p> </body> <br> </br> <svg> <img> < <!-- <script> <title> "
    "<template> <meta/a=' <noscript> </head>x".split(),
)
def test_metadata_behind_the_head_is_ignored(before):
    page = facts(before + CANONICAL + "<meta name=robots content=a></head><body>")
    assert (page.canonical, page.meta_robots) == (None, ())


PIECES = re.split(
    r"\s{2,}",
    """<link rel="canonical" href="1">  <LINK rel=canonical href=2>
    <link href='3' rel='x canonical'>  <link rel="next" href="n">
    <meta name="robots" content="r1">  <Meta Content=r2 name=ROBOTS>
    <meta name=bot content=r3>  <meta name="r&#111;bots" content="r&amp;4">  <meta charset="utf-8">
    <!doctype html>  <html>  <head>  </head>  <body>  <!-- <meta name=robots content=c> -->  <!-->
    <title>t  <title>  </title>  <script>  </script>  <style>  </style>  <template>  </template>
    text  <p>  <base href="/d/">  <x a="  ">  <  >  '  "  </p>  </br>  <svg>  </svg>  <?x  <!x  -->
    <link rel="c&#x61;nonical" href="4"  <script>"</head><body>"</script>  <noframes>""",
)


@examples(600)
@given(st.lists(st.sampled_from([*PIECES, "\n", "\t"]), max_size=8).map("".join))
@example('<head><script>"</head><body>"</script><meta name=robots content=a></head><body>')
@example("<head><!-- </head><body> --><meta name=robots content=a></head><body>")
@example("<head></head><body><meta name=robots content=a></head><body>")
@example('<head><title>é</title><meta name="robots" content="é"></head><body>')
@example('<head><meta name="robots" content="a" x="</head><body>"></head><body>')
@example("<head>" + "<meta name=robots content=a>" * 9 + "</head><body>")
def test_a_head_is_read_as_lexbor_reads_it(text):
    tree = LexborHTMLParser(text)
    links = [node.attributes for node in tree.css("head link")]
    metas = [node.attributes for node in tree.css("head meta")]
    hrefs = [link["href"] for link in links if "canonical" in (link.get("rel") or "").split()]
    contents = [
        meta["content"] for meta in metas if (meta.get("name") or "").lower() in ("robots", "bot")
    ]
    found = parse_head(text, agent="BOT")
    assert found.canonicals == tuple(dict.fromkeys(hrefs))
    assert found.robots == tuple(dict.fromkeys(contents))
    assert usual_head(text.encode(), keywords_of("BOT")) in (found, None)


def test_a_usual_head_with_metadata_is_read_without_the_rest_of_the_page():
    head = '<head><title>é</title><link rel="canonical" href="/é"><meta name="robots" content="a">'
    found = usual_head(f"{head}</head><body>".encode(), keywords_of(""))
    assert found == HeadMetadata(("/é",), ("a",))


@pytest.mark.parametrize("media", ["application/xhtml+xml", "text/html"])
def test_elements_of_xhtml_without_content_hide_nothing(media):
    head = '<title/><script src="x"/><link rel="canonical" href="/x"/>'
    page = facts(f"<?xml version='1.0'?><html><head>{head}</head><body/></html>", media)
    assert page.canonical == ("http://e.test/x" if media != "text/html" else None)


@for_each(
    "link, expected",
    [
        ('<a href="/x" rel="nofollow">', True),
        ('<a class="c" rel="nofollow" href="/x">', True),
        ("<A REL=NOFOLLOW HREF=/x>", True),
        ("<a rel='ugc\nNoFollow\tnoopener' href='/x'>", True),
        ('<a href="/x" title="t" rel="no&#102;ollow">', True),
        ('<a href="/x" rel = "nofollow" rel="">', True),
        ('<a href="/x" target=_blank data-x1="" rel=nofollow>', True),
        ("<area rel=nofollow href=/x>", True),
        ('<a href="/x" rel="" rel="nofollow">', False),
        ('<a rel="noopener" href="/x" rel="nofollow">', False),
        ('<a href="/x" rel="ugc sponsored">', False),
        ('<a href="/x" rel="nofollows">', False),
        ('<a href="/x" rel="nofollow\u00a0">', False),
        ('<a href="/x" title="nofollow" data-rel="nofollow">', False),
        ('<a href="/x" title="rel=nofollow">', False),
        ('<a href="/x" relx="nofollow">', False),
        ('<a href="/x" rel>nofollow', False),
        ('<a href="/x">rel="nofollow"', False),
        ('<a href="/x" rel="nofollow"><a href="/x#f">', False),
        ('<a href="/x"><a rel="nofollow" href="../x">', False),
        ("<a href=/x><a rel=nofollow href=/x>", False),
    ],
)
@for_each("reader", READERS)
def test_a_link_is_nofollow_if_all_that_lead_to_it_are(link, expected, reader):
    text = READERS[reader] + link
    page = facts(text)
    assert page.links == ("http://e.test/x",)
    assert page.nofollow == (frozenset(page.links) if expected else frozenset())


def test_nofollow_links_come_last():
    page = facts("<a href=/1 rel=nofollow><a href=/2><a href='http://[' rel=nofollow><a href=/3>")
    assert page.links == ("http://e.test/2", "http://e.test/3", "http://e.test/1")
    assert page.nofollow == {"http://e.test/1"}
    assert page.malformed == ("http://[",)


@pytest.mark.parametrize("reader", READERS)
def test_nofollow_links_count_for_the_limit(reader):
    links = "".join(f"<a href={n}{' rel=nofollow' * (n < 3)}>" for n in range(6))
    page = read((READERS[reader] + links).encode(), "text/html", URL, max_links=4)
    assert (len(page.links), page.beyond) == (4, 2)
    assert page.nofollow < set(page.links)


ATTRIBUTES = re.split(
    r"\s{2,}",
    """rel="nofollow"  rel="noopener"  rel=nofollow  REL='NOFOLLOW x'  rel  rel=  relx="nofollow"
    href="/x"  href='/x'  href=/x  HREF="/y"  href  title="w"  title="&amp;"  data-a1="w"  /
    rel="no&#102;ollow"  rel="x&nofollow"  hreflang="w"  class="c"  rel = "nofollow"  x=w""",
)


@pytest.mark.slow
@examples(600)
@given(st.lists(st.lists(st.sampled_from(ATTRIBUTES), max_size=4).map(" ".join), max_size=3))
@example(['HREF="/y" href="/x"'])
@example(['rel="noopener" href="/x" rel="nofollow"'])
@example(['href="/x" rel="noopener" rel="nofollow"'])
def test_every_reader_finds_the_same_links_to_be_nofollow(tags):
    markup = "".join(f"<a {tag}>" for tag in tags)
    nodes = [node.attributes for node in LexborHTMLParser(markup).tags("a")]
    with_href = [node for node in nodes if "href" in node]
    unfollowed = ["nofollow" in (node.get("rel") or "").lower().split() for node in with_href]
    for start in READERS.values():
        page = parse_html(start + markup, URL)
        pairs = zip(with_href, unfollowed, strict=True)
        expected: tuple[set[str], set[str]] = (set(), set())
        for node, is_nofollow in pairs:
            expected[is_nofollow].add(node["href"] or "")
        assert (set(page.hrefs), set(page.nofollow_hrefs)) == expected


@for_each(
    "fields, expected",
    [
        (['<http://e.test/x>; rel="canonical"'], "http://e.test/x"),
        (["</x#f>;rel=canonical"], "http://e.test/x"),
        (["<x>; REL = Canonical"], "http://e.test/a/x"),
        (['</1>; rel=next, </x>; rel="prev canonical", </2>; rel=last'], "http://e.test/x"),
        (["</1>; rel=next", "</x>; rel=canonical"], "http://e.test/x"),
        (
            ['</x?a,b;c>; title="a, </y>; rel=\\"canonical"; rel=canonical'],
            "http://e.test/x?a,b;c",
        ),
        (["</x>; title=a b; ;; rel=canonical;"], "http://e.test/x"),
        (['</x>; rel="canonical'], "http://e.test/x"),
        (["</x>; rel=canonical, </y>; rel=canonical"], None),
        (["</x>; rel=canonical", "<http://e.test/x>; rel=canonical"], "http://e.test/x"),
        (["</x>; rel=next; rel=canonical"], None),
        (["</x>; rel=canonicals", "</x>; rev=canonical", "</x>; x=rel=canonical"], None),
        (["</x>; rel=canonical; anchor=/other"], None),
        (
            ["</x>; rel=canonical; anchor='http://['", '</y>; rel=canonical; anchor="http://["'],
            None,
        ),
        (
            ["</x>; rel=canonical; anchor=''", '</y>; rel=canonical; anchor="#f"'],
            "http://e.test/y",
        ),
        (["<mailto:a@b>; rel=canonical", "<http://[x>; rel=canonical", "<>; rel=canonical"], None),
        (["/x; rel=canonical", "</x rel=canonical", ",,;", "", '"', "<>"], None),
    ],
)
def test_a_canonical_url_is_read_from_link_headers(fields, expected):
    assert canonical_in_headers(fields, URL) == expected


@given(st.lists(st.text(alphabet='<>;,="\\ \t/:[relcanonical', max_size=40)))
def test_no_link_header_raises(fields):
    canonical_in_headers([*fields, *(f"<x>;rel=canonical;{field}" for field in fields)], URL)


@given(
    st.lists(st.sampled_from(["<meta", "<link", " rel=canonical", " name=robots", ">", *PIECES]))
)
def test_no_head_raises(pieces):
    parse_head("".join(pieces) + "\ud800", agent="\ud800")
    usual_head(f"<head>é{''.join(pieces)}</head><body>".encode(), keywords_of("\ud800"))


def spent(text: str) -> float:
    times = []
    for _ in range(3):
        started = time.process_time()
        parse_head(text, agent="bot")
        usual_head(text.encode(), keywords_of("bot"))
        times.append(time.process_time() - started)
    return min(times)


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        "<meta name=robots content=x>",
        "<link rel=canonical href=x>",
        "<meta name=robots ",
        "<meta a='",
        '<meta a="b" ',
        "<link rel=canonical =",
        "<!-- robots",
        "<!-- robots -->",
        "<!--robots--",
        "<script>",
        "<script></script ",
        "<script><!--",
        "<template>",
        "<template></template>",
        "<template><svg>",
        "<title></titl",
        "<style></style>",
        "</a b='",
        "</head ",
        "</head>\n",
        "&#0",
        "<?robots",
        "robots ",
    ],
)
def test_the_time_for_a_head_grows_with_its_length_and_no_faster(piece):
    """Quadratic time would be sixteen times as long; ten leaves room for slow CI."""
    for start, end in ("", "robots"), ("<!", "></head><body>"):
        one, four = (
            spent(start + piece * (length // len(piece)) + end) for length in (75_000, 300_000)
        )
        assert four < 10 * one + 0.01


@for_each(
    "piece",
    ["<", "<x>", '"', "\\", '\\"', ";", "; ", ";=", "rel=", 'a="', "a ", ",", "<x>;a=b,", "\t="],
)
def test_the_time_for_a_link_header_grows_with_its_length_and_no_faster(piece):
    started = time.process_time()
    canonical_in_headers(["<x>" + piece * (100_000 // len(piece)) + "="], URL)
    assert time.process_time() - started < 1
