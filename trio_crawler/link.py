"""A link of a page: its target, its kind, and its place in the source."""

from enum import StrEnum
from typing import NamedTuple

__all__ = ["ASSET_KINDS", "PAGE_KINDS", "Link", "LinkKind"]


class LinkKind(StrEnum):
    """The kind of a link, by the element, attribute, header or rule that contains it.

    - Pages: `A` is `a`, `area` and the `a` of SVG; `FRAME` is `iframe` and `frame`; `REFRESH` is a
      meta refresh or a Refresh header; `LINK` names a document: a `link` or Link header with such
      a rel, `og:url`, `cite`, `longdesc`, and the start page and shortcuts of a manifest.
    - Assets: `IMAGE` (also srcset, poster, `background`, SVG and `og:image`), `ICON`, `STYLE`
      (also @import), `SCRIPT`, `MEDIA`, `OBJECT` (also `embed`), `CSS` (a url() in a style),
      `PRELOAD` (also modulepreload and prefetch) and `MANIFEST`.
    - `FORM` is the action of a form or of a button.
    """

    __module__ = "trio_crawler.page"

    A = "a"
    FRAME = "frame"
    REFRESH = "refresh"
    LINK = "link"

    IMAGE = "image"
    ICON = "icon"
    STYLE = "style"
    SCRIPT = "script"
    MEDIA = "media"
    OBJECT = "object"
    CSS = "css"
    PRELOAD = "preload"
    MANIFEST = "manifest"

    FORM = "form"


PAGE_KINDS = frozenset({LinkKind.A, LinkKind.FRAME, LinkKind.REFRESH, LinkKind.LINK})
"""The kinds of links to pages, which are crawled inside the scope."""

ASSET_KINDS = frozenset(LinkKind) - PAGE_KINDS - {LinkKind.FORM}
"""The kinds of links to the parts of a page, which are asked for but not crawled."""


class Link(NamedTuple):
    """One link of a page, a style sheet or a manifest.

    - `url`: the absolute URL, normalised and without fragment; or the text as it is, if that is
      not a URL (then `malformed` is True). Of a `data:` or `javascript:` URL only the beginning is
      kept.
    - `fragment`: without "#", percent-encoded as in the URL Standard; "" if there is none.
    - `text`: the visible text of an `a`, the `alt` of an image or area; else the `title` or
      `aria-label`. It has at most 100 characters.
    - `line` and `column`: the start of the element in the decoded text, or of the rule in a style
      sheet, both from 1 and the column in characters; 0 if unknown.
    - `as_written`: the value in the source, with at most 200 characters.
    - `nofollow`: whether the rel of the element contains nofollow.
    """

    url: str
    kind: LinkKind = LinkKind.A
    fragment: str = ""
    text: str = ""
    line: int = 0
    column: int = 0
    as_written: str = ""
    nofollow: bool = False
    malformed: bool = False


Link.__module__ = "trio_crawler.page"
