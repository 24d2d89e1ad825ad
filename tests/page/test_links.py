"""Everything that a page points to: kinds, places, bounds."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from html import escape
from itertools import product
from types import FrameType

import httpx
import pytest
from cases import examples, for_each
from hypothesis import assume, example, given
from hypothesis import strategies as st
from sites import by_lexbor

from trio_crawler import Page, Reason
from trio_crawler.link import ASSET_KINDS, PAGE_KINDS
from trio_crawler.page import Link, LinkKind, links_of
from trio_crawler.page.html.links import read_links, read_outline, scan
from trio_crawler.page.link_targets import Pointed, Wanted, fragments_in, wanted_of
from trio_crawler.page.links import read_body_links
from trio_crawler.page.read import read
from trio_crawler.page.urls import normalise

URL = "http://e.test/a/b.html"
HTML = {"content-type": "text/html; charset=utf-8"}


def links(markup: str | bytes, headers: dict[str, str] = HTML, url: str = URL) -> list[Link]:
    body = markup if isinstance(markup, bytes) else markup.encode("utf-8", "surrogatepass")
    return list(links_of(Page(url, 200, httpx.Headers(headers), body)))


def named(found: list[Link]) -> list[str]:
    return [f"{link.kind} {link.url.removeprefix('http://e.test/')}" for link in found]


@for_each(
    "markup, expected",
    [
        ("<a href=x>", ["a a/x"]),
        ("<area href=/x>", ["a x"]),
        ("<svg><a xlink:href=x></a></svg>", ["a a/x"]),
        ("<svg><a href=y xlink:href=x></a></svg>", ["a a/y"]),
        ("<iframe src=x></iframe>", ["frame a/x"]),
        ("<frameset><frame src=x>", ["frame a/x"]),
        ("<meta http-equiv=Refresh content='3; url=x'>", ["refresh a/x"]),
        ("<meta http-equiv=refresh content=3>", []),
        ("<meta property=og:url content=/x>", ["link x"]),
        ("<blockquote cite=x><q cite=y><ins cite=z><del cite=v>", [f"link a/{x}" for x in "xyzv"]),
        ("<img longdesc=x>", ["link a/x"]),
        ("<img src=x>", ["image a/x"]),
        ("<image src=x>", ["image a/x"]),
        ("<img srcset='x 1x, y 2x'>", ["image a/x", "image a/y"]),
        ("<picture><source srcset=x></picture>", ["image a/x"]),
        ("<link rel=preload as=image imagesrcset='x, y'>", ["image a/x", "image a/y"]),
        ("<input type=IMAGE src=x>", ["image a/x"]),
        ("<input src=x>", []),
        ("<video src=x poster=y></video>", ["media a/x", "image a/y"]),
        (
            "<svg><image href=x /><use xlink:href=y /><feImage href=z /></svg>",
            ["image a/x", "image a/y", "image a/z"],
        ),
        ("<body background=x>", ["image a/x"]),
        ("<table><td background=x>", ["image a/x"]),
        (
            "<meta property=og:image content=x><meta name=twitter:image content=y>",
            ["image a/x", "image a/y"],
        ),
        ("<link rel=icon href=x><link rel='shortcut icon' href=y>", ["icon a/x", "icon a/y"]),
        ("<link rel=apple-touch-icon href=x>", ["icon a/x"]),
        ("<link rel='alternate stylesheet' href=x>", ["style a/x"]),
        ("<style>@import 'x'; p { background: url(y) }</style>", ["style a/x", "css a/y"]),
        ("<style type=text/x>@import 'x';</style>", []),
        ("<svg><style>p { fill: url(y) }</style></svg>", ["css a/y"]),
        ("<svg><style><![CDATA[p>a { fill: url(y) }]]></style></svg>", ["css a/y"]),
        ("<p style='background: url(&quot;x&quot;)'>", ["css a/x"]),
        ('<p style="color: rgb(1,2,3); background: url(x)">', ["css a/x"]),
        ('<p style="background: u\\72l(x)">', ["css a/x"]),
        ("<p style='@import \"x\";'>", []),
        ("<script src=x></script>", ["script a/x"]),
        ("<svg><script href=x></script></svg>", ["script a/x"]),
        (
            "<audio src=x></audio><video><source src=y><track src=z>",
            ["media a/x", "media a/y", "media a/z"],
        ),
        ("<embed src=x><object data=y></object>", ["object a/x", "object a/y"]),
        (
            "<link rel=modulepreload href=x><link rel=prefetch href=y>",
            ["preload a/x", "preload a/y"],
        ),
        ("<link rel=manifest href=x>", ["manifest a/x"]),
        ("<link rel=next href=x><link rel=canonical href=y>", ["link a/x", "link a/y"]),
        ("<link rel=Author href=x><link rel='a b' href=y>", ["link a/x", "link a/y"]),
        ("<link rel=preconnect href=x><link rel='dns-prefetch preconnect' href=y>", []),
        ("<link rel=pingback href=x><link href=y><link itemprop=url href=z>", []),
        (
            "<form action=x><button formaction=y><input formaction=z>",
            ["form a/x", "form a/y", "form a/z"],
        ),
        ("<base href=/d/><base href=/e/><img src=x>", ["image d/x"]),
        ("<img src=x><base href=/d/>", ["image d/x"]),
        ("<noscript><img src=x></noscript>", ["image a/x"]),
        ("<template><img src=no></template><template><svg><a href=no></template>", []),
        ("<iframe srcdoc='<a href=x>' src=no></iframe>", ["a a/x"]),
        ("<iframe srcdoc='<iframe srcdoc=&quot;<img src=x>&quot;>'></iframe>", ["image a/x"]),
        ("<img src=''><script src=' '></script><iframe src></iframe><form action=''>", []),
        ("<a href=''>", ["a a/b.html"]),
        ("<img src=a&amp;b&#61;>", ["image a/a&b="]),
        ("<IMG SRC='x'/><Img/src=y>", ["image a/x", "image a/y"]),
        ("<p a='<img src=no>'><!-- <img src=no> --><textarea><img src=no></textarea>", []),
        ("<script>'<img src=no>'</script><title><img src=no></title>", []),
    ],
)
def test_each_kind_of_link_is_found(markup, expected):
    assert named(links(markup)) == expected


def test_each_kind_is_of_a_page_or_of_an_asset_or_never_asked():
    assert PAGE_KINDS | ASSET_KINDS | {LinkKind.FORM} == frozenset(LinkKind)
    assert not PAGE_KINDS & ASSET_KINDS


@for_each(
    "url, expected",
    [
        ("mailto:a@b.test", "mailto:a@b.test"),
        ("JavaScript:void(0)", "javascript:void(0)"),
        ("tel:+49 30", "tel:+49 30"),
        ("data:text/plain,x", "data:text/plain,x"),
        ("ftp://e.test/x", "ftp://e.test/x"),
        ("irc:x", "irc:x"),
        ("http://u:p@e.test", "http://e.test/"),
    ],
)
def test_a_link_of_any_scheme_is_returned(url, expected):
    assert [link.url for link in links(f"<a href='{url}'>")] == [expected]


def test_of_a_data_url_only_the_beginning_is_kept_and_it_takes_no_room():
    image = "data:image/png;base64," + "A" * 500_000
    found = links("".join(f"<img src={image}{n}>" for n in range(10)) + "<img src=x>")
    assert {len(link.url) for link in found[:-1]} == {64}
    assert found[-1].url == "http://e.test/a/x"
    assert len(found[0].as_written) == 200


def test_a_value_that_is_no_url_is_malformed_and_told_as_it_is():
    assert links("<img src='http://[x#f'>")[0][:3] == ("http://[x", LinkKind.IMAGE, "")
    assert links("<img src='http://[x#f'>")[0].malformed


@for_each(
    "href, url, fragment",
    [
        ("x#y", "a/x", "y"),
        ("#y", "a/b.html", "y"),
        ("x#", "a/x", ""),
        ("x#é b%20\t#", "a/x", "%C3%A9%20b%20#"),
        ('x#`<>"', "a/x", "%60%3C%3E%22"),
        ("x #y", "a/x%20", "y"),
        (" x#y ", "a/x", "y"),
        ("?q#:~:text=a", "a/b.html?q", ":~:text=a"),
    ],
)
def test_a_fragment_is_apart_from_its_url_as_the_url_standard_writes_it(href, url, fragment):
    (link,) = links(f"<a href='{href}'>")
    assert (link.url, link.fragment) == (f"http://e.test/{url}", fragment)


def test_a_query_is_encoded_as_the_document_is():
    headers = {"content-type": "text/html; charset=iso-8859-1"}
    (link,) = links("<a href='?\xe9#\xe9'>".encode("latin-1"), headers)
    assert (link.url, link.fragment) == (URL + "?%E9", "%C3%A9")


@for_each(
    "markup, text",
    [
        ("<a href=x> A\n <b>bold</b> link </a>", "A bold link"),
        ('<a href="x"><code class="c">f()</code></a>', "f()"),
        ('<a href="x">a &amp; b</a>', "a & b"),
        ('<a href="x"><img alt="an image"></a>', "an image"),
        ('<a href="x" title="of the title"></a>', "of the title"),
        ("<a href=x aria-label=' a  label '></a>", "a label"),
        ("<area href=x alt=y title=z>", "y"),
        ("<img src=x alt='A &lt; B' title=z>", "A < B"),
        ("<img src=x title=z>", "z"),
        (f"<a href=x>{'w' * 300}</a>", "w" * 100),
        (f"<img src=x alt={'w' * 300}>", "w" * 100),
        ("<svg><a href=x>drawn</a></svg>", "drawn"),
        ("<a href=x>open", "open"),
        ("<script src=x></script>", ""),
    ],
)
def test_a_link_has_the_text_that_a_reader_sees(markup, text):
    assert links(markup)[0].text == text


def test_a_link_has_the_line_and_column_of_its_element_and_its_spelling():
    markup = (
        "<p>é\U0001f600<a href='x'>\r\n\n  <img\n src=./a&amp;b srcset='c, d'><style>\n"
        'a{b:url( "e\\20" )}'
    )
    places = [(link.line, link.column, link.as_written) for link in links(markup)]
    assert places == [
        (1, 6, "x"),
        (3, 3, "./a&amp;b"),
        (3, 3, "c"),
        (3, 3, "d"),
        (5, 11, "e\\20"),
    ]


def test_frames_in_frames_are_read_three_deep():
    markup = "<a href=5>"
    for depth in "4321":
        markup = f"<a href={depth}><iframe srcdoc='{escape(markup)}'></iframe>"
    assert named(links(markup)) == ["a a/1", "a a/2", "a a/3", "a a/4"]


def test_an_empty_a_of_xhtml_has_no_text_and_an_entity_is_no_link():
    markup = """<?xml version="1.0"?><!DOCTYPE html [<!ENTITY e "<b/><img src='no'/>">]>
        <html xmlns="http://www.w3.org/1999/xhtml"><a href="x"/>after</html>"""
    (link,) = links(markup, {"content-type": "application/xhtml+xml"})
    assert (link.url, link.text, link.line) == ("http://e.test/a/x", "", 2)


def test_lines_are_counted_in_xhtml_with_a_declaration_of_its_type():
    markup = (
        '<?xml version="1.0"?>\n<!DOCTYPE html [\n<!ENTITY a "b">\n]>\n'
        '<html xmlns="http://www.w3.org/1999/xhtml"><a href="x"/><img src="y"/></html>'
    )
    found = links(markup, {"content-type": "application/xhtml+xml"})
    assert [link[:6] for link in found] == [
        ("http://e.test/a/x", LinkKind.A, "", "", 5, 44),
        ("http://e.test/a/y", LinkKind.IMAGE, "", "", 5, 57),
    ]


@given(
    st.lists(st.sampled_from(["\n", "x", "é", "<a href=q>", "<img src=q>", "\r\n"]), max_size=30)
)
def test_each_place_is_where_the_element_begins(pieces):
    text = "".join(pieces)
    lines = text.split("\n")
    places = [(link.line, link.column) for link in read_links(text, URL).links]
    expected = [
        (number, match.start() + 1)
        for number, line in enumerate(lines, 1)
        for match in re.finditer("<", line)
    ]
    assert places == expected


def test_nofollow_is_told_of_the_link_that_has_it():
    found = links("<a href=x rel='a NoFollow'><a href=x><a rel='nofollows' href=x>")
    assert [link.nofollow for link in found] == [True, False, False]


def test_headers_have_links_too():
    headers = HTML | {
        "link": '<s.css>; rel=stylesheet, <n>; rel="next"; title="N", <i>; rel=preconnect, '
        '<o>; rel=next; anchor="/other"',
        "refresh": "0; url=r",
    }
    found = links("<a href=x>", headers)
    assert named(found) == ["style a/s.css", "link a/n", "refresh a/r", "a a/x"]
    assert [(link.line, link.text) for link in found] == [(0, ""), (0, "N"), (0, ""), (1, "")]


def test_a_style_sheet_is_read_by_its_media_type():
    found = links('@import "x";\nb{c:url(y)}', {"content-type": "text/css"})
    assert named(found) == ["style a/x", "css a/y"]
    assert [(link.line, link.column) for link in found] == [(1, 10), (2, 9)]


def test_a_manifest_is_read_by_its_media_type():
    body = '{"start_url": "/", "icons": [{"src": "i.png"}, 5], "shortcuts": [{"url": "s"}]}'
    found = links(body, {"content-type": "application/manifest+json"})
    assert named(found) == ["link ", "icon a/i.png", "link a/s"]
    assert found[0][4:7] == (0, 0, "/")


@pytest.mark.parametrize("media", ["image/png", "application/json", "text/plain", "image/svg+xml"])
def test_a_body_of_another_type_has_no_links(media):
    assert links("<a href=x>@import 'y';", {"content-type": media}) == []


def test_links_are_read_of_pages_only():
    with pytest.raises(TypeError, match="page must be a Page"):
        links_of("http://e.test/")  # type: ignore[arg-type]


def test_what_is_beyond_the_most_links_is_counted():
    body = b"<a href=x><img src=y srcset='v, w'><iframe srcdoc='<a href=1><a href=2>'></iframe>"
    found = read_body_links(body, httpx.Headers(HTML), URL, max_links=3)
    assert (len(found.links), found.beyond) == (3, 3)


def test_a_page_of_40_000_candidates_is_read_to_the_last():
    body = "<img srcset='" + ",".join(f"i{n}.png {n + 1}w" for n in range(40_000)) + "'>"
    found = links(body)
    assert len(found) == 40_000
    assert found[-1].url == "http://e.test/a/i39999.png"


def test_different_urls_of_a_page_have_at_most_4_mib():
    body = "".join(f"<img src={n}>" for n in range(50_000))
    found = read_body_links(
        body.encode(), httpx.Headers(HTML), "http://e.test/" + "d" * 1_000 + "/"
    )
    assert sum(len(link.url) for link in found.links) <= 4 << 20
    assert len(found.links) + found.beyond == 50_000


SHAPES = [
    "<div>",
    "<p a={} b={} c={}>",
    "<b x={}><p>",
    "<body a{}=1>",
    "<img srcset='a, ",
    "<p style='",
    "<svg><style>",
    "<svg><path style='",
    "<a href={}>",
    "<a href='x'>",
    "<a href=x><style>",
    "<svg><a href=x><style>",
    "<style>@import ",
    "<style>url(",
    "<iframe srcdoc='",
    "<iframe srcdoc='<iframe srcdoc=&quot;",
    "<meta http-equiv=refresh content='",
    "<link rel='",
    "<!--",
    "<script>",
    "<template>",
    "<math><mi>",
    "\x00<img src=\x00>",
    '="',
    "<a b=c d='e' f=\"g\" ",
]


def steps_of(work: Callable[[], object]) -> int:
    """Count the lines of our code that some work runs."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> object:
        nonlocal count
        if "trio_crawler" not in frame.f_code.co_filename:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("shape", SHAPES)
def test_steps_grow_no_faster_than_the_page(shape):
    def page(count: int) -> bytes:
        return "".join(shape.replace("{}", str(number)) for number in range(count)).encode()

    small, large = page(500), page(2_000)
    headers = httpx.Headers(HTML)
    # Tags that were read before are cached.
    read_body_links(small, headers, URL)
    read_body_links(large, headers, URL)
    few = steps_of(lambda: read_body_links(small, headers, URL))
    many = steps_of(lambda: read_body_links(large, headers, URL))
    assert many <= 5 * few + 2_000


@pytest.mark.parametrize("shape", SHAPES)
def test_a_large_page_of_one_shape_is_read(shape):
    body = "".join(shape.replace("{}", str(number)) for number in range(200_000 // len(shape)))
    found = read_body_links(body.encode(), httpx.Headers(HTML), URL)
    assert len(found.links) <= 100_000


MEDIA = [
    "text/html",
    "",
    "text/css",
    "text/css; charset=gbk",
    "application/manifest+json",
    "application/xhtml+xml",
]


@given(st.binary(max_size=300), st.sampled_from(MEDIA))
def test_no_bytes_raise(body, media):
    headers = [(b"content-type", media.encode()), (b"link", body), (b"refresh", b"1;" + body)]
    found = read_body_links(body, httpx.Headers(headers), URL)
    assert all(link.url or link.malformed for link in found.links)


PARTS = re.split(
    r"\s{2,}",
    """<a href='  <img srcset='  '>  <base href=  data:  #  http://[  ,  <p style='  url(  <svg>
    <style>  %  //  <meta http-equiv=refresh content='1;  <link rel=next href='  &#  javascript:
    <iframe srcdoc='""",
)


@given(st.lists(st.sampled_from([*PARTS, "\ud800", "\0", " ", "\n"])))
def test_no_markup_raises(pieces):
    for link in links("".join(pieces)):
        assert link.line >= 1
        assert link.column >= 1


PIECES = re.split(
    r"\s{2,}",
    """<p>  </p>  <div id="d1">  </div>  text  <b id=b1>  </b>  <br>  <a href="x1">
    <a class="c" href='x2' id="i2">  </a>  <a href="x3" title="t" name="n3">  <li id='l1'>
    <img src="s1?a=b">  <img alt="it's" src=s2>  <!-- c -->  <!doctype html>  <area href="x4">
    <script src=j1></script>  <script>"<a href=no id=no>"</script>  <style>p{}</style>
    <title>a&amp;b</title>  <body background=bg2 id=bo>  <svg><path d="m" id="sv"/></svg>  <svg>
    </svg>  <use xlink:href="u1"/>  <link rel=stylesheet href=c1>  <link rel="icon" href="c2">
    <link rel=next href=c3/>  <iframe src=f1></iframe>  <embed src=e1>  <object data=o1>  </object>
    <video src=v1 poster='v2'>  <track src=t1>  <source src=so1>  </video>  <audio src=au1>
    <form action=fo1>  </form>  <button formaction="fo2">  <input type=image src=in1>  <template>
    <input formaction=in2>  <blockquote cite="ci1">  <q cite=ci2>  <p style="color:rgb(0,0,0)">
    <p style="x:y" id="ps">  </template>  <noscript>  </noscript>  <p ="b= ">  x">  <p a=b "c= ">
    "  '  <  >  =  </  -->  <!-->  <A HREF="Y3" ID=Y3>  <a/href="y5"/>  <a href="y6" href="no">
    <p a="<a href=no id=no>">  <textarea>  </textarea>  <?x  <![CDATA[  ]]>  <a name=an>  <desc>
    <g id=g1>  <a href="?a=1&copy=2&lt;">  <a href>  <img src>  <span id="sp" class=x>
    <svg class="c" id="s2">  <svg><rect style="fill:rgb(1,2,3)"/></svg>  <span class="x" id=''>""",
)


def wanted_links(text: str, wanted: Mapping[str, Wanted], own: str = URL) -> list[Link]:
    """Return the wanted links of a page: by its outline, if it has one."""
    found = scan(text.encode(), own)
    if found is None or not found.outline:
        return list(read_links(text, own, wanted=wanted_of(wanted, wanted)).links)
    return list(read_outline(found.outline, own, 100_000, wanted))


def of_each_kind(wanted: Wanted) -> Mapping[str, Wanted]:
    return dict.fromkeys(LinkKind, wanted)


@examples(500)
@given(st.lists(st.sampled_from(PIECES), max_size=6).map("".join))
@example('<svg><rect style="fill:rgb(1,2,3)" id="r"/><g><a href="x1"></a></g></svg>')
@example('<p style="a:b(c)" id="i"><a href="x1"title="t"><img src="s1"alt>')
def test_links_are_those_of_the_tree_of_lexbor(text):
    assume(not by_lexbor.is_left_open(text))
    found = {
        (link.kind, link.as_written)
        for link in read_links(text, URL).links
        if link.kind is not LinkKind.CSS
    }
    expected = {(LinkKind(kind), value) for kind, value in by_lexbor.pointers(text)}
    assert {(kind, value.replace("&lt;", "<")) for kind, value in found} == expected


@given(
    st.lists(st.sampled_from([*PIECES, "\n", "<a href=x1>y</a>", "<a href=x1>z</a>"])), st.data()
)
def test_of_the_wanted_links_all_is_told_that_is_told_of_all_links(pieces, data):
    text = "".join(pieces)
    found = read_links(text, URL).links
    urls, kinds = (sorted({link[at] for link in found}) for at in (0, 1))
    fragments = st.none() | st.sets(st.sampled_from(sorted({link.fragment for link in found})))
    of_kind = st.dictionaries(st.sampled_from(urls), fragments) if urls else st.nothing()
    wanted = data.draw(st.dictionaries(st.sampled_from(kinds), of_kind)) if urls else {}

    def is_wanted(link):
        named = wanted.get(link.kind, {}).get(link.url, ())
        return named is None or link.fragment in named

    # There may be others.
    some = wanted_links(text, wanted)
    assert list(filter(is_wanted, some)) == list(filter(is_wanted, found))


@for_each("end, told", [("<<a href=y>", "d<"), ("<<a href='#i'><p id=i>", "d<"), ("<", "d")])
def test_a_text_that_ends_in_a_less_than_sign_is_read_to_its_end(end, told):
    text = f"<a href=x>d{end}"
    assert wanted_links(text, of_each_kind({"http://e.test/a/x": None}))[0].text == told
    assert read_links(text, URL).links[0].text == told


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_the_links_of_a_crawl_are_among_them(text):
    # For a crawl, the tree of a small page counts an `area` in SVG, which is none of HTML.
    assume("<svg" not in text or "<area" not in text)
    assume(not by_lexbor.is_left_open(text))
    facts = read(text.encode(), "text/html", URL)
    found = [link.url for link in links(text) if link.kind is LinkKind.A]
    assert set(facts.links) == set(found)
    assert Reason.TOO_MANY_LINKS not in facts.flaws


HREFS = "x ./x ../x /x //x x/ x/. x/.. . .. #f x#f x#a/x y/x?q ?x a\\x %78 X:x é/x http:x".split()
HREFS += ["", " x\n", "xé", "x&#46;y", "x.y", "\\x", "x\ny", "é ?x"]
HREFS += ["#", "x#", "x#<b>", "x#é", "x#a&amp;b", "x#a\tb", "?a/b", "/1/", "#1"]
HREFS += "//o.test HTTP://O.test http://o.test/ http://%6f.test/ http://o.test:080/d/".split()
HREFS += "http://[0a::1]/ /X http://127.1/ http://u@o.test/d/. http://é.test/ MAILTO:x http://[x/".split()
HREFS += ["x?a=b&amp;c", "?a&amp;b", "x#a?b&amp;c", "/d/x?q&#61;1#f&amp;g", "x?#f&amp;"]
HREFS += ["x#f\n", "file:///c|/", "http:", "http:?q", " HTTPS:#f", "http:x", "http:/x"]
HREFS += ["http://o.test:081/", "http://o.test/d/x?q=1/#f", "file:///c/", "data:,x/y"]
HREFS += ["x%20y", "http://o.test:99999/x"]
TAGS = """<a href="{0}">t\n<img src="{0}" alt=z></a>|<img srcset="{0} 2x">|<a rel=w href='{0}'>
<area href='{0}'>é|<q cite='{0}'>|<svg><use href='{0}'></svg>|<p style='color:url({0})'>x</p>
<a href="{0}">|<a href=y>t<area href='{0}'></a>|<style>a{{color:url({0})}}</style>
<link rel=next title=é href='{0}'>""".split("|")
USUAL = ['<link rel="next" href="{0}" />', '<img alt="z" src="{0}">', '<script src="{0}">']
USUAL += [f'<img src="{{0}}"><img src="{other}">' for other in ("{0}", "x y", "&#120;")]


@pytest.mark.parametrize(
    ("base", "own"),
    [
        *[("", URL), ("", f"{URL}?x"), ("", "http://e.test/x?q"), ("<base href=/b/>", URL)],
        *[(f"<base href={base}>", URL) for base in ("x", "//o.test/x", "mailto:x")],
    ],
)
def test_the_links_to_wanted_urls_are_those_among_all_links(base, own):
    for tag, href in product(TAGS, HREFS):
        text = f"{base}<a href=#f>t</a>é<title>t</title>{tag.format(href)}<a href='x'>"
        every = list(read_links(text, own).links)
        urls = {link.url: {""} if link.malformed else None for link in every}
        assert wanted_links(text, of_each_kind(urls), own) == every
        for wanted, named in (*urls.items(), ("http://other.test/x", None)):
            found = wanted_links(text, of_each_kind({wanted: named}), own)
            assert found == [link for link in every if link.url == wanted]
            for name in {link.fragment for link in every}:
                found = wanted_links(text, of_each_kind({wanted: {name}}), own)
                assert found == [link for link in every if link[:3:2] == (wanted, name)]


def test_the_wanted_links_of_one_kind_are_found_in_elements_as_most_are_written():
    for tag, href in product(USUAL, HREFS):
        text = f"{tag.format(href)}<a href=y>"
        every = read_links(text, URL).links
        for kind, wanted, malformed in {(link.kind, link.url, link.malformed) for link in every}:
            named = {""} if malformed else None
            found, alike = (
                [link for link in links if (link.kind, link.url) == (kind, wanted)]
                for links in (wanted_links(text, {kind: {wanted: named}}), every)
            )
            assert found == alike


OWN = "http://e.test/d/p.html"
SEVERAL = [
    ('<img src="a" srcset="a&#46; 2x, a&#35; 3x"><q cite="b">', {"image": ["a"], "link": ["b"]}),
    ('<img src="a.b" srcset="./a&#46;b 2x"><img src="#f">', {"image": ["a.b", "p.html"]}),
    ('<img src="a&#46;b" srcset="a.b 2x, c&#46;b 3x"><img src="q" alt="c.b">', {"image": ["a.b"]}),
    ('<img src="a.b" srcset="a&#46;b#f 2x">', {"image": ["a.b"]}),
    ('<img src="a.b" srcset="HTTP://e.test/d/a&#46;b 2x">', {"image": ["a.b"]}),
    ('<img src="?q"><img src="p.html?q">', {"image": ["?q"]}),
    ('<img src="p.html"><img src="#x">', {"image": ["p.html"]}),
    ('<link rel="a" href="MAILTO:a@b"><link rel="a" href="mailto:a@b">', {"link": ["mailto:a@b"]}),
    ('<img src="DATA:,x"><img src="data:,x">', {"image": ["data:,x"]}),
    ('<script src="FOO:x/"></script>', {"script": ["foo:x/"]}),
    ('<img src="y" srcset="p 2x">', {"image": ["p", "y"]}),
]


@for_each("text, wanted", SEVERAL)
def test_of_several_elements_none_is_lost_however_each_is_written(text, wanted):
    text = f"<a href=z>t</a>{text}"
    urls = {kind: {normalise(url, OWN): None for url in found} for kind, found in wanted.items()}
    found, every = (
        [link for link in links if link.url in urls.get(link.kind, ())]
        for links in (wanted_links(text, urls, OWN), read_links(text, OWN).links)
    )
    assert found == every


def test_a_page_points_to_what_its_links_lead_to():
    for tag, href in product(TAGS, HREFS):
        text = f"<title>t</title>{tag.format(href)}"
        facts = read(text.encode(), HTML["content-type"], URL, scanned=True)
        expected = Pointed({}, {})
        for link in read_links(text, URL).links:
            expected.add(link.kind, link[0:3:2] + link[-1:])
        if facts.pointed is not None:
            assert distinct(facts.pointed) == distinct(expected), text


def distinct(pointed):
    """Return what a page points to, with each fragment once."""
    kinds = {
        kind: {url: {*fragments_in(named or b"")} for url, named in urls.items()}
        for kind, urls in pointed.kinds.items()
        if urls
    }
    return kinds, pointed.malformed


@for_each(
    "element",
    [
        "<input type=image>",
        "<input type=image src>",
        "<link rel=icon>",
        "<img srcset>",
        "<a>",
        "<base>",
    ],
)
def test_an_element_without_its_attribute_points_nowhere(element):
    assert read_links(element, "http://e.test/").links == []
    assert read(element.encode(), "text/html", "http://e.test/", scanned=True).links == ()


@for_each(
    "base, wanted, found",
    [
        ("", "http://e.test/d/p", ["f"]),
        ("", "http://e.test/d/q", []),
        ("<base href=/d/q>", "http://e.test/d/q", ["f"]),
        ("<base href=/d/q>", "http://e.test/d/p", []),
    ],
)
def test_a_link_to_a_place_is_one_to_the_page_itself_or_to_its_base(base, wanted, found):
    text = f"{base}<a href='x'>x</a><a href='#f'>f</a>"
    links = read_links(text, "http://e.test/d/p", wanted={wanted: None}).links
    assert [link.fragment for link in links] == found
