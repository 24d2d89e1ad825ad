"""What a reader sees of a link: the text in its `a`, or the `alt` of its `area`.

The text ends at `</a>` or at the next `<a`, at the latest after 4,096 characters of source: no two
links look at the same part of a page, so the time is linear. Comments, scripts, styles and what
else is never shown do not count; where a line or a block begins or ends there is white space.
Without any text the `alt` of the images stand for it. White space of every kind is collapsed.

All that is told from the source, so that it hardly matters which reader found the links. In a page
that is not tidy, a `title` in a link is shown, and in SVG or MathML the text may end sooner.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import cast

from trio_crawler.model import Anchor
from trio_crawler.page import entities
from trio_crawler.page.html.tokenizer import (
    ATTRIBUTES,
    COMMENT,
    W,
    attribute,
    either_case,
    value_of,
)

LONGEST = 200
"""Characters of an anchor's text."""

WINDOW = 4_096
"""Characters of source in which the text of a link must stand."""

_MOST_AGAIN = 10_000
_END = rf"(?=[{W}/>])"
_UNSEEN = "script style textarea xmp iframe noembed noframes template"
# The end of the text (1), an element that is not shown (2), any other tag (3: its name), a "<"
# that is text (4), or a comment and the like. What matches none of this leaves the window.
_TOKEN = re.compile(
    rf"<(?:(/?+[aA]{_END})|({either_case(_UNSEEN)}){_END}{ATTRIBUTES}[{W}/]*+>"
    rf"|(/?+[a-zA-Z][^{W}/>]*+){ATTRIBUTES}[{W}/]*+>|((?=[^a-zA-Z/!?]))"
    rf"|{COMMENT}>|(?:[!?](?!--)|/(?![a-zA-Z]))[^>]*+>)"
)
_TEXT_END, _HIDDEN, _NAME, _LESS = 1, 2, 3, 4
_FIRST_END = re.compile(rf"</?+[aA]{_END}").search
_HIDDEN_END = {
    name: re.compile(f"</(?:{either_case(name)}){_END}[^>]*+>").search for name in _UNSEEN.split()
}
_BREAKS = re.compile(
    "/?(?:address|article|aside|blockquote|br|center|dd|details|div|dl|dt|fieldset|figcaption"
    "|figure|footer|form|h[1-6]|header|hr|legend|li|main|nav|ol|option|p|pre|section|summary|table"
    "|tbody|td|tfoot|th|thead|tr|ul)",
    re.ASCII | re.IGNORECASE,
).fullmatch
_ALT = attribute("alt")
_NONE = Anchor()
# What is in the links of a site's pages is in those of most others as well: to remember it saves
# more than half of the time, and all but a little of the memory when pages are kept. What a source
# means does not depend on anything else; one without a text is not kept.
_KEPT, _LONGEST_KEPT = 4_096, 256
_known: dict[str | None, Anchor] = {}


class Marks:
    """Collect the anchors of one text by href, as `found`; links are added in document order."""

    def __init__(self, text: str) -> None:
        self.found: dict[str, Anchor] = {}
        self._text = text
        self._read = 0
        self._again = _MOST_AGAIN
        self._told: set[str] = set()

    def add(self, href: str, name: str, at: int) -> None:
        """Read the anchor of a link: an `a` whose tag ends, or an `area` whose name ends, at `at`.

        The first that has a text remains, else the first. In search of a text, 10,000 links are
        read of those whose href came before. Where one that differs in the fragment only has a
        text, nothing is added: both lead to one URL, and a large page has thousands of these.
        """
        # With the sign: where the base is no place, "#part" is a URL, and "" is none.
        place = "".join(href.partition("#")[:2])
        if place in self._told:
            return
        before = self.found.get(href)
        if before is not None:
            self._again -= 1
            if self._again < 0:
                return
        anchor = self._a(at) if name == "a" else of_area(self._text, at)
        if anchor.text:
            # To the end: so they are in the order in which these anchors stand.
            self.found.pop(href, None)
            self._told.add(place)
        if before is None or anchor.text:
            self.found[href] = anchor

    def _a(self, at: int) -> Anchor:
        if at >= self._read:
            anchor, self._read = _within(self._text, at)
            return anchor
        # What hides a link from its reader does not always hide it from the scan, in SVG. Nothing
        # may be read again and again for that.
        end = _FIRST_END(self._text, at, at + WINDOW)
        return of_source(self._text[at : at + WINDOW if end is None else end.start()])


def of_source(source: str) -> Anchor:
    """Read an anchor from the source that stands behind its tag."""
    return _known.get(source) or _keep(source, _within(source, 0)[0])


def of_area(attributes: str, at: int = 0) -> Anchor:
    """Read the anchor of an `area` from its attributes, which stand from a place on."""
    return Anchor("area", _collapsed(_alt(attributes, at)))


def first(
    hrefs: Sequence[str], sources: Sequence[str | None], read: Callable[[int], Anchor]
) -> dict[str, Anchor]:
    """Choose an anchor for each distinct href: the first that has a text, else the first.

    Where nothing but text stands in an `a`, its source is among the `sources`; else `read` gives
    the anchor with this number. The order is that of the anchors.
    """
    # It is all done in C, as nearly all of the links of a page stand on others as well.
    chosen: dict[str, str | None] = {}
    deque(map(chosen.setdefault, hrefs, sources), 0)
    found = dict(zip(chosen, map(_known.get, chosen.values()), strict=True))
    if not all(found.values()) and (without := _read_unknown(found, chosen, hrefs, read)):
        return _with_later_texts(cast("dict[str, Anchor]", found), without, hrefs, sources, read)
    return cast("dict[str, Anchor]", found)


def better(
    pairs: Iterable[tuple[str, Anchor]], found: dict[str, Anchor] | None = None
) -> dict[str, Anchor]:
    """Choose one of several anchors for each name: the first that has a text, else the first.

    Those that were `found` before come first.
    """
    found = {} if found is None else found
    for name, anchor in pairs:
        if name not in found or (anchor.text and not found[name].text):
            found[name] = anchor
    return found


def by_url(
    anchors: Mapping[str, Anchor], leads: Mapping[str, str], malformed: Collection[str]
) -> dict[str, Anchor]:
    """Give the anchors of hrefs to the URLs these lead to, and to those that are no URL."""
    found: dict[str, Anchor] = {}
    if list(leads) == list(anchors):
        found = dict(zip(leads.values(), anchors.values(), strict=True))
    if len(found) < len(leads):
        found = better((leads[href], anchor) for href, anchor in anchors.items() if href in leads)
        found = dict.fromkeys(leads.values(), _NONE) | found
    if malformed:
        names = ((href.partition("#")[0], anchor) for href, anchor in anchors.items())
        found |= better((name, anchor) for name, anchor in names if name in malformed)
    return found


def _read_unknown(
    found: dict[str, Anchor | None],
    chosen: Mapping[str, str | None],
    hrefs: Sequence[str],
    read: Callable[[int], Anchor],
) -> set[str]:
    """Read the first anchors that are not known; returns the hrefs that have no text there."""
    numbers: dict[str, int] = {}
    without: set[str] = set()
    for href in [href for href, anchor in found.items() if anchor is None]:
        source = chosen[href]
        if source is None:
            numbers = numbers or _first_numbers(hrefs)
            anchor = read(numbers[href])
        else:
            anchor = of_source(source)
        found[href] = anchor
        if not anchor.text:
            without.add(href)
    return without


def _with_later_texts(
    found: dict[str, Anchor],
    without: set[str],
    hrefs: Sequence[str],
    sources: Sequence[str | None],
    read: Callable[[int], Anchor],
) -> dict[str, Anchor]:
    """Look for a text in the later anchors of the hrefs that are `without` one."""
    numbers = _first_numbers(hrefs)
    for number in [number for number, href in enumerate(hrefs) if href in without]:
        if (href := hrefs[number]) in without:
            source = sources[number]
            anchor = read(number) if source is None else of_source(source)
            if anchor.text:
                found[href], numbers[href] = anchor, number
                without.remove(href)
    return {href: found[href] for href in sorted(found, key=numbers.__getitem__)}


def _first_numbers(hrefs: Sequence[str]) -> dict[str, int]:
    return dict(zip(reversed(hrefs), range(len(hrefs) - 1, -1, -1), strict=True))


def _keep(source: str, anchor: Anchor) -> Anchor:
    if anchor.text and len(source) <= _LONGEST_KEPT:
        if len(_known) >= _KEPT:
            _known.clear()
        _known[source] = anchor
    return anchor


def _within(text: str, at: int) -> tuple[Anchor, int]:
    """Read the text behind a place; returns how far it goes as well."""
    limit = min(len(text), at + WINDOW)
    shown: list[str] = []
    alts: dict[str, None] = {}
    while at < limit:
        start = text.find("<", at, limit)
        token = None if start < 0 else _TOKEN.match(text, start, limit)
        shown.append(text[at : limit if start < 0 else start])
        if token is None or token.lastindex == _TEXT_END:
            at = start if token else limit
            break
        at = token.end()
        if token.lastindex == _HIDDEN:
            end = _HIDDEN_END[token[_HIDDEN].lower()](text, at, limit)
            at = limit if end is None else end.end()
        elif token.lastindex == _LESS:
            shown.append("<")
        elif token.lastindex == _NAME and _BREAKS(token[_NAME]):
            shown.append(" ")
        elif token.lastindex == _NAME and token[_NAME].lower() == "img":
            alts[_alt(text, token.end(_NAME))] = None
    seen = _collapsed("".join(map(entities.in_text, shown)))
    return Anchor("a", seen or _collapsed(" ".join(alts))), at


def _alt(text: str, at: int) -> str:
    match = _ALT(text, at)
    return "" if match is None else entities.in_attribute(value_of(match))


def _collapsed(text: str) -> str:
    return " ".join(text.split())[:LONGEST].rstrip(" ")
