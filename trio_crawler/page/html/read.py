"""Parse HTML for its title and its links, as the HTML Standard does, with one of three readers.

- `accelerator` has a compiled scanner, which finds in a page what the others would find there.
- lexbor's tree reads other small pages. A tree takes quadratic time for three shapes of a page:
  deep nesting, many attributes on one tag, and open formatting elements (24 KiB of `<b x=1><p>`
  take 2.4 s and 1 GiB).
- `tokenizer` reads other large pages, XHTML, and the texts of links. To recognise the three shapes
  takes a pass over the tags of a page, and such a pass can find the links, too.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

from trio_crawler.link import LinkKind
from trio_crawler.model import Anchor
from trio_crawler.page import accelerator, entities, link_targets, urls
from trio_crawler.page.fragments import keys_of
from trio_crawler.page.html import tokenizer
from trio_crawler.page.html.anchors import AnchorCollector, prefer_text
from trio_crawler.page.html.links import scan
from trio_crawler.page.link_targets import Pointed, resolve_base

_SPACES = re.compile(r"[\t\n\f\r ]+")
_MAX_TITLE_SOURCE = 16_384  # characters; the rest of a longer title is dropped
_MAX_COMPILED = 1 << 20
_MAX_CACHED, _MAX_CACHED_CHARACTERS = 4_096, 256

MAX_TREE_CHARACTERS, MAX_TREE_TAGS = 8 * 1024, 500
"""A page with at most this many characters and tags takes lexbor at most 0.3 s and 128 MiB.

The most expensive shape is a formatting element with hundreds of attributes, which each paragraph
clones: 31 KB of it take 0.7 s and 830 MB.
"""


class _Found(NamedTuple):
    """The results of a reader: references are decoded, `anchors` is None if not requested."""

    hrefs: list[str]
    nofollow_hrefs: list[str]
    base: str | None
    title: str | None
    beyond: int
    anchors: dict[str, Anchor] | None


class ParsedHtml(NamedTuple):
    """The title of a page, its hrefs, and the base URL to resolve the hrefs.

    `nofollow_hrefs` are the hrefs of links with rel=nofollow, `hrefs` all others. References are
    decoded; fragments are cut if the base is an http(s) URL. `beyond` is the number of links that
    were not read because there were too many. `anchors`, if requested, has one anchor for each
    href. If they are `resolved` there are normalised URLs in place of the hrefs, each once, and
    `malformed` has the hrefs that are not URLs. For the other fields see `Facts`.
    """

    hrefs: list[str]
    nofollow_hrefs: list[str]
    base: str
    title: str | None
    beyond: int
    anchors: dict[str, Anchor] | None = None
    resolved: bool = False
    malformed: Collection[str] = ()
    pointed: Pointed | None = None
    outline: bytes = b""
    targets: frozenset[int] | None = None


def parse_html(
    text: str,
    url: str,
    *,
    encoding: str = "utf-8",
    xml: bool = False,
    max_links: int = 100_000,
    anchors: bool = False,
) -> ParsedHtml:
    """Return the title, the base URL, and the hrefs of `a` and `area`.

    `url` is the normalised URL of the document, and `encoding` its encoding. Links in `template`
    are ignored, since a browser does not show them. The base comes from the first `base` with a
    href (2.4.3). The title is the first one, with white space collapsed, from at most 16,384
    characters of source; None if it is empty. From a large page at most `max_links` distinct
    hrefs are read.
    """
    if xml or anchors or max_links < MAX_TREE_TAGS or not _is_small(text):
        # Not from the tree: it moves the texts of links into several elements, and out of tables.
        found = _read_tags(text, max_links, xml=xml, anchors=anchors)
    else:
        found = _read_tree(text)
    base = url if found.base is None else resolve_base(found.base, url, encoding)
    hrefs, nofollow_hrefs = urls.without_fragments(found.hrefs, base), found.nofollow_hrefs
    if nofollow_hrefs:
        nofollow_hrefs = urls.without_fragments(nofollow_hrefs, base)
    named = found.anchors
    if named is not None:
        named = prefer_text(zip(urls.without_fragments(named, base), named.values(), strict=True))
    return ParsedHtml(hrefs, nofollow_hrefs, base, found.title or None, found.beyond, named)


def scan_html(body: bytes, url: str, encoding: str, max_links: int) -> ParsedHtml | None:
    """Return the result of `parse_html` for a body in UTF-8, by the compiled scanner.

    The hrefs are resolved if all are URLs. `encoding` is that of the document. None if there is no
    such scanner, or if it cannot read the page.
    """
    if accelerator.scan is None:
        return None
    most = min(max_links, sys.maxsize)
    # The tree of a page that is not tidy may have its links in another order.
    how = _decoded, MAX_TREE_CHARACTERS, MAX_TREE_TAGS, most
    found = accelerator.scan(body, *how, *urls.joining(url, encoding))
    if found is None:
        return None
    resolved, hrefs, nofollow_hrefs, source, title = found
    base = url if source is None else resolve_base(entities.in_attribute(source), url, encoding)
    if not base.startswith(urls.WEB):
        return None
    title = (title and title_of(title)) or None
    return ParsedHtml(hrefs, nofollow_hrefs, base, title, 0, resolved=resolved)


def scan_targets(
    source: bytes | str, url: str, encoding: str, max_links: int
) -> ParsedHtml | None:
    """Return the links of a page with all that it points to, and its places.

    A fragment that names a place of the page itself is left out. None if `scan` gives the page up,
    or if there are more links than are read.
    """
    found = scan(source, url, encoding)
    if found is None:
        return None
    links, more, (kinds, malformed), places = found[:4]
    if more:
        links = dict(links)
        link_targets.merge(links, more.items())
    if named := links.get(url):
        named -= places
    pointed = Pointed({LinkKind.A: links, **kinds} if links else kinds, malformed)
    if pointed.size() > max_links:
        return None
    if malformed or any(
        map(link_targets.may_be_long, chain.from_iterable(pointed.kinds.values()))
    ):
        # A `data:` URL of an image may be as long as the page.
        pointed = link_targets.shortened(pointed)
    return ParsedHtml(
        list(found.links),
        list(more),
        found.base,
        (found.title and title_of(found.title)) or None,
        0,
        resolved=True,
        malformed=malformed.get(LinkKind.A, ()),
        pointed=pointed,
        # The charset of a page matters for the queries of its links.
        outline=found.outline if encoding == "utf-8" else b"",
        targets=keys_of(places),
    )


def _decoded(source: str) -> str:
    return _recent(source) if len(source) <= _MAX_CACHED_CHARACTERS else _without_fragment(source)


def _without_fragment(source: str) -> str:
    return urls.without_fragments((entities.in_attribute(source),), urls.WEB[0])[0]


# ▶ Addresses of mail that are all references, as some generators write them, take 5 us each.
_recent = lru_cache(_MAX_CACHED)(_without_fragment)


def _is_small(text: str) -> bool:
    return len(text) <= MAX_TREE_CHARACTERS and text.count("<") <= MAX_TREE_TAGS


def _read_tree(text: str) -> _Found:
    # Imported late: few pages need a tree.
    from selectolax.lexbor import LexborHTMLParser

    # No node may be kept: each node keeps the whole tree in memory.
    tree = LexborHTMLParser(text)
    nodes = tree.css("a[href], area[href]") if tree.tags("area") else tree.tags("a")
    hrefs: list[str] = []
    nofollow_hrefs: list[str] = []
    for attributes in [node.attributes for node in nodes]:
        if "href" in attributes:
            kind = nofollow_hrefs if tokenizer.has_nofollow(attributes.get("rel") or "") else hrefs
            kind.append(attributes["href"] or "")
    bases = (node.attributes["href"] for node in tree.tags("base") if "href" in node.attributes)
    titles = (node.text() for node in tree.tags("title") if not _is_foreign(node))
    base = next((base or "" for base in bases), None)
    title = _SPACES.sub(" ", next(titles, "")[:_MAX_TITLE_SOURCE]).strip(" ")
    return _Found(hrefs, nofollow_hrefs, base, title, 0, None)


def _read_tags(text: str, max_links: int, *, xml: bool, anchors: bool) -> _Found:
    # Only distinct hrefs are kept: a page of 10 MiB may have a million links.
    hrefs: dict[str, None] = {}
    nofollow_hrefs: dict[str, None] = {}
    beyond = 0
    base: str | None = None
    title: str | None = None
    collector = AnchorCollector(text) if anchors else None
    for name, source, nofollow, at in _tags(text, xml=xml):
        if name == "title":
            title = title_of(source) if title is None else title
        elif name == "base":
            base = entities.in_attribute(source) if base is None else base
        elif name and len(hrefs) + len(nofollow_hrefs) < max_links:
            href = entities.in_attribute(source)
            (nofollow_hrefs if nofollow else hrefs)[href] = None
            if collector is not None:
                collector.add(href, name, at)
        else:
            beyond += source not in hrefs and source not in nofollow_hrefs
    by_href = None if collector is None else collector.found
    return _Found(list(hrefs), list(nofollow_hrefs), base, title, beyond, by_href)


def _tags(text: str, *, xml: bool) -> Iterator[tuple[str, str, bool, int]]:
    """Yield what `tokenizer.tags` does, found by the compiled scanner if it can read the page."""
    # In a longer page the tokenizer stops after 500,000 tags, and the scanner would not.
    scan = None if xml or len(text) > _MAX_COMPILED else accelerator.tags
    compiled = None if scan is None else scan(text)
    if compiled is None:
        yield from tokenizer.tags(text, xml=xml)
        return
    for name, _, begin, end, content, content_end, _ in compiled:
        if not name:
            yield "a", text[begin:end], False, content
        elif name == "title":
            yield name, text[content:content_end], False, content
        elif name in tokenizer.WITH_HREF and (href := tokenizer.HREF.match(text, begin)):
            nofollow = tokenizer.is_nofollow(text, begin, end)
            place = content if name == "a" else begin
            yield name, tokenizer.attribute_value(href), nofollow, place


def _is_foreign(node: LexborNode) -> bool:
    parent = node.parent
    while parent is not None and parent.tag not in ("svg", "math"):
        parent = parent.parent
    return parent is not None


def title_of(source: str) -> str:
    """Return the text of a title from its source."""
    source = source[:_MAX_TITLE_SOURCE]
    if "&" in source or "\0" in source:
        source = entities.in_text(source)[:_MAX_TITLE_SOURCE]
    return _SPACES.sub(" ", source).strip(" ")
