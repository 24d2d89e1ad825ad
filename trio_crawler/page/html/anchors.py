"""Read the anchors of links: the visible text of an `a`, or the `alt` of an `area`.

The text ends at `</a>` or at the next `<a`, or after 4,096 characters of source. So no two links
read the same part of a page, and the time is linear. Comments, scripts, styles and other elements
that are not shown are left out. White space is added where a line or a block begins or ends, and
white space of every kind is collapsed. If there is no text, the `alt` of the images replace it.

In SVG or MathML the text may end sooner.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from trio_crawler.expressions import lazy
from trio_crawler.model import Anchor
from trio_crawler.page import entities
from trio_crawler.page.html.tokenizer import (
    COMMENT,
    NAME_END,
    SPACE,
    TAG_END,
    attribute_matcher,
    decoded_value,
    either_case,
)

MAX_TEXT = 200
"""The most characters of an anchor's text."""

WINDOW = 4_096
"""The characters of source after a link in which its text is searched for."""

_MAX_REPEATS = 10_000
_NOT_SHOWN = "script style textarea xmp iframe noembed noframes template"
# The alternatives at a "<" in the source after a link; none matches if its end is beyond the
# window:
#
#   text                       captured   what it is
#   </a>  <a …                 end        the end of the text
#   <script …>  <template …>   hidden     an element that is not shown, to be skipped
#   <b>  </b>  <img alt="x">   name       any other tag
#   < b  <1                    less       "<" as text
#   <!--…-->  <!…>  <?…>  </1>            a comment or similar
_TOKEN = lazy(
    rf"""
    <
    (?: (?P<end> /?+ [aA] {NAME_END} )
    |   (?P<hidden> {either_case(_NOT_SHOWN)} ) {NAME_END} {TAG_END}
    |   (?P<name> /?+ [a-zA-Z] [^{SPACE}/>]*+ ) {TAG_END}
    |   (?P<less> (?= [^a-zA-Z/!?] ) )
    |   {COMMENT} >
    |   (?: [!?] (?!--) | / (?![a-zA-Z]) ) [^>]*+ >
    )
    """,
    re.VERBOSE,
)
# The content of an `a` with one text, at most in elements that are neither blocks nor hidden.
_INLINE = "b|cite|code|em|i|kbd|samp|small|span|strong|tt|var"
_SIMPLE_TEXT = lazy(
    rf"""
    (?: < (?:{_INLINE}) (?: [ ] class="[^"]*+" )?+ > )*+
    ( [^<&\0]{{1,{MAX_TEXT}}}+ )
    (?: </ (?:{_INLINE}) > )*+
    (?= </a> )
    """,
    re.VERBOSE,
)
_FIRST_END = lazy(rf"</?+[aA]{NAME_END}")
_HIDDEN_END = {
    name: lazy(f"</(?:{either_case(name)}){NAME_END}[^>]*+>") for name in _NOT_SHOWN.split()
}
_IS_BLOCK = lazy(
    "/?(?:address|article|aside|blockquote|br|center|dd|details|div|dl|dt|fieldset|figcaption"
    "|figure|footer|form|h[1-6]|header|hr|legend|li|main|nav|ol|option|p|pre|section|summary|table"
    "|tbody|td|tfoot|th|thead|tr|ul)",
    re.ASCII | re.IGNORECASE,
)
_ALT = attribute_matcher("alt")
_NONE = Anchor()


class AnchorCollector:
    """A collector of one anchor for each href of a page: `found`, in document order."""

    def __init__(self, text: str) -> None:
        self.found: dict[str, Anchor] = {}
        self._text = text
        self._read_to = 0
        self._repeats_left = _MAX_REPEATS
        self._with_text: set[str] = set()

    def add(self, href: str, name: str, at: int) -> None:
        """Read the anchor of the next link.

        `at` is the end of the tag of an `a`, or of the name of an `area`. For each href the first
        anchor with a text is kept, else the first. At most 10,000 links are read for hrefs that
        were found before. No anchor is added if the same href with another fragment has a text:
        both are one URL, and a large page may have thousands of these.
        """
        # With the "#": if the base is not an http(s) URL, "#part" may be a URL where "" is none.
        without_fragment = "".join(href.partition("#")[:2])
        if without_fragment in self._with_text:
            return
        before = self.found.get(href)
        if before is not None:
            self._repeats_left -= 1
            if self._repeats_left < 0:
                return
        anchor = (
            self._read_a(at)
            if name == "a"
            else Anchor("area", _collapse(decoded_value(_ALT, self._text, at)))
        )
        if anchor.text:
            # It is added at the end, so that the anchors stay in document order.
            self.found.pop(href, None)
            self._with_text.add(without_fragment)
        if before is None or anchor.text:
            self.found[href] = anchor

    def _read_a(self, at: int) -> Anchor:
        if at >= self._read_to:
            text, self._read_to = read_until_end(self._text, at)
            return Anchor("a", text)
        # In SVG, the tokenizer finds links in elements that are skipped here. Their text ends at
        # the next link, so that no part of a page is read again and again.
        end = _FIRST_END.search(self._text, at, at + WINDOW)
        source = self._text[at : at + WINDOW if end is None else end.start()]
        return Anchor("a", read_until_end(source, 0)[0])


def prefer_text(pairs: Iterable[tuple[str, Anchor]]) -> dict[str, Anchor]:
    """Return an anchor for each name: the first with a text, else the first."""
    found: dict[str, Anchor] = {}
    for name, anchor in pairs:
        if name not in found or (anchor.text and not found[name].text):
            found[name] = anchor
    return found


def by_url(
    anchors: Mapping[str, Anchor], resolved: Mapping[str, str], malformed: Collection[str]
) -> dict[str, Anchor]:
    """Return the anchors of hrefs by the URLs that these resolve to, or by malformed href."""
    found: dict[str, Anchor] = {}
    if list(resolved) == list(anchors):
        found = dict(zip(resolved.values(), anchors.values(), strict=True))
    if len(found) < len(resolved):
        found = prefer_text(
            (resolved[href], anchor) for href, anchor in anchors.items() if href in resolved
        )
        found = dict.fromkeys(resolved.values(), _NONE) | found
    if malformed:
        names = ((href.partition("#")[0], anchor) for href, anchor in anchors.items())
        found |= prefer_text((name, anchor) for name, anchor in names if name in malformed)
    return found


def read_until_end(text: str, at: int) -> tuple[str, int]:
    """Return the text of an `a` whose content begins at a position, and where it ends."""
    if (simple := _SIMPLE_TEXT.match(text, at)) is not None:
        return " ".join(simple[1].split()), simple.end()
    limit = min(len(text), at + WINDOW)
    shown: list[str] = []
    alts: dict[str, None] = {}
    while at < limit:
        start = text.find("<", at, limit)
        token = None if start < 0 else _TOKEN.match(text, start, limit)
        shown.append(text[at : limit if start < 0 else start])
        if token is None or (kind := token.lastgroup) == "end":
            at = start if token else limit
            break
        at = token.end()
        if kind == "hidden":
            end = _HIDDEN_END[token["hidden"].lower()].search(text, at, limit)
            at = limit if end is None else end.end()
        elif kind == "less":
            shown.append("<")
        elif kind == "name" and _IS_BLOCK.fullmatch(token["name"]):
            shown.append(" ")
        elif kind == "name" and token["name"].lower() == "img":
            alts[decoded_value(_ALT, text, token.end("name"))] = None
    seen = _collapse("".join(map(entities.in_text, shown)))
    return seen or _collapse(" ".join(alts)), at


def _collapse(text: str) -> str:
    return " ".join(text.split())[:MAX_TEXT].rstrip(" ")
