"""Read everything that a page of HTML or XHTML points to, with the places.

▶ The tags come from our own tokenizer for every page. lexbor's tree, with the attributes of all
elements that may point somewhere, takes 1.29 ms for a page of python3-doc (336 links, 96 KB), and
has no places or spellings. The tokenizer takes 1.24 ms with these and the texts of links, and no
page makes it quadratic. On the 1,540 pages of python3-doc, sqlite3-doc and apache2-doc both find
the same; where tags are misnested, the tree repeats a link.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import NamedTuple

from trio_crawler.link import Link, LinkKind
from trio_crawler.page import css, entities, link_targets
from trio_crawler.page.html import anchors
from trio_crawler.page.html.pointers import MAX_TEXT, MAX_WRITTEN, Pointer, described, pointers
from trio_crawler.page.html.read import resolve_base
from trio_crawler.page.html.start_tags import (
    PLACE,
    StartTag,
    attributes,
    is_style_sheet,
    start_tags,
)

# An href that resolves to a URL with the same end, whatever its base: the end is its group.
_PLAIN = re.compile(
    r"(?!//) (?: [\w./-]* / )? ( [\w-] [\w.-]* ) (?: \# .* )?", re.A | re.S | re.X
).fullmatch
_MAX_FRAMES = 3  # documents in a srcdoc of a srcdoc are not read


class FoundLinks(NamedTuple):
    """The links of a document in its order, their base URL, and how many were not read."""

    links: list[Link]
    base: str
    beyond: int = 0


def read_links(
    text: str,
    url: str,
    *,
    encoding: str = "utf-8",
    xml: bool = False,
    max_links: int = 100_000,
    wanted: Collection[str] | None = None,
) -> FoundLinks:
    """Return everything that a page points to, in document order; repeated links are repeated.

    `url` is the normalised URL of the document, and `encoding` its encoding. The content of
    `template` is ignored, since a browser does not show it; that of `noscript` is read, as in a
    browser without scripts. At most `max_links` links are read, with distinct URLs of at most
    4 MiB, and 500,000 tags that may contain one; `beyond` counts the links that were left out (at
    least one if tags were). Only links to URLs that are `wanted` are returned, None for all.
    """
    ends = None if wanted is None else frozenset(url.rpartition("/")[2] for url in wanted)
    collector = _Collector(max_links, ends=ends)
    collector.read(text, xml=xml)
    base = url if collector.base is None else resolve_base(collector.base, url, encoding)
    links, left_out = link_targets.links(text, collector.rows, base, encoding, wanted, _shown)
    return FoundLinks(links, base, collector.beyond + left_out)


class _Collector:
    """A collector of the links of a document, and of the documents in its frames."""

    def __init__(
        self, max_links: int, frames: int = _MAX_FRAMES, ends: Collection[str] | None = None
    ) -> None:
        self.rows: list[link_targets.Row] = []
        self.base: str | None = None
        self.beyond = 0
        self._room, self._frames, self._ends = max_links, frames, ends

    def read(self, text: str, *, xml: bool) -> None:
        """Add the links of a document."""
        rows, ends = self.rows, self._ends
        for tag in start_tags(text, xml=xml):
            name, start, begin, end, content, _, foreign = tag
            if not name:
                href = text[begin:end]
                if self._room <= 0:
                    self.beyond += 1
                    continue
                self._room -= 1
                if ends is not None and (plain := _PLAIN(href)) and plain[1] not in ends:
                    continue
                value = entities.in_attribute(href) if "&" in href or "\0" in href else href
                rows.append((start, LinkKind.A, value, href[:MAX_WRITTEN], content, False))
            elif name == PLACE:
                continue
            elif name == "/":
                self.beyond += 1
            elif name == "base" and not foreign:
                if self.base is None and "href" in (found := attributes(text[begin:end])):
                    self.base = entities.in_attribute(found["href"])
            else:
                room = self._room > 0
                empty = xml and text.startswith("/>", content - 2)
                shown = _text_of(text, content) if name == "a" and room and not empty else ""
                self._add(pointers(name, text[begin:end], foreign=foreign), start, shown)
                if name == "style":
                    self._read_style(text, tag)
                elif name == "iframe" and not foreign:
                    self._read_frame(text[begin:end], start)

    def _add(self, found: Iterable[Pointer], start: int, shown: str) -> None:
        for kind, value, written, attribute, nofollow in found:
            if self._room > 0:
                self._room -= 1
                self.rows.append((start, kind, value, written, shown or attribute, nofollow))
            else:
                self.beyond += 1

    def _read_style(self, text: str, tag: StartTag) -> None:
        _, _, begin, end, content, content_end, foreign = tag
        if not is_style_sheet(text[begin:end]):
            return
        if foreign:
            # In SVG the content of a style is no raw text: it ends at the next tag.
            close = "]]>" if text.startswith("<![CDATA[", content) else "<"
            content_end = text.find(close, content)
        for url, written, at, imported in css.style_urls(text, content, content_end):
            kind = LinkKind.STYLE if imported else LinkKind.CSS
            self._add((Pointer(kind, url, written[:MAX_WRITTEN]),), at, "")

    def _read_frame(self, source: str, start: int) -> None:
        srcdoc = attributes(source).get("srcdoc")
        if srcdoc is None or self._frames == 0:
            return
        inner = _Collector(self._room, self._frames - 1)
        text = entities.in_attribute(srcdoc)
        inner.read(text, xml=False)
        for at, kind, value, written, shown, nofollow in inner.rows:
            told = shown if isinstance(shown, str) else _shown(text, at, shown)
            self.rows.append((start, kind, value, written, told, nofollow))
        self.beyond += inner.beyond
        self._room = inner._room


def _shown(text: str, start: int, content: int) -> str:
    """Return the text of a usual link, or what its attributes say."""
    return _text_of(text, content) or described(attributes(text[start + 2 : content - 1]))


def _text_of(text: str, at: int) -> str:
    """Return the visible text of an `a` whose content begins at a position."""
    shown = anchors.text_of(text, at)
    return shown if len(shown) <= MAX_TEXT else shown[:MAX_TEXT].rstrip()
