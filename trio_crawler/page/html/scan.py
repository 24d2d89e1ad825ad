"""Find in one pass what a page points to and the places in it, without positions and texts.

The compiled `tags` go through the page, or one expression does, in C from the first tag to the
last, and captures only what `read_links` and `read_targets` would find. Both give a page up that
has a template, or SVG or MathML with links or ids: those two read such a page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import NamedTuple, TypeAlias

from trio_crawler.link import LinkKind
from trio_crawler.page import accelerator, css, entities
from trio_crawler.page.html.pointers import pointers
from trio_crawler.page.html.start_tags import (
    HARD,
    IRRELEVANT,
    PLACE,
    RELEVANT,
    attributes,
    is_style_sheet,
    plain_svg,
    without,
)
from trio_crawler.page.html.tokenizer import (
    ANY_TAG,
    COMMENT,
    NAME,
    NAME_END,
    RAW,
    SPACE,
    STRAY,
    TAG_END,
    either_case,
)

_MAX_CHARACTERS = 1 << 20

_RARE = "background cite id style"
_OTHER = rf"{without(either_case(_RARE))} [{SPACE}/]*+ >"


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
_RAW_TEXT = either_case(RAW.removeprefix("script "))
_RAW_NAME = rf"(?i: (?P=raw) ) {NAME_END}"


# The alternatives after the "<" at which the skipping stops, in this order:
#
#   text                             captured
#   <a class="c" href="x">           href, or single if the quotes are
#   <dt id="x">  <a name="x">        place
#   <style media="m">…               raw, its attributes, content; the end tag is skipped later
#   <img src="x">  <a href='x'>      name, its attributes
#   <svg>…  <script><!--…  <!--…     hard: the rest of the page
#
# The last one, or the end of the page, matches in any case: without them the search would go on
# from every character of the rest, which would make the time quadratic.
@lru_cache(1)
def _expression() -> re.Pattern[str]:
    """Return the expression, which is compiled for the first crawl that checks links."""
    return re.compile(
        rf"""
    [^<]*+
    (?: <
        (?: / [^>=]*+ >
        |   {IRRELEVANT} (?: [^=>]*+ > | {NAME} {_OTHER} )
        |   {plain_svg(_OTHER)}
        |   / [a-zA-Z] {ANY_TAG}
        |   {STRAY}
        |   {COMMENT} >
        |   (?: [!?] (?!--) | / (?![a-zA-Z]) ) [^>]*+ >
        )
        [^<]*+
    )*+
    (?: <
        (?: [aA] {_IN_LINK} [{SPACE}]++ href=
            (?: "(?P<href> [^"]++ )" | '(?P<single> [^']++ )' ) {_IN_LINK} [{SPACE}]*+ >
        |   (?: (?! (?:{RELEVANT}) [{SPACE}/>] ) [a-z][a-z0-9]*+ {_beside(_RARE)} [{SPACE}]++ id
            |   [aA] {_beside("href id name style")} [{SPACE}]++ (?: id | name )
            )
            ="(?P<place> [^"]*+ )" {_beside("background cite href id name style")} [{SPACE}]*+ >
        |   (?P<raw> (?P<script> {either_case("script")} ) | {_RAW_TEXT} ) {NAME_END}
            (?P<of_raw> {TAG_END} )
            (?P<content> [^<]*+ (?: < (?! / {_RAW_NAME} | (?(script) !-- | (?!) ) ) [^<]*+ )*+ )
            (?= </ {_RAW_NAME} )
        |   (?! (?:{either_case(f"{HARD} {RAW}")}) {NAME_END} )
            (?P<name> [a-zA-Z] {NAME} ) (?P<attributes> {TAG_END} )
        |   (?P<hard> (?s: .++ ) )
        )
    |   \Z
    )
    """,
        re.ASCII | re.VERBOSE,
    )


_Row: TypeAlias = tuple[str, str, str]
"""The name of a tag, its attributes, and its content if that is raw text.

A usual link has the name "" and its href, a place the name `PLACE` and what it is called.
"""
_HARD = "hard"
_pointers = partial(pointers, foreign=False)
_Element: TypeAlias = tuple[list[tuple[LinkKind, str, bool]], list[str]]


class Scan(NamedTuple):
    """The targets of a page, and its places.

    `values` are those of `a` and `area`, with their fragments, `nofollow_values` those with
    rel=nofollow, and `others` those of all other elements. References are decoded, but not in the
    `title`.
    """

    values: list[str]
    nofollow_values: list[str]
    others: list[tuple[LinkKind, str]]
    places: set[str]
    base: str | None
    title: str | None


def scan(text: str) -> Scan | None:
    """Return what `read_links` and `read_targets` would find in HTML, of each link the value only.

    None if the page is not simple, or has more than 1,048,576 characters.
    """
    if len(text) > _MAX_CHARACTERS or "\0" in text:
        return None
    rows = _rows(text) if accelerator.tags is None else _compiled_rows(text)
    found = Scan([], [], [], set(), None, None)
    values, places = found.values, found.places
    base: str | None = None
    title: str | None = None
    for name, value, content in rows:
        if not name:
            values.append(value if "&" not in value else entities.in_attribute(value))
        elif name == PLACE:
            places.add(value if "&" not in value else entities.in_attribute(value))
        elif name == _HARD or (name == "iframe" and "srcdoc" in value.lower()):
            return None
        else:
            if name == "base" and base is None and "href" in (given := attributes(value)):
                base = entities.in_attribute(given["href"])
            elif name == "title" and title is None:
                title = content
            _add(found, name, value)
            if name == "style" and is_style_sheet(value):
                for url, _, _, imported in css.style_urls(content):
                    kind = LinkKind.STYLE if imported else LinkKind.CSS
                    found.others.append((kind, url))
    return found._replace(base=base, title=title)


def _rows(text: str) -> Iterator[_Row]:
    rows = _expression().findall(text)
    for href, single, place, raw, _, of_raw, content, name, source, hard in rows:
        if href := href or single:
            yield "", href, ""
        elif place:
            yield PLACE, place, ""
        elif name:
            yield name.lower(), source, ""
        elif raw:
            yield raw.lower(), of_raw, content
        elif hard:
            yield _HARD, "", ""


def _compiled_rows(text: str) -> Iterator[_Row]:
    assert accelerator.tags is not None  # noqa: S101 - for mypy
    tags = accelerator.tags(text)
    if tags is None:
        yield _HARD, "", ""
    for name, _, begin, end, content, content_end, _ in tags or ():
        yield name, text[begin:end], text[content:content_end]


def _add(found: Scan, name: str, source: str) -> None:
    """Add what one element points to, and its places."""
    pointed, places = _of_short(name, source) if len(source) < 512 else _of(name, source)
    for kind, value, nofollow in pointed:
        if kind is not LinkKind.A:
            found.others.append((kind, value))
        elif nofollow:
            found.nofollow_values.append(value)
        else:
            found.values.append(value)
    found.places.update(places)


def _of(name: str, source: str) -> _Element:
    """Return the targets of one element, and its places."""
    # A base is never shown, and so its style leads nowhere.
    pointed = () if name == "base" else _pointers(name, source)
    found = [(each.kind, each.value, each.nofollow) for each in pointed]
    given = attributes(source)
    places = [given.get("id", ""), given.get("name", "") if name == "a" else ""]
    return found, [entities.in_attribute(place) for place in places if place]


# Most pages of a site begin and end with the same elements.
_of_short = lru_cache(4_096)(_of)
