"""Read the links of a body of any type that may have some: a page, a style sheet, a manifest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import chain
from typing import NamedTuple, overload

import httpx

from trio_crawler.arguments import check_kind, public
from trio_crawler.link import Link, LinkKind
from trio_crawler.model import Page
from trio_crawler.page import (
    charset,
    css,
    fragments,
    link_targets,
    media,
    values,
)
from trio_crawler.page.html.links import FoundLinks, read_links, read_outline
from trio_crawler.page.html.pointers import MAX_TEXT, MAX_WRITTEN, kind_of_rel
from trio_crawler.page.link_targets import Pointed, Wanted, wanted_of
from trio_crawler.page.media import blank_doctype

__all__ = [
    "Link",
    "LinkKind",
    "PageLinks",
    "links_of",
    "pointed_of",
    "read_body_links",
    "read_body_targets",
    "read_style_links",
]

MAX_LINKS = 100_000
"""The most links of one body that are read."""

STYLE_SHEET, MANIFEST = "text/css", "application/manifest+json"
READ = media.MARKUP | {STYLE_SHEET, MANIFEST}
"""The media types of bodies that are read for links."""


@public("trio_crawler.page")
class PageLinks(Sequence[Link]):
    """The links of a page, read from its body when the first one is asked for.

    `pointed` has the targets without that. A fragment that names a place of its own page is left
    out there. `kept` has the links that a check asks for: an outline, or else the body.
    """

    __slots__ = ("_links", "_source", "kept", "pointed")

    def __init__(self, pointed: Pointed, source: Source, kept: Source) -> None:
        self.pointed = pointed
        self.kept = kept
        self._source = source
        self._links: tuple[Link, ...] | None = None

    def _read(self) -> tuple[Link, ...]:
        if self._links is None:
            self._links = self._source.links()
        return self._links

    def __len__(self) -> int:
        return len(self._read())

    def __bool__(self) -> bool:
        return bool(self.pointed.kinds or self.pointed.malformed)

    @overload
    def __getitem__(self, index: int) -> Link: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Link]: ...
    def __getitem__(self, index: int | slice) -> Link | Sequence[Link]:
        return self._read()[index]

    def __iter__(self) -> Iterator[Link]:
        return iter(self._read())

    def __eq__(self, other: object) -> bool:
        return self._read() == (other._read() if isinstance(other, PageLinks) else other)

    def __hash__(self) -> int:
        return hash(self._read())

    def __repr__(self) -> str:
        return repr(self._read())


class Source(NamedTuple):
    """The response that links are read from, with the headers that matter; or its outline.

    `encoding` is that of the page if `body` is its outline, else "". Only a body has a
    Content-Type, and always.
    """

    body: bytes
    url: str
    headers: Sequence[tuple[str, str]]
    max_links: int
    encoding: str

    def links(self, wanted: Mapping[str, Wanted] | None = None) -> tuple[Link, ...]:
        """Return the links `wanted` of each kind at least, with their places and texts.

        None stands for all, of a body.
        """
        found, url, most = list[Link](), self.url, self.max_links
        if self.headers:
            # By default httpx makes bytes of ASCII only.
            headers = httpx.Headers(list(self.headers), encoding="utf-8")
            if not self.encoding:
                some = None if wanted is None else wanted_of(wanted, wanted)
                whole = read_body_links(self.body, headers, url, max_links=most, wanted=some)
                return tuple(whole.links)
            found, _ = _unplaced(_in_headers(headers, url), url, most)
        room, encoding = most - len(found), self.encoding
        return (*found, *read_outline(self.body, url, room, wanted or {}, encoding))


def pointed_of(found: Sequence[Link]) -> Pointed:
    """Return what a page points to, without reading the places and texts of links."""
    if isinstance(found, PageLinks):
        return found.pointed
    pointed = Pointed({}, {})
    for each in found:
        pointed.add(each.kind, (each.url, each.fragment, each.malformed))
    return pointed


def read_page_links(
    body: bytes,
    kind: str,
    url: str,
    pointed: Pointed,
    max_links: int,
    outline: bytes = b"",
    headers: httpx.Headers | None = None,
    encoding: str = "utf-8",
) -> PageLinks:
    """Return the links of a page that was scanned, and those of its headers if it has some.

    `kind` is its Content-Type, and `encoding` what it is in.
    """
    kept: list[tuple[str, str]] = []
    if headers is not None:
        kept = [(name, value) for name in ("link", "refresh") for value in headers.get_list(name)]
        for link in _unplaced(_in_headers(headers, url), url, max_links)[0]:
            pointed.add(link.kind, (link.url, link.fragment, link.malformed))
    whole = Source(body, url, [*kept, ("content-type", kind)], max_links, encoding="")
    short = Source(outline, url, kept, max_links, encoding) if outline else whole
    return PageLinks(pointed, whole, short)


@public("trio_crawler.page")
def links_of(page: Page) -> tuple[Link, ...]:
    """Return everything that a page points to, in document order, those of its headers first.

    The body is read as HTML, XHTML, a style sheet or a web application manifest, by the media type
    of its Content-Type header, which is sniffed if it is missing. A body of another type has no
    links. A link that occurs several times is returned several times, each with its place. At most
    100,000 links are read. Raises TypeError unless `page` is a Page.
    """
    check_kind("page", page, Page, "a Page")
    return tuple(read_body_links(page.body, page.headers, page.url).links)


def read_body_links(
    body: bytes,
    headers: httpx.Headers,
    url: str,
    *,
    encoding: str = "",
    max_links: int = MAX_LINKS,
    wanted: Wanted | None = None,
) -> FoundLinks:
    """Return the links of a response from `url`, which is normalised.

    `encoding` is that of the document that links to a style sheet, which counts if the sheet
    declares none. Of markup only links that are `wanted` are returned, None for all.
    """
    found, beyond = _unplaced(_in_headers(headers, url), url, max_links)
    content_type = headers.get("content-type", "")
    kind = media.declared_type(content_type) or media.sniffed_type(body)
    room = max_links - len(found)
    more: Sequence[Link] = ()
    left_out = 0
    if kind in media.MARKUP:
        encoding = charset.detect(body, content_type, markup=True)
        text, _ = charset.decode(body, encoding)
        xml = kind != media.HTML
        if xml:
            text = blank_doctype(text)
        if kind not in media.XML or media.has_html_root(text):
            read = partial(read_links, encoding=encoding, xml=xml, max_links=room)
            more, left_out = read(text, url, wanted=wanted)
    elif kind == STYLE_SHEET:
        text, _ = charset.decode(body, charset.detect_style(body, content_type, encoding))
        more, left_out = read_style_links(text, url, max_links=room)
    elif kind == MANIFEST:
        rows = (
            (0, kind, value, value[:MAX_WRITTEN], "", False)
            for kind, value in values.in_manifest(body)
        )
        more, left_out = _unplaced(rows, url, room)
    return FoundLinks((*found, *more), beyond + left_out)


def read_body_targets(body: bytes, headers: httpx.Headers) -> AbstractSet[int] | None:
    """Return the keys of the places in a body that a fragment may name; None if it is no HTML.

    It is None, too, if not all of the body was read.
    """
    content_type = headers.get("content-type", "")
    kind = media.declared_type(content_type) or media.sniffed_type(body)
    if kind not in media.MARKUP:
        return None
    text, _ = charset.decode(body, charset.detect(body, content_type, markup=True))
    xml = kind != media.HTML
    return fragments.read_targets(blank_doctype(text) if xml else text, xml=xml)


def read_style_links(text: str, url: str, *, max_links: int = MAX_LINKS) -> tuple[list[Link], int]:
    """Return the links of a style sheet from `url`, and how many were not read."""
    rows: list[link_targets.Row] = []
    beyond = 0
    for found in css.style_urls(text):
        if len(rows) < max_links:
            kind = LinkKind.STYLE if found.imported else LinkKind.CSS
            rows.append((found.at, kind, found.url, found.written[:MAX_WRITTEN], "", False))
        else:
            beyond += 1
    links, left_out = link_targets.links(text, rows, url)
    return links, beyond + left_out


def _unplaced(
    rows: Iterable[link_targets.Row], url: str, max_links: int
) -> tuple[list[Link], int]:
    """Return the links of rows that have no places, and how many were not read."""
    every = list(rows)
    found, left_out = link_targets.links("", every[:max_links], url) if every else ([], 0)
    left_out += max(0, len(every) - max_links)
    return [link._replace(line=0, column=0) for link in found], left_out


def _in_headers(headers: httpx.Headers, url: str) -> Iterator[link_targets.Row]:
    """Yield the links in the Link (RFC 8288) and Refresh headers."""
    if "link" in headers:
        for found in chain.from_iterable(map(values.in_link_field, headers.get_list("link"))):
            kind = kind_of_rel(found.rel)
            if kind is not None and found.is_about(url):
                text = found.title[:MAX_TEXT]
                yield 0, kind, found.target, found.target[:MAX_WRITTEN], text, False
    if "refresh" in headers and (target := values.in_refresh(headers["refresh"])):
        yield 0, LinkKind.REFRESH, target, target[:MAX_WRITTEN], "", False
