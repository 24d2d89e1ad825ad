"""The scan of a page finds what the exact readers of links and places find."""

from __future__ import annotations

import time

import httpx
import pytest
from cases import examples, for_each
from hypothesis import given
from hypothesis import strategies as st

from trio_crawler.link import LinkKind
from trio_crawler.page import accelerator
from trio_crawler.page.fragments import places_of, read_targets
from trio_crawler.page.html.links import read_links, scan
from trio_crawler.page.link_targets import Pointed, fragments_in, merge
from trio_crawler.page.links import PageLinks, pointed_of, read_body_links, read_page_links
from trio_crawler.page.read import read

URL = "https://example.org/a/b"
HTML = httpx.Headers({"content-type": "text/html; charset=utf-8"})
ENCODINGS = "utf-8", "windows-1252", "gbk"
# Separated by lines and by ¦; a blank counts.
PIECES = (
    r"""
<¦>¦</¦/>¦"¦'¦=¦ ¦&amp;¦&#x41;¦x¦é¦-->¦<!--¦<!>¦<?x>¦</p>¦<![CDATA[¦]]>¦é=1¦#¦<p¦<a¦<A¦</a>
 href="p"¦ href="p?é"¦ href='#i'¦ href=q¦ HREF="r#é"¦ href=""¦ id="i"¦ id=j¦ ID='k'¦ name="n"
 rel="nofollow"¦ rel="next"¦ class="c"¦ style="a:url(u)"¦ cite=c¦ style="a:b"¦ background=g
 hidden¦ src="s"¦ src="s?é"¦ srcset="m 1x, n 2x"¦ y2="1"¦<img¦<link rel=stylesheet¦<script>¦<script
<link rel="icon" href="l#f"¦<link rel="prev" title=">" href="l" /
</script>¦</SCRIPT>¦<style>¦</style>¦@import 'o';¦a{b:url(v)}¦<title>¦</title>¦<textarea>
</textarea>¦<base¦<area¦<td¦<q¦<form action=f>¦<input¦<iframe¦</iframe>¦ srcdoc=x¦<svg¦</svg>
<button¦ formaction=f¦ FORMACTION="g"¦<path¦<circle¦<template>¦</template>¦<math>¦<plaintext>
<meta http-equiv="refresh" content="1;url=w">¦<meta property="og:url" content="t">
""".strip("\n")
    .replace("\n", "¦")
    .split("¦")
)


def differences(text, encoding="utf-8"):
    """Return how the scans and the exact readers differ; None if both scans gave the page up."""
    scans = scan(text, URL, encoding), scan(text.encode(), URL, encoding)
    found = [_differences(text, encoding, each) for each in scans if each]
    return next(filter(any, found), found[0] if found else None)


def _differences(text, encoding, found):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(accelerator, "tags", None)
        exact, exact_places = read_links(text, URL, encoding=encoding), read_targets(text)
    ours = Pointed({LinkKind.A: dict(found.links), **found.others.kinds}, found.others.malformed)
    merge(ours.kinds[LinkKind.A], found.nofollow.items())
    nofollow = [each for each in exact.links if each.nofollow and each.kind is LinkKind.A]
    nofollow = flat(abroad(nofollow, found.places)._replace(malformed={}))
    nofollow ^= flat(Pointed({LinkKind.A: found.nofollow}, {}))
    places = places_of(found.places) ^ exact_places
    return flat(ours) ^ flat(abroad(exact.links, found.places)), nofollow, places


def abroad(links, places):
    """Return what links point to, but for fragments that name places of the page itself."""
    pointed = pointed_of(links)
    if named := pointed.kinds.get(LinkKind.A, {}).get(URL):
        rest = [f"{each}\n" for each in fragments_in(named) if each not in places]
        named[:] = "".join(rest).encode()
    return pointed


def flat(pointed):
    """Return each link: its kind, its URL and each fragment; None for one that is malformed."""
    found = {
        (kind, url, each)
        for kind, urls in pointed.kinds.items()
        for url, names in urls.items()
        for each in fragments_in(names or b"") or [""]
    }
    return found | {
        (kind, url, None) for kind, texts in pointed.malformed.items() for url in texts
    }


@pytest.mark.slow
@examples(1_500)
@given(st.lists(st.sampled_from([*PIECES, "\n"]), max_size=40), st.sampled_from(ENCODINGS))
def test_the_scan_finds_what_the_exact_readers_find(pieces, encoding):
    assert differences("".join(pieces), encoding) in (None, (set(), set(), frozenset()))


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_query_is_in_the_encoding_of_its_page(encoding):
    hrefs = ("é?é", "x?é#é", "é", "x?y", "//é.test/?é")
    text = "".join(f"<a href='{each}'><img src='{each}'>" for each in hrefs)
    assert differences(text, encoding) == (set(), set(), frozenset())


@pytest.mark.parametrize(
    "text",
    [
        "<p id=a><a id='b' name=\"c\" href='x#y'>t</a><svg><path d=\"M1\"/></svg><img src=z>",
        "<!DOCTYPE html><title>t</title><style><!-- a{b:url(c)} --></style><td background=d>",
        '<base style="a:url(u)">',
        '<link rel="next" title="<x>" href="p#x" /><link rel="preconnect" href="q">'
        '<link rel="canonical" href="file:///a#b"><link rel="icon" href=" ">'
        '<link rel="nofollow" type="x" href="//[">',
        "<template><a href=x id=y></a></template><a href=z>",
        "<base href=/c/><script src=s>if (a<b) '<a href=no>'</SCRIPT ><area href=e rel=nofollow>",
    ],
)
def test_a_usual_page_is_not_given_up(text):
    assert differences(text) == (set(), set(), frozenset())


@pytest.mark.skipif(accelerator.targets is None, reason="pages are read in Python")
@for_each(
    "text",
    [
        "<svg id=a><title>t</title><symbol id=b><path id=c></symbol></svg><svg id=d />",
        "<svg><!-- <a href=no> --><filter id=a><feFlood></filter></svg><a href=x>",
        "<svg><metadata><r:d href=no></r:d></metadata><style id=a>b{c:d}</style></svg><a href=x>",
        "<math id=a><mrow><mi href=no id=b>x</mi></mrow></math><a href=x>",
        "<template id=a><a href=no id=b><template></template><script>'</template>'</script>"
        "<svg><g id=c><use href=no></svg></template><a href=x>",
        "<a href=x><svg><use href=#b></use><use xlink:href=s#c id=e /></svg></a><use href=no>",
    ],
)
def test_the_compiled_scanner_reads_plain_svg_mathml_and_templates(text):
    assert differences(text) == (set(), set(), frozenset())


@for_each(
    "text",
    [
        "<svg><a href=x></a></svg>",
        "<math><mi><p></math>",
        "<svg><style>a{b:url(c)}</style></svg>",
        "<svg><p>",
        "<svg><title></r:x><use href=a></svg>",
        "<iframe srcdoc='<a href=x>'></iframe>",
    ],
)
def test_a_page_that_is_not_simple_is_given_up(text):
    assert scan(text, URL) is None
    assert scan(text.encode(), URL) is None


@for_each("text", ["<script><!-- <script></script><a href=x>", "<textarea><a href=x>", "<a x='"])
def test_raw_text_or_a_tag_without_an_end_is_read_as_the_exact_readers_do_or_given_up(text):
    assert differences(text) in (None, (set(), set(), frozenset()))


@for_each(
    "unit",
    ["<a ", "<svg ", "<script>", "<!--", '<p a="', '<a id="x" ', "</p a=", "<style>", "<title>x"],
)
def test_the_time_of_a_scan_is_linear(unit):
    def seconds(size):
        text = unit * (size // len(unit))
        began = time.process_time()
        scan(text, URL)
        return time.process_time() - began

    scan("", URL)
    assert min(seconds(400_000) for _ in range(3)) < 0.5


def test_links_are_read_from_the_body_when_the_first_one_is_asked_for():
    body = b'<a href="x#y">text</a>\n<img src=i alt=A><p id=z><a href="#z">up</a>'
    facts = read(body, HTML["content-type"], URL, scanned=True)
    found = read_page_links(body, HTML["content-type"], URL, facts.pointed, 100_000, facts.outline)
    assert isinstance(found, PageLinks)
    assert found.pointed == (
        {
            "a": {"https://example.org/a/x": b"y\n", URL: None},
            "image": {"https://example.org/a/i": None},
        },
        {},
    )
    assert found == read_body_links(body, HTML, URL).links
    assert [each.text for each in found] == ["text", "A", "up"]


@for_each(
    "encoding, letter",
    [
        ("utf-8", "é"),
        ("iso-8859-1", "é"),
        ("euc-kr", "가"),
        ("shift_jis", "あ"),
        ("utf-16", "\ud800"),
    ],
)
def test_the_links_by_an_outline_are_those_of_the_page_in_its_encoding(encoding, letter):
    text = f"é<a href='x{letter}?{letter}'>{letter}</a>\n{letter}<img src='?{letter}'><a href=x>"
    body = text.replace("é", letter).encode(encoding, "surrogatepass")
    headers = httpx.Headers({"content-type": f"text/html; charset={encoding}"})
    facts = read(body, headers["content-type"], URL, scanned=True)
    about = URL, facts.pointed, 9, facts.outline, None, facts.charset
    kept = read_page_links(body, headers["content-type"], *about).kept
    links = read_body_links(body, headers, URL).links
    assert kept.links({link.kind: {each.url: None for each in links} for link in links}) == links
    assert kept.encoding or accelerator.targets is None
    for link in links:
        assert kept.links({link.kind: {link.url: None}}) == (link,)


@pytest.mark.skipif(accelerator.targets is None, reason="pages are read in Python")
def test_an_outline_leaves_out_what_needs_no_place_in_a_check():
    text = '<p id=z><a href="#z">z</a><a href="#y">y</a><input id=i><img src=j>'
    outline = scan(text.encode(), URL).outline
    parts = ('"#z"', '"#y"', "<input", "<img")
    assert [part for part in parts if part.encode() in outline] == ['"#y"', "<img"]


def test_a_fragment_that_names_a_place_of_its_own_page_is_left_out_also_with_nofollow():
    body = b"<p id=y><a rel=nofollow href='#y'>y</a><a rel=nofollow href='#z'>z</a>"
    facts = read(body, HTML["content-type"], URL, scanned=True)
    assert facts.pointed is not None
    assert facts.pointed.kinds == {"a": {URL: b"z\n"}}


@pytest.mark.skipif(accelerator.targets is None, reason="pages are read in Python")
@for_each("distinct, scanned", [(9, True), (10, True), (11, False)])
def test_a_page_has_as_many_links_as_differ_also_in_their_fragments(distinct, scanned):
    body = b"".join(b"<a href='/x#f%d'>t</a>" % (at % distinct) for at in range(30))
    facts = read(body, HTML["content-type"], URL, max_links=10, scanned=True)
    assert (facts.pointed is not None) == scanned


def test_links_with_nofollow_are_in_the_order_of_the_page():
    body = b"<area rel=nofollow href=x><a rel=nofollow href=y><a rel='nofollow b' href=x>"
    facts = read(body, HTML["content-type"], URL, scanned=True)
    assert facts.links == ("https://example.org/a/x", "https://example.org/a/y")


def test_the_links_of_headers_are_among_those_that_are_pointed_to():
    headers = httpx.Headers({"content-type": "text/html", "link": "</s.css>; rel=stylesheet"})
    body = b"<p>\n<a href=x>y</a>"
    for outlined in (False, True):
        facts = read(body, "text/html", URL, scanned=True)
        outline = facts.outline if outlined else b""
        about = URL, facts.pointed, 9, outline, headers
        found = read_page_links(body, "text/html", *about)
        assert found.pointed.kinds["style"] == {"https://example.org/s.css": None}
        assert found == read_body_links(body, headers, URL).links


def test_the_links_of_a_page_are_read_again_with_headers_that_are_not_ascii():
    fields = [
        (b"Link", '</n>; rel=next; title="é"'.encode()),
        (b"Content-Type", b"text/html; x=\xe9"),
    ]
    headers = httpx.Headers(fields)
    facts = read(b"<a href=x>y</a>", "text/html", URL, scanned=True)
    for outline in (facts.outline, b""):
        about = facts.pointed, 9, outline, headers
        found = read_page_links(b"<a href=x>y</a>", headers["content-type"], URL, *about)
        urls = [link.url for link in found.kept.links({"a": {"https://example.org/a/x": None}})]
        assert urls[-1] == "https://example.org/a/x"
        assert len(found) == 2


def test_a_crawl_and_a_check_find_the_same_long_url_of_a_script():
    body = "".join(f"<a href='javascript://[{'x' * 150}{end}'>" for end in "AB").encode()
    body += f"<a href='javascript:{'y' * 100}'><a href='data:,{'z' * 100}'><a href=k>".encode()
    plain, scanned = (read(body, "text/html", URL, scanned=each) for each in (False, True))
    assert (plain.links, plain.malformed) == (scanned.links, scanned.malformed)
    assert [len(url) for url in scanned.links] == [111, 106, len("https://example.org/a/k")]
    assert scanned.pointed is not None
    assert list(map(len, scanned.pointed.malformed["a"])) == [128]
    assert list(map(len, scanned.pointed.kinds["a"])) == [64, 64, 23]
