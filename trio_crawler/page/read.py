"""Read the body of a page: its media type, encoding, title, links and head metadata."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence

import msgspec

from trio_crawler.facts import PageFacts
from trio_crawler.link import Link
from trio_crawler.model import Anchor, Reason, Record
from trio_crawler.page import charset, media, urls
from trio_crawler.page.html.anchors import by_url
from trio_crawler.page.html.head import parse_head, single_canonical, usual_head
from trio_crawler.page.html.read import ParsedHtml, parse_html, scan_html, scan_targets
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
    page: ParsedHtml | None = None
    flaws: tuple[Reason, ...] = ()
    find = scan_targets if scanned else scan_html
    simple = not (xml or anchors)
    # The usual page is never decoded.
    usual = simple and encoding == "utf-8" and not cut
    if usual:
        page = find(body.removeprefix(BOM_UTF8), url, encoding, max_links)
    head = None if page is None else usual_head(body, agent)
    if page is None or head is None:
        text, clean = charset.decode(body, encoding, cut=cut)
        if xml:
            text = without_doctype(text)
        if kind in media.XML and not media.has_html_root(text):
            return Facts(kind, encoding)
        head = parse_head(text, agent=agent, xml=xml)
        flaws = () if clean else (Reason.BAD_CHARSET,)
        if simple and not (usual and clean):
            page = find(text.encode("utf-8", "surrogatepass"), url, encoding, max_links)
        if simple and scanned:
            page = page or scan_targets(text, url, encoding, max_links)
        if page is None:
            page = parse_html(
                text, url, encoding=encoding, xml=xml, max_links=max_links, anchors=anchors
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
        pointed=page.pointed,
        outline=page.outline,
        targets=page.targets,
    )
