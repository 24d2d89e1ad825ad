"""Find in one pass what a page points to and the places in it, without positions and texts.

One expression goes through the tags as `start_tags` does, but in C from the first tag to the last,
and captures only what `read_links` and `read_targets` would find. It gives a page up that has a
template, SVG or MathML with links or ids, or raw text without an end: those two read such a page.
"""

from __future__ import annotations

import re
from functools import lru_cache, partial
from typing import NamedTuple, TypeAlias

from trio_crawler.link import LinkKind
from trio_crawler.page import css, entities
from trio_crawler.page.html.pointers import pointers
from trio_crawler.page.html.start_tags import (
    HARD,
    IRRELEVANT,
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
    found = Scan([], [], [], set(), None, None)
    values, places = found.values, found.places
    base: str | None = None
    title: str | None = None
    rows = _expression().findall(text)
    for href, single, place, raw, _, of_raw, content, name, source, hard in rows:
        if href := href or single:
            values.append(href if "&" not in href else entities.in_attribute(href))
        elif place:
            places.add(place if "&" not in place else entities.in_attribute(place))
        elif name:
            name = name.lower()
            if name == "base" and base is None and "href" in (given := attributes(source)):
                base = entities.in_attribute(given["href"])
            _add(found, name, source)
        elif raw:
            raw = raw.lower()
            if raw == "title" and title is None:
                title = content
            elif raw == "iframe" and "srcdoc" in of_raw.lower():
                return None
            _add(found, raw, of_raw)
            if raw == "style" and is_style_sheet(of_raw):
                for url, _, _, imported in css.style_urls(content):
                    kind = LinkKind.STYLE if imported else LinkKind.CSS
                    found.others.append((kind, url))
        elif hard:
            return None
    return found._replace(base=base, title=title)


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
