"""Read the body of a page: its media type, encoding, title, links and head metadata."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from trio_crawler.link import Link
from trio_crawler.model import Anchor, Reason, Record
from trio_crawler.page import charset, link_targets, media, urls
from trio_crawler.page.fragments import keys_of
from trio_crawler.page.html.anchors import by_url
from trio_crawler.page.html.head import (
    HeadMetadata,
    has_no_metadata,
    parse_head,
    single_canonical,
)
from trio_crawler.page.html.links import Scan, scan
from trio_crawler.page.html.read import ParsedHtml, parse_html, scan_html, title_of
from trio_crawler.page.link_targets import Pointed
from trio_crawler.page.media import without_doctype

__all__ = ["Facts", "read"]


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
      is a page with the same links at the same places, if one is known.
    - `found`: everything that the page points to, and `targets`: the keys of the places that a
      fragment may name, if those were read; `targets` is None if they are unknown.
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
    pointed: Pointed | None = None
    outline: bytes = b""
    found: Sequence[Link] = ()
    targets: frozenset[int] | None = None


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
    encoding = charset.detect(body, content_type, markup=markup)
    if not (markup and follow):
        return Facts(kind, encoding)
    page, found, head, flaws = None, None, HeadMetadata(), tuple[Reason, ...]()
    simple = not (xml or anchors)
    # The usual page is never decoded.
    usual = simple and encoding == "utf-8" and not cut
    if usual and scanned:
        found = scan(body.removeprefix(BOM_UTF8), url)
    elif usual:
        page = scan_html(body.removeprefix(BOM_UTF8), url, encoding, max_links)
    if (page is None and found is None) or not has_no_metadata(body, agent):
        text, clean = charset.decode(body, encoding, cut=cut)
        if xml:
            text = without_doctype(text)
        if kind in media.XML and not media.has_html_root(text):
            return Facts(kind, encoding)
        head = parse_head(text, agent=agent, xml=xml)
        flaws = () if clean else (Reason.BAD_CHARSET,)
        again = text.encode("utf-8", "surrogatepass") if simple and not (usual and clean) else b""
        if simple and scanned:
            found = found or (again and scan(again, url, encoding)) or scan(text, url, encoding)
        elif again:
            page = scan_html(again, url, encoding, max_links)
    if found:
        if len(found.links) + len(found.nofollow) + len(found.others) <= max_links:
            return _of_scan(Facts(kind, encoding, flaws=flaws), found, head, url)
        text, _ = charset.decode(body, encoding, cut=cut)
    page = page or parse_html(
        text, url, encoding=encoding, xml=xml, max_links=max_links, anchors=anchors
    )
    links, more, malformed, beyond = page.hrefs, page.nofollow_hrefs, list[str](), page.beyond
    resolved: dict[str, str] = {}
    if not page.resolved:
        if len(links) + len(more) > max_links:
            page = _limited(page, max_links)
        resolved, malformed, room = urls.resolve_within(page.hrefs, page.base, encoding)
        links = list(resolved.values())
        others, bad, room = urls.resolve_within(page.nofollow_hrefs, page.base, encoding, room)
        resolved, more = resolved | others, list(others.values())
        malformed = list(dict.fromkeys(malformed + bad))
        beyond = page.beyond
        if room < 0:
            named = set(page.hrefs).union(page.nofollow_hrefs)
            beyond += len(named.difference(resolved, malformed))
    nofollow = frozenset(more).difference(links)
    return Facts(
        kind,
        encoding,
        page.title,
        tuple(dict.fromkeys((*links, *more))),
        tuple(malformed),
        beyond,
        (*flaws, Reason.TOO_MANY_LINKS) if beyond else flaws,
        nofollow,
        single_canonical(head.canonicals, page.base, encoding) if head.canonicals else None,
        head.robots,
        {} if page.anchors is None else by_url(page.anchors, resolved, malformed),
    )


def _of_scan(facts: Facts, found: Scan, head: HeadMetadata, url: str) -> Facts:
    """Return the facts of a page that was scanned, with what it points to, and its places.

    A fragment that names a place of the page itself is left out.
    """
    encoding, places = facts.charset, found.places
    links = [target for target, _, malformed in found.links if not malformed]
    more = [target for target, _, malformed in found.nofollow if not malformed]
    pointed = found.links + found.nofollow
    malformed = dict.fromkeys([target[0] for target in pointed if target[2]])
    distinct = dict.fromkeys(links + more)
    # A `data:` URL of an image may be as long as the page.
    assets = [(kind, link_targets.shortened(target)) for kind, target in found.others]
    if malformed or any(map(link_targets.may_be_long, distinct)):
        pointed = list(map(link_targets.shortened, pointed))
    here = [
        (url, "", False) if target[0] == url and target[1] in places else target
        for target in pointed
    ]
    return replace(
        facts,
        title=(found.title and title_of(found.title)) or None,
        links=tuple(distinct),
        malformed=tuple(malformed),
        nofollow=frozenset(more).difference(links),
        canonical=single_canonical(head.canonicals, found.base, encoding)
        if head.canonicals
        else None,
        meta_robots=head.robots,
        pointed=Pointed(tuple(dict.fromkeys(here)), tuple(dict.fromkeys(assets))),
        # The charset of a page matters for the queries of its links.
        outline=found.outline if encoding == "utf-8" else b"",
        targets=keys_of(places),
    )


def _limited(page: ParsedHtml, max_links: int) -> ParsedHtml:
    """Return the page with at most `max_links` hrefs; the others are counted in `beyond`."""
    # They are counted by href, not by URL: to resolve a million hrefs would take seconds.
    hrefs, nofollow_hrefs = _distinct(page.hrefs), _distinct(page.nofollow_hrefs)
    beyond = page.beyond + max(0, len(hrefs) + len(nofollow_hrefs) - max_links)
    hrefs = hrefs[:max_links]
    nofollow_hrefs = nofollow_hrefs[: max_links - len(hrefs)]
    return page._replace(hrefs=hrefs, nofollow_hrefs=nofollow_hrefs, beyond=beyond)


def _distinct(hrefs: list[str]) -> list[str]:
    return list(dict.fromkeys(href.partition("#")[0] for href in hrefs))
