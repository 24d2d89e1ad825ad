"""The page room: bytes come in, facts go out.

Everything here is pure and synchronous, needs time linear in the size of the body, and raises
nothing whatever a page contains. `read` gives the facts of one body; `urls` spells URLs and
answers about them; `charset`, `media`, `entities`, `tidy`, `scan` and `html` are the steps of
`read`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice

from trio_crawler.model import Reason
from trio_crawler.page import charset, html, media, urls

__all__ = ["Facts", "read"]


@dataclass(frozen=True, slots=True)
class Facts:
    """Hold what one body says about itself.

    `content_type` is the media type, lower case and without parameters, sniffed when the
    header says nothing and "" when that fails too; `charset` a name of the WHATWG Encoding
    Standard, "" for what is not text. `links` are distinct absolute URLs of any scheme in
    document order, `malformed` the hrefs that are no URLs, `beyond` counts the links that
    `max_links` left unread; in a large page those that are written alike count each time.
    """

    content_type: str
    charset: str = ""
    title: str | None = None
    links: tuple[str, ...] = field(default=(), repr=False)
    malformed: tuple[str, ...] = field(default=(), repr=False)
    beyond: int = 0
    flaws: tuple[Reason, ...] = ()


def read(
    body: bytes, content_type: str, url: str, *, max_links: int = 100_000, follow: bool = True
) -> Facts:
    """Read a body that came from `url` (normalised) under a raw Content-Type header.

    HTML and XHTML are read for their title and links; other text only gets its charset.
    With `follow` false, as for error pages, nothing is read but the charset.
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
    page = html.read(text, url, xml=kind != media.HTML, most=max_links)
    return _facts(kind, encoding, page, max_links, () if clean else (Reason.BAD_CHARSET,))


def _facts(
    kind: str, encoding: str, page: html.Markup, max_links: int, flaws: tuple[Reason, ...]
) -> Facts:
    hrefs, beyond = page.hrefs, page.beyond
    if len(hrefs) > max_links:
        # Those beyond the limit are counted as they are written: resolving a million of them
        # would take seconds.
        distinct = dict.fromkeys(href.partition("#")[0] for href in hrefs)
        hrefs, beyond = list(islice(distinct, max_links)), max(0, len(distinct) - max_links)
    links, malformed = urls.resolve(hrefs, page.base)
    if beyond:
        flaws = (*flaws, Reason.TOO_MANY_LINKS)
    return Facts(kind, encoding, page.title, tuple(links), tuple(malformed), beyond, flaws)
