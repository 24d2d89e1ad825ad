"""The page room: bytes come in, facts go out.

Everything here is pure and synchronous, needs time linear in the size of the body, and raises
nothing whatever a page contains. `read` gives the facts of one body; `urls` spells URLs and
answers about them; `charset`, `media`, `entities`, `tidy`, `scan`, `html`, `anchors` and `hints`
are the steps of `read`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from trio_crawler.model import Anchor, Reason
from trio_crawler.page import charset, media, urls
from trio_crawler.page.html import head as hints
from trio_crawler.page.html import read as html
from trio_crawler.page.html.anchors import by_url

__all__ = ["Facts", "read"]


@dataclass(frozen=True, slots=True)
class Facts:
    """Hold what one body says about itself.

    `content_type` is the media type, lower case and without parameters, sniffed when the
    header says nothing and "" when that fails too; `charset` a name of the WHATWG Encoding
    Standard, "" for what is not text. `links` are distinct absolute URLs of any scheme in
    document order, `malformed` the hrefs that are no URLs, `beyond` counts the links that
    `max_links` left unread; in a large page those that are written alike count each time.

    `nofollow` are those of `links` to which only links with rel=nofollow lead; they stand at the
    end of `links`. `canonical` is the http(s) URL, normalised, that the rel=canonical of the head
    name; None when they contradict each other. `meta_robots` are the distinct contents of the
    head's meta elements for robots, as they are written.

    `anchors`, if they were asked for, has for each URL of `links` and each href of `malformed` the
    first anchor with a text, else the first; one that is followed comes before one that is not.

    `digest` is the SHA-1 of a body that is not at hand, if the facts are told of such a one.
    """

    content_type: str
    charset: str = ""
    title: str | None = None
    links: tuple[str, ...] = field(default=(), repr=False)
    malformed: tuple[str, ...] = field(default=(), repr=False)
    beyond: int = 0
    flaws: tuple[Reason, ...] = ()
    nofollow: frozenset[str] = field(default=frozenset(), repr=False)
    canonical: str | None = None
    meta_robots: tuple[str, ...] = ()
    anchors: Mapping[str, Anchor] = field(default_factory=dict, repr=False)
    digest: bytes | None = None


def read(
    body: bytes,
    content_type: str,
    url: str,
    *,
    max_links: int = 100_000,
    follow: bool = True,
    agent: str = "",
    anchors: bool = False,
) -> Facts:
    """Read a body that came from `url` (normalised) under a raw Content-Type header.

    HTML and XHTML are read for their title, links and head; other text only gets its charset.
    With `follow` false, as for error pages, nothing is read but the charset. A meta element is
    for robots if its name is robots or, when given, the `agent` (a product token, any case).
    The `anchors` of links are read if asked for.
    """
    kind = media.media_type(content_type, body)
    if not media.textual(kind):
        return Facts(kind)
    markup = kind in (media.HTML, media.XHTML) or kind in media.XML
    encoding = charset.decide(body, content_type, markup=markup)
    if not (markup and follow):
        return Facts(kind, encoding)
    text, clean = charset.decode(body, encoding)
    if kind in media.XML and not media.has_html_root(text):
        return Facts(kind, encoding)
    xml = kind != media.HTML
    page = html.read(text, url, xml=xml, most=max_links, anchors=anchors)
    said = hints.read(text, agent=agent, xml=xml)
    return _facts(kind, encoding, clean, _within(max_links, page), said)


def _facts(kind: str, encoding: str, clean: bool, page: html.Markup, said: hints.Hints) -> Facts:
    links, nofollow, malformed, found = _resolve(page)
    flaws = () if clean else (Reason.BAD_CHARSET,)
    return Facts(
        kind,
        encoding,
        page.title,
        tuple(links),
        tuple(malformed),
        page.beyond,
        (*flaws, Reason.TOO_MANY_LINKS) if page.beyond else flaws,
        nofollow,
        hints.one_canonical(said.canonicals, page.base) if said.canonicals else None,
        said.robots,
        found,
    )


def _within(most: int, page: html.Markup) -> html.Markup:
    """Cut the hrefs at a limit, and count those that are cut."""
    hrefs, unfollowed = page.hrefs, page.unfollowed
    if len(hrefs) + len(unfollowed) <= most:
        return page
    # Those beyond the limit are counted as they are written: resolving a million of them would
    # take seconds.
    hrefs, unfollowed = _distinct(hrefs), _distinct(unfollowed)
    beyond = page.beyond + max(0, len(hrefs) + len(unfollowed) - most)
    hrefs = hrefs[:most]
    unfollowed = unfollowed[: most - len(hrefs)]
    return page._replace(hrefs=hrefs, unfollowed=unfollowed, beyond=beyond)


def _resolve(
    page: html.Markup,
) -> tuple[Collection[str], frozenset[str], list[str], Mapping[str, Anchor]]:
    """Resolve both kinds of hrefs.

    Returns the URLs, those that are never followed, what is no URL, and the anchors of all.
    """
    leads, malformed = _leads(page, page.hrefs)
    links = dict.fromkeys(leads.values())
    nofollow: frozenset[str] = frozenset()
    if page.unfollowed:
        more, bad = _leads(page, page.unfollowed)
        nofollow = frozenset(more.values()).difference(links)
        links |= dict.fromkeys(more.values())
        leads |= more
        malformed = list(dict.fromkeys(malformed + bad))
    found = {} if page.anchors is None else by_url(page.anchors, leads, malformed)
    return links, nofollow, malformed, found


def _leads(page: html.Markup, hrefs: list[str]) -> tuple[dict[str, str], list[str]]:
    return urls.leads(urls.plain(hrefs, page.base) if page.anchors is None else hrefs, page.base)


def _distinct(hrefs: list[str]) -> list[str]:
    return list(dict.fromkeys(href.partition("#")[0] for href in hrefs))
