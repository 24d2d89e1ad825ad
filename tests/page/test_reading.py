"""Facts about pages, read from any bytes."""

from __future__ import annotations

import sys
import time
from types import FrameType

import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from trio_crawler import Reason
from trio_crawler.page.accelerator import has_accelerator
from trio_crawler.page.read import read

URL = "http://e.test/a/b.html"


def links(markup: str, content_type: str = "text/html") -> list[str]:
    facts = read(markup.encode(), content_type, URL)
    return [link.removeprefix("http://e.test/") for link in facts.links]


@for_each(
    "markup, expected",
    [
        ("<a href=x>", ["a/x"]),
        ("<A HREF='X'>", ["a/X"]),
        ("<area href=/y>", ["y"]),
        ("<a href='/q?a=1&amp;b=2'>", ["q?a=1&b=2"]),
        ("<a href=' \n/y\t'>", ["y"]),
        ("<base href=/docs/><a href=x>", ["docs/x"]),
        ("<base><base href=/1/><base href=/2/><a href=x>", ["1/x"]),
        ("<base href='http://[x'><a href=x>", ["a/x"]),
        ("<base href='data:,x'><a href=x>", ["a/x"]),
        ("<a href=x#1><a href=x#2><a href=./x>", ["a/x"]),
        ("<a name=x><a><link href=no><img src=no>", []),
        ("<!-- <a href=no> --><script>'<a href=no>'</script>", []),
        ("<template><a href=no></template><a href=yes>", ["a/yes"]),
        ("<a href=caf\xe9>", ["a/caf%C3%A9"]),
        ("<a href='mailto:a@b'>", ["mailto:a@b"]),
        ('<a href="x\0y">', ["a/x%EF%BF%BDy"]),
    ],
)
def test_a_link_is_what_a_browser_follows(markup, expected):
    assert links(markup) == expected


@pytest.mark.parametrize("media", ["application/xhtml+xml", "application/xml", "text/xml"])
def test_self_closed_elements_of_xhtml_do_not_swallow_the_page(media):
    markup = (
        '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/>'
        '<script src="x"/></head><body><a name="n"/><a href="y"/></body></html>'
    )
    assert links(markup, media) == ["a/y"]


@pytest.mark.parametrize("media", ["image/png", "text/plain", "application/json", "text/css"])
def test_only_html_is_parsed(media):
    assert read(b"<a href=x>", media, URL).links == ()


@pytest.mark.parametrize("header", ["TEXT/HTML", "text/html;charset=utf-8;x", " text/html ;", ""])
def test_sloppy_headers_are_understood(header):
    facts = read(b"<!doctype html><a href=x>", header, URL)
    assert (facts.content_type, facts.links) == ("text/html", ("http://e.test/a/x",))


def test_a_title_is_the_first_of_html_with_white_space_folded():
    body = b"<svg><title>no</title></svg><title> A\n &amp; B </title><title>C</title>"
    assert read(body, "text/html", URL).title == "A & B"


@for_each(
    "body, header, charset",
    [
        (b"\xef\xbb\xbfx", "text/html; charset=latin-1", "utf-8"),
        (b"\xff\xfex\x00", "text/html", "utf-16le"),
        (b"x", "text/html; charset=KOI8-R", "koi8-r"),
        (b"x", 'text/html; Charset = "Shift_JIS"', "shift_jis"),
        (b"<meta charset=gbk>", "text/html", "gbk"),
        (b"<meta charset=utf-16>", "text/html", "utf-8"),
        (b"<meta http-equiv=content-type content='text/html; charset=big5'>", "text/html", "big5"),
        (b"<!-- <meta charset=gbk> -->", "text/html", "utf-8"),
        (b" " * 1100 + b"<meta charset=gbk>", "text/html", "utf-8"),
        (b"<!-- > <meta charset=gbk> -->", "text/html", "utf-8"),
        (b"</ ><//x><meta charset=gbk>", "text/html", "gbk"),
        (b'<p a="<meta charset=gbk>">', "text/html", "utf-8"),
        (b'<p x"y a="><meta charset=gbk>"><meta charset=big5>', "text/html", "big5"),
        (b'<p ="a= "><meta charset=gbk>"><meta charset=big5>', "text/html", "big5"),
        ("é".encode(), "text/html", "utf-8"),
        (b"\xe9t\xe9", "text/html", "windows-1252"),
        ("é".encode()[:1], "text/html", "utf-8"),
        *((b"x", f"text/html; charset={codec}", "utf-8") for codec in ("rot13", "hex", "zlib")),
        *(
            (b"x", f"text/html; charset={codec}", "utf-8")
            for codec in ("idna", "punycode", "utf-7")
        ),
    ],
)
def test_the_encoding_is_decided_as_browsers_do(body, header, charset):
    assert read(body, header, URL).charset == charset


def test_a_usual_page_is_read_in_22_calls_and_without_a_compiler_in_24():
    calls = []

    def record(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and "trio_crawler" in frame.f_code.co_filename:
            calls.append(frame.f_code.co_name)

    body = b'<!doctype html><title></title><a href="/">/</a>'
    for directory in ("a", "b"):
        calls.clear()
        sys.setprofile(record)
        facts = read(body, "text/html; charset=utf-8", f"http://usual.test/{directory}/")
        sys.setprofile(None)
        assert facts.links == ("http://usual.test/",)
    assert len(calls) <= (22 if has_accelerator() else 24), calls


def test_bytes_that_do_not_fit_the_charset_are_a_flaw_and_the_links_are_read():
    facts = read(b"\xff<a href=x>", "text/html; charset=utf-8", URL)
    assert (facts.flaws, facts.links) == ((Reason.BAD_CHARSET,), ("http://e.test/a/x",))


def test_a_malformed_href_is_no_link():
    facts = read(b"<a href='http://[x'><a href=y>", "text/html", URL)
    assert (facts.malformed, facts.links) == (("http://[x",), ("http://e.test/a/y",))


@given(st.binary(max_size=400), st.sampled_from(["text/html", "", "application/xml", "\x00;"]))
def test_no_bytes_raise(body, header):
    read(body, header, URL)


_PIECES = [
    "<a href='",
    "'>",
    "<base href=",
    "<",
    ">",
    "&",
    "#",
    "</a>",
    "<svg>",
    "<!--",
    "\x00",
    "%",
]


@given(st.lists(st.sampled_from([*_PIECES, '"', "é", "//", ":", "http://[", "<title>", " "])))
def test_no_markup_raises(pieces):
    read("".join(pieces).encode(), "text/html", URL)


@pytest.mark.parametrize(
    "body",
    [
        b"<div>" * 2_000_000,
        b"<a><b><div>" * 500_000,
        b"<p " + b" ".join(b"a%d=1" % n for n in range(500_000)) + b">",
        b"".join(b"<b x=%d><p>" % n for n in range(500_000)),
        b"".join(b"<body a%d=1>" % n for n in range(300_000)),
        b"<ul><li>" * 500_000,
        b"<!--" * 500_000,
        b"<a '" * 500_000,
        b"<script>" * 500_000,
    ],
    ids=lambda body: body[:12].decode(),
)
def test_no_page_takes_long(body):
    """Without bounds, such a page takes minutes to hours; the limit leaves room for slow CI."""
    started = time.process_time()
    facts = read(body + b"<a href=/last>", "text/html", URL)
    assert time.process_time() - started < 10
    assert len(facts.links) <= 1


def test_the_links_of_a_deeply_nested_page_are_found():
    facts = read(b"<div>" * 200_000 + b"<a href=/last>", "text/html", URL)
    assert facts.links == ("http://e.test/last",)


@pytest.mark.parametrize("padding", [0, 40_000])
def test_small_and_large_pages_are_read_alike(padding):
    body = b"<title>T</title><base href=/d/><a href=x&amp;y><area href=z><b><a href=x#f>"
    facts = read(body + b" " * padding, "text/html", URL)
    assert facts.links == ("http://e.test/d/x&y", "http://e.test/d/z", "http://e.test/d/x")
    assert facts.title == "T"


@pytest.mark.parametrize("padding", [0, 40_000])
def test_the_title_of_an_svg_is_not_the_title_of_the_page(padding):
    body = b"<svg><title>no</title></svg><title>yes</title><a href=x>" + b" " * padding
    facts = read(body, "text/html", URL)
    assert (facts.title, facts.links) == ("yes", ("http://e.test/a/x",))


@for_each("padding", [0, 40_000])
@for_each("end", [b"</svg>", b"<p>", b"</p>", b"</br>"])
def test_an_open_title_in_an_svg_hides_no_link(end, padding):
    body = b"<svg><title><g>" + end + b"<a href=x>" + b" " * padding
    assert read(body, "text/html", URL).links == ("http://e.test/a/x",)


@pytest.mark.parametrize(
    "end", [b"</p>", b"</br>", b"<div>"], ids=["end of p", "end of br", "start of div"]
)
def test_html_after_an_open_svg_is_html_again(end):
    body = b"<svg><g>" + end + b"<script><a href=no></script><a href=x>" + b" " * 40_000
    assert read(body, "text/html", URL).links == ("http://e.test/a/x",)


def test_no_page_makes_the_tree_copy_attributes_without_bound():
    """Each paragraph clones an open formatting element with all its attributes.

    For 31 KB of that, lexbor allocates 830 MB, so no tree may be built of it.
    """
    attributes = b" ".join(b"%x" % n for n in range(0x1000, 0x1000 + 5_500))
    body = b"<p title='>'><b " + attributes + b">" + b"<p>x" * 980 + b"<a href=/last>"
    started = time.process_time()
    assert read(body, "text/html", URL).links == ("http://e.test/last",)
    assert time.process_time() - started < 0.2


@pytest.mark.slow
@pytest.mark.parametrize("tag", ["<a>", "<a href=x>", "<svg>"])
def test_a_page_of_millions_of_tags_is_not_read_to_its_end_and_says_so(tag):
    facts = read((tag * 600_000).encode() + b"<a href=/last>", "text/html", URL)
    assert "http://e.test/last" not in facts.links
    assert facts.flaws == (Reason.TOO_MANY_LINKS,)
    assert facts.beyond >= 1
