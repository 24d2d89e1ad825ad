"""Find the start tags of a page that may point somewhere, and the places that a fragment may name.

The compiled scanner finds them, if there is one that can read the page. Else this goes through the
page in Python, with a stack of the open elements in which a tag may have another meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from trio_crawler.expressions import lazy
from trio_crawler.page import accelerator
from trio_crawler.page.html.tokenizer import (
    ANY_TAG,
    IS_BREAKOUT,
    MARKUP,
    MAX_TAGS,
    NAME,
    NAME_END,
    NEXT_TAG,
    PASSED,
    RAW,
    RAW_END,
    SPACE,
    STRAY,
    TAG_END,
    TAG_END_WITH_SLASH,
    OpenElements,
    either_case,
    markup_end,
    raw_text_end,
    simple_raw,
)

StartTag: TypeAlias = tuple[str, int, int, int, int, int, bool]
"""A start tag: its name, in lower case, and where the following begin or end.

- the "<" of the tag
- the attributes, and their end; of a usual link, which has the name "", its href; of a place,
  which has the name `PLACE`, what it is called
- the content, and the end of the content if that is raw text, else the same place again
- whether the element is one of SVG or MathML
"""

PLACE = "#"
"""The name of a place: the value of an id, or of the name of an `a`, in a usual tag."""

USE = "svg use"
"""The name of a `use` of SVG, if the compiled scanner found it: HTML has an element `use`, too."""

_POINTING = "audio base embed form frame iframe image img input link meta object source"
_HARD = "template svg math plaintext"  # in these tags mean something else, or there are no more
# The names of elements that may point to something, or whose content is read apart.
_RELEVANT = either_case(f"a area {_POINTING} track video {_HARD} {RAW}")
# Any other element matters if it has one of these.
_RARE = either_case("background cite formaction id style")

# The first letter of the name of an element that is none of these. For nearly every name the
# first two or three letters decide.
_IRRELEVANT = rf"""
    (?: [^\W\d_abefilmnopstvxABEFILMNOPSTVX]
    |   [aA] (?![{SPACE}/>rRuU])
    |   [bB] (?![aA])
    |   [eE] (?![mM][bB])
    |   [fF] (?![oOrR])
    |   [iI] (?![fFmMnN])
    |   [lL] (?![iI][nN])
    |   [mM] (?![aAeE])
    |   [nN] (?![oO])
    |   [oO] (?![bB])
    |   [pP] (?![lL])
    |   [sS] (?![cCoOtTvV])
    |   [tT] (?![eEiI]|[rR][aA])
    |   [vV] (?![iI])
    |   [xX] (?![mM])
    |   (?! (?:{_RELEVANT}) [{SPACE}/>] ) [a-zA-Z]
    )
"""

_ATTRIBUTES = lazy(
    rf"""
    ( [^{SPACE}/>] [^{SPACE}/>=]*+ )
    (?: [{SPACE}]*+ = [{SPACE}]*+
        (?: "( [^"]*+ )" | '( [^']*+ )' | ( [^{SPACE}>"'][^{SPACE}>]*+ ) )?+
    )?+
    """,
    re.VERBOSE,
)


# The rest of a `style` in double quotes without a URL: no escape, and no url() or image-set().
_PLAIN_STYLE = r"""
    [sS][tT][yY][lL][eE]="
    [^"(\\&]*+ (?: (?<! [uU][rR][lL] ) (?<! [sS][eE][tT] ) \( [^"(\\&]*+ )*+ "
"""
_SVG = either_case("svg")
_SHAPES = "circle|ellipse|g|line|path|polygon|polyline|rect|text|tspan"


# Attributes of the usual form, none of them rare. A style without a URL is an exception.
_WITHOUT_RARE = rf"""
    (?: [{SPACE}]++
        (?: class="[^"]*+"
        |   (?! (?: {_RARE} ) [{SPACE}/>=] ) [a-zA-Z0-9_:-]++
            (?: = (?: "[^"]*+" | '[^']*+' | [^{SPACE}>"'][^{SPACE}>]*+ )
            |   (?= [{SPACE}/]*+ > | [{SPACE}]++ [a-zA-Z_:-] )
            )
        |   {_PLAIN_STYLE}
        )
    )*+
"""
_OTHER = rf"{_WITHOUT_RARE} [{SPACE}/]*+ >"  # the rest of a tag without rare attributes


def _beside(names: str, also: str = "") -> str:
    """Return an expression for attributes in double quotes that have none of the names.

    `also` is an expression for others.
    """
    names = "|".join(names.split())
    return rf"""
        (?: [{SPACE}]++
            (?: class="[^"]*+" | (?! (?:{names}) = ) [a-z-]++ = "[^"]*+" {also} )
        )*+
    """


# The usual link has no rel=nofollow, which contains a "w" or a reference.
_IN_LINK = _beside("href id name rel style", '| rel="[^"wW&]*+"')


# From a position on, skip text and irrelevant tags, and stop at the next relevant tag. The
# alternatives after each "<", in this order:
#
#   text                                       captured    then
#   </b>  <p>  <svg><path></svg>  < b  <1                  skip
#   <a class="c" href="x">                     value       stop after the tag: a usual link
#   <dt id="x">  <a name="x">                  place       stop after the tag: a usual place
#   <img src="x">  <a href=x>                  name, slash stop after the tag
#   <!  <?  </1                                markup      stop after the second character
_NEXT_RELEVANT = lazy(
    rf"""
    [^<]*+
    (?: <
        (?: / [^>=]*+ >
        |   {_IRRELEVANT} (?: [^=>]*+ > | {NAME} {_OTHER} )
        |   (?:{_SVG}) {_OTHER} (?: [^<]*+ < (?: /?+ (?:{_SHAPES}) {_OTHER} ) )*+
            [^<]*+ </(?:{_SVG})>
        |   / [a-zA-Z] {ANY_TAG}
        |   {STRAY}
        )
        [^<]*+
    )*+
    <
    (?: (?P<open>) [aA] {_IN_LINK} [{SPACE}]++ href=
        (?P<quote>["']) (?P<value> [^"']*+ ) (?P=quote) {_IN_LINK} [{SPACE}]*+ >
    |   (?P<at>)
        (?: (?! (?:{_RELEVANT}) [{SPACE}/>] ) [a-z][a-z0-9]*+
            {_beside("background cite formaction id style")} [{SPACE}]++ id
        |   [aA] {_beside("href id name style")} [{SPACE}]++ (?: id | name )
        )
        ="(?P<place> [^"]*+ )" {_beside("background cite formaction href id name style")}
        [{SPACE}]*+ >
    |   (?P<name> [a-zA-Z] {NAME} ) {TAG_END_WITH_SLASH}
    |   {MARKUP}
    )
    """,
    re.ASCII | re.VERBOSE,
)


# The first letter of the name of an element without links that is no raw text.
_NOT_LINKING = r"""
    [^\W\d_abimnpstxABIMNPSTX]
|   [sS] (?![cCvV]|[tT][yY])
|   [pP] (?![lL])
|   [tT] (?![iI]|[eE][mMxX])
|   [bB] (?![aA])
|   [aA] (?! [\t\n\f\r />rR] )
|   [iI] (?![fF])
|   [mM] (?![aA])
|   [nN] (?![oO])
|   [xX] (?![mM])
"""
LINKS = lazy(
    rf"""
    [^<]*+
    (?: <
        (?: / [^>=]*+ >
        |   (?: {_NOT_LINKING} ) [a-z0-9]*+ (?: > | [ ]class="[^"]*+"> | {ANY_TAG} )
        |   (?: / | (?! (?: {either_case(f"a area base {_HARD} {RAW}")} ) [{SPACE}/>] ) ) [a-zA-Z]
            {ANY_TAG}
        |   {"|".join(map(simple_raw, ("script", "style", "textarea", "iframe")))}
        |   (?:{_SVG}) {NAME_END} {TAG_END}
            (?: [^<]*+ < /?+ (?:{_SHAPES}) {NAME_END} {TAG_END} )*+ [^<]*+ </(?:{_SVG})>
        |   {STRAY}
        |   {PASSED}
        )
        [^<]*+
    )*+
    (?: <
        (?: [aA] {_beside("href rel", '| rel="[^"wW&]*+"')} [{SPACE}]++ href="( [^"]++ )"
            {_beside("href rel", '| rel="[^"wW&]*+"')} [{SPACE}]*+ >
        |   (?: {either_case("a area")} ) {NAME_END} ( {TAG_END} )
        |   (?: {either_case("title")} ) {NAME_END} {TAG_END[:-1]}
            ( > [^<]*+ ) (?= </ (?: {either_case("title")} ) {NAME_END} )
        )
    |   ( < ) (?s:.*)
    |   \Z
    )
    """,
    re.ASCII | re.VERBOSE,
)
"""Find the links of a usual page, in one go. Captured are:

- the href of a link of the usual form, if it is not empty
- the attributes of any other `a` or `area`
- the ">" of a title and its content, if that has no "<"
- where anything else matters, "<": then there are no more
"""


def start_tags(
    text: str,
    *,
    xml: bool = False,
    most: int = MAX_TAGS,
    lean: bool = False,
) -> Iterable[StartTag]:
    """Return the start tags outside of templates that may point somewhere, and the places.

    With `lean`, places may be left out, and so may each `a`, and an element that matters only for
    an attribute that any may have.

    In SVG and MathML every start tag is returned. With `xml`, a tag that ends in "/>" has no
    content. After `most` tags the last one has the name "/", and the rest of the page is not read.
    """
    compiled = None if xml or accelerator.tags is None else accelerator.tags(text, lean)
    return in_python(text, xml=xml, most=most) if compiled is None else compiled


def in_python(text: str, *, xml: bool = False, most: int = MAX_TAGS) -> Iterator[StartTag]:
    """Yield what `start_tags` returns where there is no compiled scanner."""
    elements = OpenElements()
    at = 0
    for _ in range(most):
        match = (NEXT_TAG.match if elements.names else _NEXT_RELEVANT.match)(text, at)
        if match is None:
            return
        at = match.end()
        kind = match.lastgroup
        if kind == "value":
            start, end = match.span(kind)
            yield "", match.start("open") - 1, start, end, at, at, False
        elif kind == "place":
            start, end = match.span(kind)
            yield PLACE, match.start("at") - 1, start, end, at, at, False
        elif kind == "markup":
            at = markup_end(text, at, cdata=xml or elements.foreign)
        else:
            name = match["name"].lower()
            empty = match["slash"].endswith("/")
            foreign, hidden = elements.foreign, elements.in_template
            elements.process(name, empty=empty, xml=xml)
            if name[0] == "/":
                continue
            foreign = foreign and not IS_BREAKOUT.fullmatch(name)
            content = at
            if name in RAW_END and not (foreign or (xml and empty)):
                at = raw_text_end(name, text, at)
            if not hidden:
                start, end = match.span("name")
                yield name, start - 1, end, match.start("slash"), content, at, foreign
            if name == "plaintext" and not foreign:
                return
    yield "/", at, at, at, at, at, False


def attributes(source: str) -> dict[str, str]:
    """Return the attributes of a tag as written, by names in lower case; the first of each counts.

    `source` begins after the name of the tag.
    """
    found = _ATTRIBUTES.findall(source)
    found.reverse()
    return {name.lower(): double or single or bare for name, double, single, bare in found}


def is_style_sheet(source: str) -> bool:
    """Whether a `style` contains CSS; `source` are its attributes."""
    return attributes(source).get("type", "").strip().lower() in ("", "text/css")
