"""Find the start tags of a page that an expression selects, and their places.

This goes through a page as `tokenizer.tags` does, with the same stack of open elements, but it
yields where each tag is instead of the source of its href.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

from trio_crawler.page.html.tokenizer import (
    ANY_TAG,
    IS_BREAKOUT,
    MARKUP,
    MAX_TAGS,
    NAME,
    NEXT_TAG,
    RAW,
    RAW_END,
    SPACE,
    STRAY,
    TAG_END_WITH_SLASH,
    AttributeMatcher,
    OpenElements,
    either_case,
    markup_end,
    raw_text_end,
)

StartTag: TypeAlias = tuple[str, int, int, int, int, int, bool]
"""A start tag: its name, in lower case, and where the following begin or end.

- the "<" of the tag
- the attributes, and their end; of a usual tag, which has the name "", the value of `VALUE`
- the content, and the end of the content if that is raw text, else the same place again
- whether the element is one of SVG or MathML
"""

VALUE = "value"
"""The group of a usual tag that contains what is asked for."""

PLACE = "#"
"""The name of a place among the compiled tags: the value of an id, or of the name of an `a`."""

HARD = "template svg math plaintext"
"""The elements in which tags mean something else, or that end the tags."""

_POINTING = "audio base button embed form frame iframe image img input link meta object source"
RELEVANT = either_case(f"a area {_POINTING} track video {HARD} {RAW}")
"""The names of elements that may point to something, or whose content is read apart."""

# For nearly every name the first two or three letters decide.
IRRELEVANT = rf"""
    (?: [^\W\d_abefilmnopstvxABEFILMNOPSTVX]
    |   [aA] (?![{SPACE}/>rRuU])
    |   [bB] (?![aAuU])
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
    |   (?! (?:{RELEVANT}) [{SPACE}/>] ) [a-zA-Z]
    )
"""
"""The first letter of the name of an element that is none of `RELEVANT`."""

_ATTRIBUTES = re.compile(
    rf"""
    ( [^{SPACE}/>] [^{SPACE}/>=]*+ )
    (?: [{SPACE}]*+ = [{SPACE}]*+
        (?: "( [^"]*+ )" | '( [^']*+ )' | ( [^{SPACE}>"'][^{SPACE}>]*+ ) )?+
    )?+
    """,
    re.VERBOSE,
).findall


# The rest of a `style` in double quotes without a URL: no escape, and no url() or image-set().
_PLAIN_STYLE = r"""
    [sS][tT][yY][lL][eE]="
    [^"(\\&]*+ (?: (?<! [uU][rR][lL] ) (?<! [sS][eE][tT] ) \( [^"(\\&]*+ )*+ "
"""
_SHAPES = "circle|ellipse|g|line|path|polygon|polyline|rect|text|tspan"


def without(names: str) -> str:
    """Return an expression for attributes of the usual form, none of them with one of the names.

    The names are an expression for lower and upper case. A style without a URL is an exception.
    """
    return rf"""
        (?: [{SPACE}]++
            (?: class="[^"]*+"
            |   (?! (?: {names} ) [{SPACE}/>=] ) [a-zA-Z0-9_:-]++
                (?: = (?: "[^"]*+" | '[^']*+' | [^{SPACE}>"'][^{SPACE}>]*+ )
                |   (?= [{SPACE}/]*+ > | [{SPACE}]++ [a-zA-Z_:-] )
                )
            |   {_PLAIN_STYLE}
            )
        )*+
    """


def plain_svg(other: str) -> str:
    """Return an expression for an SVG that has nothing but shapes.

    `other` is an expression for the rest of a tag without relevant attributes.
    """
    return rf"svg {other} (?: [^<]*+ < (?: /?+ (?:{_SHAPES}) {other} ) )*+ [^<]*+ </svg>"


def next_tag(irrelevant: str, names: str, usual: str) -> AttributeMatcher:
    """Return a function that finds the next relevant start tag from a position on.

    `irrelevant` matches the first letter of a name that is relevant only with one of the
    attributes `names`; `usual` matches a whole relevant tag without its "<", with the groups
    `open`, which is empty, at its start, and `VALUE`.
    """
    other = rf"{without(names)} [{SPACE}/]*+ >"
    return re.compile(
        rf"""
        [^<]*+
        (?: <
            (?: / [^>=]*+ >
            |   {irrelevant} (?: [^=>]*+ > | {NAME} {other} )
            |   {plain_svg(other)}
            |   / [a-zA-Z] {ANY_TAG}
            |   {STRAY}
            )
            [^<]*+
        )*+
        <
        (?: {usual}
        |   (?P<name> [a-zA-Z] {NAME} ) {TAG_END_WITH_SLASH}
        |   {MARKUP}
        )
        """,
        re.ASCII | re.VERBOSE,
    ).match


def start_tags(
    text: str, next_relevant: AttributeMatcher, *, xml: bool = False, most: int = MAX_TAGS
) -> Iterator[StartTag]:
    """Yield the start tags outside of templates that a function from `next_tag` finds.

    In SVG and MathML every start tag is yielded. With `xml`, a tag that ends in "/>" has no
    content. After `most` tags the last one has the name "/", and the rest of the page is not read.
    """
    elements = OpenElements()
    at = 0
    for _ in range(most):
        match = (NEXT_TAG if elements.names else next_relevant)(text, at)
        if match is None:
            return
        at = match.end()
        kind = match.lastgroup
        if kind == VALUE:
            start, end = match.span(VALUE)
            yield "", match.start("open") - 1, start, end, at, at, False
        elif kind == "markup":
            at = markup_end(text, at, cdata=xml or elements.foreign)
        else:
            name = match["name"].lower()
            empty = match["slash"].endswith("/")
            foreign, hidden = elements.foreign, elements.in_template
            elements.process(name, empty=empty, xml=xml)
            if name[0] == "/":
                continue
            foreign = foreign and not IS_BREAKOUT(name)
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
    found = _ATTRIBUTES(source)
    found.reverse()
    return {name.lower(): double or single or bare for name, double, single, bare in found}


def is_style_sheet(source: str) -> bool:
    """Whether a `style` contains CSS; `source` are its attributes."""
    return attributes(source).get("type", "").strip().lower() in ("", "text/css")
