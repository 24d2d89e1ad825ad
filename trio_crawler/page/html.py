"""What a page says: its title and where its links lead, as the HTML Standard reads it."""

from __future__ import annotations

import re
from typing import NamedTuple

from trio_crawler.page import entities, scan, urls

_SPACES = re.compile(r"[\t\n\f\r ]+")
_TITLE_SOURCE = 16_384  # characters; longer titles are cut, no reader wants them
_NO_BASE = ("data:", "javascript:")


class Markup(NamedTuple):
    """Hold what was read: hrefs as written, entities decoded, and the base to resolve them."""

    hrefs: list[str]
    base: str
    title: str | None


def read(text: str, url: str, *, xml: bool = False) -> Markup:
    """Read the hrefs of `a` and `area`, the base URL and the title.

    `url` is the document's, normalised. Links in `template` are none (nobody can follow them);
    the base is that of the first `base` with an href (2.4.3); the title is the first, white
    space collapsed, None when it is empty, and at most 16,384 characters of source.
    """
    hrefs: list[str] = []
    base: str | None = None
    title: str | None = None
    for tag in scan.tags(text, xml=xml):
        if tag.name == "title":
            title = _title(tag) if title is None else title
        elif (href := tag.href()) is None:
            continue
        elif tag.name == "base":
            base = _base(href, url) if base is None else base
        else:
            hrefs.append(href)
    return Markup(hrefs, base or url, title or None)


def _title(tag: scan.Tag) -> str:
    source = tag.text[tag.at : min(tag.end, tag.at + _TITLE_SOURCE)]
    return _SPACES.sub(" ", entities.in_text(source)).strip(" ")


def _base(href: str, url: str) -> str:
    """Resolve a base's href; one that is no URL, or holds no place, stands for the page's."""
    try:
        base = urls.normalise(href, url)
    except ValueError:
        return url
    return url if base.startswith(_NO_BASE) else base
