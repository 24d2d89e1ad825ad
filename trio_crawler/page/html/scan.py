"""Find in one pass what a page points to and the places in it, without positions and texts.

It gives a page up that has SVG with links or ids, or MathML: `read_links` and `read_targets` read
such a page.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, TypeAlias

from trio_crawler.link import LinkKind
from trio_crawler.page import css, entities
from trio_crawler.page.html.pointers import pointers
from trio_crawler.page.html.start_tags import PLACE, attributes, is_style_sheet, start_tags

_MAX_CHARACTERS = 1 << 20
_HARD = ("svg", "math", "/")

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
    for name, _, begin, end, content, content_end, foreign in start_tags(text):
        value = text[begin:end]
        if not name:
            values.append(value if "&" not in value else entities.in_attribute(value))
        elif name == PLACE:
            places.add(value if "&" not in value else entities.in_attribute(value))
        elif foreign or name in _HARD or (name == "iframe" and "srcdoc" in value.lower()):
            return None
        else:
            if name == "base" and base is None and "href" in (given := attributes(value)):
                base = entities.in_attribute(given["href"])
            elif name == "title" and title is None:
                title = text[content:content_end]
            elif name == "style" and is_style_sheet(value):
                for url, _, _, imported in css.style_urls(text[content:content_end]):
                    kind = LinkKind.STYLE if imported else LinkKind.CSS
                    found.others.append((kind, url))
            _add(found, name, value)
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
    pointed = () if name == "base" else pointers(name, source, foreign=False)
    found = [(each.kind, each.value, each.nofollow) for each in pointed]
    given = attributes(source)
    places = [given.get("id", ""), given.get("name", "") if name == "a" else ""]
    return found, [entities.in_attribute(place) for place in places if place]


# Most pages of a site begin and end with the same elements.
_of_short = lru_cache(4_096)(_of)
