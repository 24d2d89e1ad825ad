"""The URLs of style sheets: those that tinycss2 finds, and bounds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import pytest
import tinycss2
from cases import examples, for_each
from hypothesis import assume, example, given
from hypothesis import strategies as st

from trio_crawler.page import charset
from trio_crawler.page.css import MAX_PLACES, style_urls


def found(text: str) -> list[str]:
    return [url.url for url in style_urls(text)]


@for_each(
    "sheet, urls",
    [
        ("a{b:url(x)}", ["x"]),
        ("a{b:URL( 'x' ) , url(\"y\")}", ["x", "y"]),
        ("a{b:url(x\\ y\\29 z)}", ["x y)z"]),
        ("a{b:u\\72 l(x);c:\\URL(y)}", ["x", "y"]),
        ("a{b:my-url(x) #url(x) @url(x) 5url(x) xurl(x)}", []),
        ("<!--url(x)-->url(y)", ["x", "y"]),
        ("/* url(x) */ a{b:'url(x)' url(y)}", ["y"]),
        ("a{b:url(x'y) url(z)}", ["z"]),
        ("a{b:url(x y) url(z)}", ["z"]),
        ('a{b:url("x\ny) url(z)}', ["z"]),
        ("a{b:url() url('') url( ) url(#x)}", []),
        ("a{b:url(x", ["x"]),
        ("a{b:url('x", ["x"]),
        ("a{b:image-set('x' 1x, url(y), 'z' type('image/png'))} d{content:'no'}", list("xyz")),
        ("a{b:-webkit-image-set(url('x') 1x, 'y' 2x)}", ["x", "y"]),
        ("@namespace 'http://x/'; @namespace s url(http://y/); a{b:url(z)}", ["z"]),
        ("@document url(http://x/) { a{b:url(y)} }", ["y"]),
        ("@font-face { src: url(x) format('woff') }", ["x"]),
        ("a{b:url(x\0)}", ["x\ufffd"]),
        ("\\", []),
        ("a{content:'\\", []),
    ],
)  # fmt: skip
def test_the_urls_of_a_sheet_are_found(sheet, urls):
    assert found(sheet) == urls


@for_each(
    "sheet, imported",
    [
        ("@import 'x';", ["x"]),
        ('@charset "utf-8"; @layer a, b; @import url(x) layer(a) screen;', ["x"]),
        ("@IMPORT/**/'x'; @\\69mport 'y'", ["x", "y"]),
        ("@import url('x');", ["x"]),
        ("a{} @import 'x';", []),
        ("@media print { @import 'x'; }", []),
        ("@import x;", []),
        ("@import", []),
        ("@imports 'x';", []),
    ],
)
def test_an_import_counts_before_all_blocks(sheet, imported):
    assert [url.url for url in style_urls(sheet) if url.imported] == imported


def test_a_url_has_its_place_and_its_spelling():
    sheet = "@import 'a'; b{c:url( \"d\\65\" ) url(f )}"
    places = [(url.written, sheet[url.at :][:2]) for url in style_urls(sheet)]
    assert places == [("a", "a'"), ("d\\65", "d\\"), ("f", "f ")]


def by_tinycss2(text: str) -> list[str]:
    """Return the url() of a sheet, and the strings of its imports."""
    return list(in_tokens(tinycss2.parse_component_value_list(text)))


def in_tokens(tokens: Iterable[tinycss2.ast.Node]) -> Iterator[str]:
    importing = False
    for token in tokens:
        if token.type == "at-keyword":
            importing = token.lower_value == "import"
        elif token.type == "url":
            yield token.value
        elif token.type == "string" and importing:
            yield token.value
        elif token.type == "function" and token.lower_name == "url":
            first = [each for each in token.arguments if each.type != "whitespace"][:1]
            yield from [each.value for each in first if each.type == "string"]
            yield from in_tokens(token.arguments)
        elif token.type == "function":
            yield from in_tokens(token.arguments)
        elif token.type.endswith("block"):
            yield from in_tokens(token.content)
        if token.type not in ("whitespace", "comment", "at-keyword"):
            importing = False


PIECES = re.split(
    r"\s{2,}",
    r"""url(  url("  url(')  u\72 l(  \75rl(  x)  y  "  '  (  )  \  \)  \"  \a  \00007a  /*  */  /
    @import  ;  -  #  @  <!--  -->  a  5  .  é  url(z)  url( 'z' )  [  ]  %  !  \31  url""",
)


@examples(1_500)
@given(st.lists(st.sampled_from([*PIECES, " ", "\n", "\f", "\0"]), max_size=8).map("".join))
@example("@import 'a\n';url(b)")
@example("url(/**/a)")
@example("\\\nurl(a)")
def test_urls_are_those_of_the_tokens_of_tinycss2(text):
    # tinycss2 takes a backslash before a line end for part of a URL; CSS Syntax (4.3.6) does not.
    # A backslash at the end of a sheet would be a U+FFFD there.
    assume(not re.search(r"\\(?:[\n\f]|\Z)", text))
    expected = [url for url in by_tinycss2(text) if url and url[0] != "#"]
    assert found(text) == expected


@pytest.mark.slow
def test_the_rest_of_a_sheet_of_a_million_urls_is_not_read():
    assert len(found("url(a)" * 1_000_000)) == MAX_PLACES


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    "( url( \\a( image-set( image-set(url(\" @import\t a{b:'c'} @import/* \\:".split(" "),
)
def test_a_sheet_of_10_mib_of_one_piece_is_read(piece):
    assert len(found(piece * ((10 << 20) // len(piece)) + " url(x)")) <= MAX_PLACES


@given(st.text(max_size=200))
def test_no_text_raises(text):
    for url in style_urls(text):
        assert text[url.at :].startswith(url.written)


@for_each(
    "body, header, environment, encoding",
    [
        (b"", "text/css", "", "utf-8"),
        (b"", "text/css", "gbk", "gbk"),
        (b'@charset "koi8-r";', "text/css", "gbk", "koi8-r"),
        (b'@charset "koi8-r";', "text/css; charset=big5", "gbk", "big5"),
        (b'\xef\xbb\xbf@charset "koi8-r";', "text/css; charset=big5", "gbk", "utf-8"),
        (b"@charset 'koi8-r';", "text/css", "", "utf-8"),
        (b'@CHARSET "koi8-r";', "text/css", "", "utf-8"),
        (b' @charset "koi8-r";', "text/css", "", "utf-8"),
        (b'@charset "utf-16le";', "text/css", "", "utf-8"),
        (b'@charset "rot13";', "text/css", "gbk", "gbk"),
        (b'@charset "' + b" " * 1024 + b'koi8-r";', "text/css", "", "utf-8"),
    ],
)
def test_the_encoding_of_a_sheet_is_that_of_css_syntax(body, header, environment, encoding):
    assert charset.detect_style(body, header, environment) == encoding
