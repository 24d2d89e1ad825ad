"""Read the body of a page: its media type, encoding, title, links and head metadata.

HTML is read as its Standard says, by one of two readers. `accelerator` has a compiled scanner.
`start_tags` reads what that gives up, XHTML, and the texts of links. In any page it finds what the
scanner would find there. Where that was not compiled, one expression finds the links of a usual
page: ▶ a page of linux-doc (37 KB, 142 links) takes half the time that its tags take one by one.
"""

from __future__ import annotations

import re
import sys
from codecs import BOM_UTF8
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache

import msgspec

from trio_crawler.facts import PageFacts
from trio_crawler.link import Link, LinkKind
from trio_crawler.model import Anchor, Reason, Record
from trio_crawler.page import accelerator, charset, entities, link_targets, media, urls
from trio_crawler.page.fragments import places_of
from trio_crawler.page.html import tokenizer
from trio_crawler.page.html.anchors import AnchorCollector, by_url, prefer_text
from trio_crawler.page.html.head import (
    NOTHING,
    REFERENCE,
    HeadMetadata,
    keywords_of,
    parse_head,
    parse_tags,
    single_canonical,
)
from trio_crawler.page.html.links import scan
from trio_crawler.page.html.start_tags import LINKS, in_python, start_tags
from trio_crawler.page.link_targets import Pointed, resolve_base
from trio_crawler.page.media import blank_doctype

__all__ = ["Facts", "read"]

_SPACES = re.compile(r"[\t\n\f\r ]+")
_MAX_TITLE_SOURCE = 16_384  # characters; the rest of a longer title is dropped
_MAX_COMPILED = 1 << 20  # characters
_MAX_CACHED, _MAX_CACHED_CHARACTERS = 4_096, 256

# A head with more occurrences of the keywords is read tag by tag.
_MAX_PLACES = 8
_BODY_FOLLOWS = re.compile(rb"</head[\t\n\f\r ]*+>[\t\n\f\r ]*+<(?:body|BODY)[\t\n\f\r >]").match
_MAY_CONTAIN_HEAD_END = ((b"<!--", b"-->"), (b"<script", b"</script"), (b"<style", b"</style"))


class Facts(Record, frozen=True):
    """The facts about one page, from its headers and its body.

    - `content_type`: the media type, in lower case and without parameters; sniffed if the header
      has none, and "" if sniffing fails, too.
    - `charset`: a name of the WHATWG Encoding Standard; "" if the body is not text.
    - `links`: distinct absolute URLs of any scheme, in document order.
    - `malformed`: the distinct hrefs that are not URLs.
    - `beyond`: the number of links that were not read because of `max_links`, or because the URLs
      of all links have more than 4 MiB. In a large page, repeated links are counted each time.
    - `nofollow`: the URLs of `links` that are linked only with rel=nofollow. They are the last
      ones of `links`.
    - `canonical`: the normalised http(s) URL of the rel=canonical links of the head; None if there
      is none, or if there are different ones.
    - `meta_robots`: the distinct contents of the head's meta elements for robots, as written.
    - `anchors`: if requested, one anchor for each URL of `links` and each href of `malformed`: the
      first with a text, else the first; links without rel=nofollow are preferred.
    - `pointed`: if the page was `scanned`, what it points to; None if it is not simple. `outline`
      is a page in UTF-8 with the same links at the same places, but for those to places of the
      page itself, if it is known.
    - `found`: everything that the page points to, and `targets`: the keys of the places that a
      fragment may name, if those were read; `targets` is None if they are unknown.
    - `kept`: the facts of the page that its outcome has, if the crawl keeps them.
    - `digest`: the SHA-1 of the body, if the body itself is unavailable (after a 304).
    """

    _unshown = frozenset(
        {"links", "malformed", "nofollow", "anchors", "pointed", "outline", "found", "targets"}
    )

    content_type: str
    charset: str = ""
    title: str | None = None
    links: tuple[str, ...] = ()
    malformed: tuple[str, ...] = ()
    beyond: int = 0
    flaws: tuple[Reason, ...] = ()
    nofollow: frozenset[str] = frozenset()
    canonical: str | None = None
    meta_robots: tuple[str, ...] = ()
    anchors: Mapping[str, Anchor] = msgspec.field(default_factory=dict)
    digest: bytes | None = None
    kept: PageFacts | None = None
    pointed: Pointed | None = None
    outline: bytes = b""
    found: Sequence[Link] = ()
    targets: AbstractSet[int] | None = None


def read(
    body: bytes,
    content_type: str,
    url: str,
    *,
    max_links: int = 100_000,
    follow: bool = True,
    agent: str = "",
    anchors: bool = False,
    cut: bool = False,
    scanned: bool = False,
) -> Facts:
    """Return the facts of a response from `url` (normalised), with a raw Content-Type header.

    The title, the links and the head are read only from HTML and XHTML, and only with `follow`
    (which is false for error pages). The charset is detected for all text. A meta element is for
    robots if its name is "robots" or `agent`, a product token in any case. Anchors are read only
    with `anchors`. A body that was `cut` may end within a character. With `scanned`, what the page
    points to is read, too, and its places.
    """
    kind = media.declared_type(content_type) or media.sniffed_type(body)
    markup, xml = kind in media.MARKUP, kind != media.HTML
    if not (markup or media.is_text(kind)):
        return Facts(kind)
    encoding = charset.by_header(content_type)
    if encoding is None or body.startswith(charset.BOMS):
        encoding = charset.detect(body, content_type, markup=markup)
    if not (markup and follow):
        return Facts(kind, encoding)
    flaws: tuple[Reason, ...] = ()
    find = scan_targets if scanned else scan_html
    simple = not (xml or anchors)
    # The usual page is never decoded.
    usual = simple and encoding == "utf-8" and not cut
    page = find(body.removeprefix(BOM_UTF8), url, encoding, max_links) if usual else None
    head = None if page is None else usual_head(body, keywords_of(agent))
    if page is None or head is None:
        text, clean = charset.decode(body, encoding, cut=cut)
        if xml:
            text = blank_doctype(text)
        if kind in media.XML and not media.has_html_root(text):
            return Facts(kind, encoding)
        if usual and clean and page is None:
            head = usual_head(body, keywords_of(agent))
        head = head or parse_head(text, agent=agent, xml=xml)
        flaws = () if clean else (Reason.BAD_CHARSET,)
        if simple and not (usual and clean):
            page = find(text.encode("utf-8", "surrogatepass"), url, encoding, max_links)
        page = (
            page
            or (simple and find(text, url, encoding, max_links))
            or parse_html(
                text, url, encoding=encoding, xml=xml, max_links=max_links, anchors=anchors
            )
        )
    links, more, malformed, beyond = page.hrefs, page.nofollow_hrefs, page.malformed, page.beyond
    resolved: dict[str, str] = {}
    if not page.resolved:
        resolved, malformed, room = urls.resolve_within(page.hrefs, page.base, encoding)
        links = list(resolved.values())
        others, bad, room = urls.resolve_within(page.nofollow_hrefs, page.base, encoding, room)
        resolved, more = resolved | others, list(others.values())
        malformed = dict.fromkeys(malformed + bad)
        if room < 0:
            named = set(page.hrefs).union(page.nofollow_hrefs)
            beyond += len(named.difference(resolved, malformed))
    return Facts(
        kind,
        encoding,
        page.title,
        tuple(dict.fromkeys((*links, *more))),
        tuple(malformed),
        beyond,
        (*flaws, Reason.TOO_MANY_LINKS) if beyond else flaws,
        frozenset(more).difference(links),
        single_canonical(head.canonicals, page.base, encoding) if head.canonicals else None,
        head.robots,
        {} if page.anchors is None else by_url(page.anchors, resolved, malformed),
        pointed=page.pointed,
        outline=page.outline,
        targets=page.targets,
    )


def usual_head(body: bytes, keywords: tuple[bytes, ...]) -> HeadMetadata | None:
    """Return what `parse_head` does for a page in UTF-8; None if it has to be decoded for that."""
    end = body.find(b"</head")
    head = body[:end].lower() if end > 0 and _BODY_FOLLOWS(body, end) else b""
    # If a comment, a script or a style is open there, this is not the end of the head.
    for start, its_end in _MAY_CONTAIN_HEAD_END if head else ():
        at = head.rfind(start)
        if at >= 0 and head.find(its_end, at) < 0:
            head = b""
    if not head:
        end, head = len(body), body.lower()
    places: list[int] = []
    for keyword in keywords:
        at = head.find(keyword)
        while at >= 0 and len(places) <= _MAX_PLACES:
            places.append(head.rfind(b"<", 0, at) + len("<link"))
            at = head.find(keyword, at + 1)
    if len(places) > _MAX_PLACES or (b"&" in head and REFERENCE(head)):
        return None
    if not places:
        # Without a keyword it does not matter where the head ends.
        return NOTHING
    if end == len(body):
        return None
    starts = [len(body[:place].decode(errors="ignore")) for place in sorted(set(places))]
    return parse_tags(body[:end].decode(), starts, keywords)


class ParsedHtml(msgspec.Struct, frozen=True):
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
    targets: AbstractSet[int] | None = None


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
    characters of source; None if it is empty. At most `max_links` distinct hrefs are read.
    """
    # Only distinct hrefs are kept: a page of 10 MiB may have a million links.
    found: dict[str, None] = {}
    unfollowed: dict[str, None] = {}
    beyond = 0
    written: str | None = None
    title: str | None = None
    collector = AnchorCollector(text) if anchors else None
    # A longer page is not read beyond 500,000 tags, which the compiled reader does not count.
    rows = (start_tags if len(text) <= _MAX_COMPILED else in_python)(text, xml=xml)
    for name, _, begin, end, content, content_end, foreign in rows:
        if not name:
            source, nofollow, at = text[begin:end], False, content
        elif name not in tokenizer.WITH_HREF or (foreign and name != "a"):
            beyond += name == "/"
            if name == "title" and title is None and not foreign:
                title = title_of(text[content:content_end])
            continue
        elif (match := tokenizer.HREF.match(text, begin)) is None:
            continue
        else:
            source, at = tokenizer.attribute_value(match), content if name == "a" else begin
            nofollow = tokenizer.is_nofollow(text, begin, end)
        if name == "base":
            written = entities.in_attribute(source) if written is None else written
        elif len(found) + len(unfollowed) < max_links:
            href = entities.in_attribute(source)
            (unfollowed if nofollow else found)[href] = None
            if collector is not None:
                collector.add(href, name or "a", at)
        else:
            beyond += source not in found and source not in unfollowed
    base = url if written is None else resolve_base(written, url, encoding)
    hrefs, nofollow_hrefs = (urls.without_fragments(each, base) for each in (found, unfollowed))
    texts = {} if collector is None else collector.found
    pairs = zip(urls.without_fragments(texts, base), texts.values(), strict=True)
    named = prefer_text(pairs) if anchors else None
    return ParsedHtml(hrefs, nofollow_hrefs, base, title or None, beyond, named)


def scan_html(source: bytes | str, url: str, encoding: str, max_links: int) -> ParsedHtml | None:
    """Return the result of `parse_html` for a usual page.

    Bytes are UTF-8 and read by the compiled scanner; a text is read in Python if that is not
    there. The hrefs are resolved if all are URLs. `encoding` is that of the document. None if the
    page is not read.
    """
    found: accelerator.Scanned | None = None
    if isinstance(source, str):
        if accelerator.scan is None and len(source) <= _MAX_COMPILED:
            found = _scan_text(source, max_links)
    elif accelerator.scan is not None:
        most = min(max_links, sys.maxsize)
        home = urls.directory(url) if "?" in url else url[: url.rfind("/") + 1]
        found = accelerator.scan(source, _decoded, most, url, *urls.joining(home, encoding))
    if found is None:
        return None
    resolved, hrefs, nofollow_hrefs, written, title = found
    base = url if written is None else resolve_base(entities.in_attribute(written), url, encoding)
    if not base.startswith(urls.WEB):
        return None
    return ParsedHtml(
        hrefs, nofollow_hrefs, base, (title and title_of(title)) or None, 0, resolved=resolved
    )


def _scan_text(text: str, most: int) -> accelerator.Scanned | None:
    """Return what the compiled `scan` does, but no URLs; None if the page is not usual."""
    found, unfollowed, title = dict[str, None](), dict[str, None](), None
    for href, given, named, other in LINKS.findall(text):
        if href:
            found[entities.in_attribute(href) if "&" in href or "\0" in href else href] = None
        elif other:
            return None
        elif (match := tokenizer.HREF.match(given)) is not None:
            href = entities.in_attribute(tokenizer.attribute_value(match))
            (unfollowed if tokenizer.is_nofollow(given, 0, len(given)) else found)[href] = None
        else:
            title = title or named
    if len(found) + len(unfollowed) > most:
        return None
    hrefs, more = (urls.without_fragments(each, urls.WEB[0]) for each in (found, unfollowed))
    return False, hrefs, more, None, title and title[1:]


def scan_targets(
    source: bytes | str, url: str, encoding: str, max_links: int
) -> ParsedHtml | None:
    """Return the links of a page with all that it points to, and its places.

    None if `scan` gives the page up, or if there are more links than are read.
    """
    found = scan(source, url, encoding)
    if found is None:
        return None
    links, more, (kinds, malformed), places = found[:4]
    if more:
        links = dict(links)
        link_targets.merge(links, more.items())
    pointed = Pointed({LinkKind.A: links, **kinds} if links else kinds, malformed)
    # No link takes less than a character.
    if len(source) > max_links and pointed.has_more(max_links):
        return None
    return ParsedHtml(
        list(found.links),
        list(more),
        found.base,
        (found.title and title_of(found.title)) or None,
        0,
        resolved=True,
        malformed=malformed.get(LinkKind.A, ()),
        pointed=pointed if found.is_usual else link_targets.shortened(pointed),
        outline=found.outline,
        targets=places_of(places),
    )


def _decoded(source: str) -> str:
    return _recent(source) if len(source) <= _MAX_CACHED_CHARACTERS else _without_fragment(source)


def _without_fragment(source: str) -> str:
    return urls.without_fragments((entities.in_attribute(source),), urls.WEB[0])[0]


# ▶ Addresses of mail that are all references, as some generators write them, take 5 us each.
_recent = lru_cache(_MAX_CACHED)(_without_fragment)


def title_of(source: str) -> str:
    """Return the text of a title from its source."""
    source = source[:_MAX_TITLE_SOURCE]
    if "&" in source or "\0" in source:
        source = entities.in_text(source)[:_MAX_TITLE_SOURCE]
    return _SPACES.sub(" ", source).strip(" ")
