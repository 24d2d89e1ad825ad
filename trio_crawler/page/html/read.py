"""What a page says: its title and where its links lead, as the HTML Standard reads it.

Tidy pages, nearly all, are read from tag to tag; of the others small ones from lexbor's tree. Its
construction is quadratic on three shapes: deep nesting, many attributes on one tag, formatting
elements left open (24 KiB of `<b x=1><p>` cost 2.4 s and 1 GiB). To tell such a page from an
honest one takes a pass over its tags, and that pass finds the links as well: so larger untidy
pages, and XHTML, are read by the scan alone.
"""

from __future__ import annotations

import re
from typing import NamedTuple, TypeAlias

from selectolax.lexbor import LexborHTMLParser, LexborNode

from trio_crawler.model import Anchor
from trio_crawler.page import entities, urls
from trio_crawler.page.html import fast_links as tidy
from trio_crawler.page.html import tokenizer as scan
from trio_crawler.page.html.anchors import Marks, better

_SPACES = re.compile(r"[\t\n\f\r ]+")
_TITLE_SOURCE = 16_384  # characters; longer titles are cut, no reader wants them
_NO_BASE = ("data:", "javascript:")

SMALL_TEXT, SMALL_TAGS = 8 * 1024, 500
"""Characters and tags up to which no page costs lexbor more than 0.3 s and 128 MiB.

The dearest shape is a formatting element with hundreds of attributes that every paragraph
clones: 31 KB of it took 0.7 s and 830 MB.
"""

# Anchors by href, or what they can be read from, if they are asked for.
_Marks: TypeAlias = dict[str, Anchor] | tidy.Behind | None
_Found: TypeAlias = tuple[list[str], list[str], str | None, str | None, int, _Marks]


class Markup(NamedTuple):
    """Hold what was read: hrefs as written, entities decoded, and the base to resolve them.

    The hrefs of links with rel=nofollow are the `unfollowed`. `beyond` counts the links that were
    left out because there are too many. With `anchors` the hrefs are `urls.plain`, as the names in
    those are.
    """

    hrefs: list[str]
    unfollowed: list[str]
    base: str
    title: str | None
    beyond: int
    anchors: dict[str, Anchor] | None = None


def read(
    text: str, url: str, *, xml: bool = False, most: int = 100_000, anchors: bool = False
) -> Markup:
    """Read the hrefs of `a` and `area`, the base URL and the title.

    `url` is the document's, normalised. Links in `template` are none (nobody can follow them);
    the base is that of the first `base` with an href (2.4.3); the title is the first, white
    space collapsed, None when it is empty, and at most 16,384 characters of source. Of a large
    page no more than `most` distinct hrefs are kept.
    """
    found = None if xml else _from_parts(text, anchors=anchors)
    if found is None:
        found = _from_untidy(text, most, xml=xml, anchors=anchors)
    hrefs, unfollowed, base, title, beyond, marks = found
    base = url if base is None else _base(base, url)
    if marks is None:
        return Markup(hrefs, unfollowed, base, title or None, beyond)
    return _marked(Markup(hrefs, unfollowed, base, title or None, beyond), marks)


def _marked(page: Markup, marks: dict[str, Anchor] | tidy.Behind) -> Markup:
    hrefs, unfollowed = urls.plain(page.hrefs, page.base), urls.plain(page.unfollowed, page.base)
    if isinstance(marks, tidy.Behind):
        found = marks.anchors(hrefs, unfollowed)
    else:
        found = better(zip(urls.plain(marks, page.base), marks.values(), strict=True))
    return page._replace(hrefs=hrefs, unfollowed=unfollowed, anchors=found)


def _from_parts(text: str, *, anchors: bool) -> _Found | None:
    found = tidy.read(text, anchors=anchors)
    if found is None:
        return None
    hrefs = found.hrefs
    # Not looked for in the text: where that takes two bytes a character, a NUL is slow to find.
    if "&" in (joined := "".join(hrefs)) or "\0" in joined:
        hrefs = [entities.in_attribute(href) for href in hrefs]
    unfollowed = [entities.in_attribute(href) for href in found.unfollowed]
    base = None if found.base is None else entities.in_attribute(found.base)
    title = None if found.title is None else _title(found.title)
    return hrefs, unfollowed, base, title, 0, found.behind


def _from_untidy(text: str, most: int, *, xml: bool, anchors: bool) -> _Found:
    if xml or len(text) > SMALL_TEXT or text.count("<") > SMALL_TAGS:
        return _from_tags(text, most, xml=xml, anchors=anchors)
    # The tree moves the texts of links: into several elements, out of tables.
    marks = _from_tags(text, most, xml=False, anchors=True)[-1] if anchors else None
    return _from_tree(text, marks)


def _from_tree(text: str, marks: _Marks) -> _Found:
    # The tree is gone on return: one node left over would keep all of it.
    tree = LexborHTMLParser(text)
    nodes = tree.css("a[href], area[href]") if tree.tags("area") else tree.tags("a")
    hrefs: list[str] = []
    unfollowed: list[str] = []
    for attributes in [node.attributes for node in nodes]:
        if "href" in attributes:
            kind = unfollowed if scan.holds_nofollow(attributes.get("rel") or "") else hrefs
            kind.append(attributes["href"] or "")
    bases = (node.attributes["href"] for node in tree.tags("base") if "href" in node.attributes)
    titles = (node.text() for node in tree.tags("title") if not _foreign(node))
    base = next((base or "" for base in bases), None)
    return hrefs, unfollowed, base, _folded(next(titles, "")), 0, marks


def _from_tags(text: str, most: int, *, xml: bool, anchors: bool) -> _Found:
    # Distinct at once: a page of 10 MiB has up to a million links.
    hrefs: dict[str, None] = {}
    unfollowed: dict[str, None] = {}
    beyond = 0
    base: str | None = None
    title: str | None = None
    marks = Marks(text) if anchors else None
    for name, source, nofollow, at in scan.tags(text, xml=xml):
        if name == "title":
            title = _title(source) if title is None else title
        elif name == "base":
            base = entities.in_attribute(source) if base is None else base
        elif name and len(hrefs) + len(unfollowed) < most:
            href = entities.in_attribute(source)
            (unfollowed if nofollow else hrefs)[href] = None
            if marks is not None:
                marks.add(href, name, at)
        else:
            beyond += source not in hrefs and source not in unfollowed
    found = None if marks is None else marks.found
    return list(hrefs), list(unfollowed), base, title, beyond, found


def _foreign(node: LexborNode) -> bool:
    parent = node.parent
    while parent is not None and parent.tag not in ("svg", "math"):
        parent = parent.parent
    return parent is not None


def _folded(text: str) -> str:
    return _SPACES.sub(" ", text[:_TITLE_SOURCE]).strip(" ")


def _title(source: str) -> str:
    return _folded(entities.in_text(source[:_TITLE_SOURCE]))


def _base(href: str, url: str) -> str:
    """Resolve a base's href; one that is no URL, or holds no place, stands for the page's."""
    try:
        base = urls.normalise(href, url)
    except ValueError:
        return url
    return url if base.startswith(_NO_BASE) else base
