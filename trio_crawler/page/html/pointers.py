"""Find what one element points to, by its name and attributes (HTML Standard, SVG 2).

Left out are the URLs that a browser never fetches: the targets of `preconnect` and `dns-prefetch`,
the endpoints of protocols such as pingback, `ping`, `itemid`, and an empty value of anything but
`a` and `area`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from trio_crawler.expressions import lazy
from trio_crawler.link import LinkKind
from trio_crawler.page import css, entities, urls, values
from trio_crawler.page.html.start_tags import USE, attributes
from trio_crawler.page.html.tokenizer import has_nofollow

MAX_TEXT, MAX_WRITTEN = 100, 200
"""The most characters of a link's text and of its spelling."""

_SPACES = lazy(r"[\t\n\f\r ]+")
_MAX_CACHED_SOURCE = 512

# The attributes of an element, as written in lower case, that each contain one URL.
_IN_HTML: Mapping[str, tuple[tuple[str, LinkKind], ...]] = {
    "a": (("href", LinkKind.A),),
    "area": (("href", LinkKind.A),),
    "audio": (("src", LinkKind.MEDIA),),
    "blockquote": (("cite", LinkKind.LINK),),
    "button": (("formaction", LinkKind.FORM),),
    "del": (("cite", LinkKind.LINK),),
    "embed": (("src", LinkKind.OBJECT),),
    "form": (("action", LinkKind.FORM),),
    "frame": (("src", LinkKind.FRAME), ("longdesc", LinkKind.LINK)),
    "iframe": (("src", LinkKind.FRAME), ("longdesc", LinkKind.LINK)),
    "image": (("src", LinkKind.IMAGE),),
    "img": (("src", LinkKind.IMAGE), ("longdesc", LinkKind.LINK)),
    "input": (("formaction", LinkKind.FORM),),
    "ins": (("cite", LinkKind.LINK),),
    "object": (("data", LinkKind.OBJECT),),
    "q": (("cite", LinkKind.LINK),),
    "script": (("src", LinkKind.SCRIPT),),
    "source": (("src", LinkKind.MEDIA),),
    "track": (("src", LinkKind.MEDIA),),
    "video": (("src", LinkKind.MEDIA), ("poster", LinkKind.IMAGE)),
}
_BACKGROUNDS = frozenset("body table thead tbody tfoot tr td th".split())
_IN_SVG = {
    "a": LinkKind.A,
    "feimage": LinkKind.IMAGE,
    "image": LinkKind.IMAGE,
    "script": LinkKind.SCRIPT,
    "use": LinkKind.IMAGE,
    USE: LinkKind.IMAGE,
}
# The kinds of the tokens of a rel. The first of these that a rel contains decides; a rel without
# any of them names a document.
_BY_REL = {
    "stylesheet": LinkKind.STYLE,
    "manifest": LinkKind.MANIFEST,
    "icon": LinkKind.ICON,
    "apple-touch-icon": LinkKind.ICON,
    "apple-touch-icon-precomposed": LinkKind.ICON,
    "apple-touch-startup-image": LinkKind.ICON,
    "mask-icon": LinkKind.ICON,
    "fluid-icon": LinkKind.ICON,
    "image_src": LinkKind.IMAGE,
    "modulepreload": LinkKind.PRELOAD,
    "preload": LinkKind.PRELOAD,
    "prefetch": LinkKind.PRELOAD,
    "prerender": LinkKind.PRELOAD,
    "compression-dictionary": LinkKind.PRELOAD,
}
# Tokens that name no document: origins to connect to, endpoints that expect a POST, identifiers.
_NO_DOCUMENTS = frozenset(
    "preconnect dns-prefetch expect pingback webmention micropub authorization_endpoint "
    "token_endpoint openid.server openid2.provider openid.delegate openid2.local_id".split()
)
_BY_PROPERTY = {
    "og:url": LinkKind.LINK,
    "og:image": LinkKind.IMAGE,
    "og:image:url": LinkKind.IMAGE,
    "og:image:secure_url": LinkKind.IMAGE,
    "twitter:image": LinkKind.IMAGE,
    "twitter:image:src": LinkKind.IMAGE,
}


class Pointer(NamedTuple):
    """One URL of an element: its kind, its value without references, and its source.

    `attributes` are those that may describe it, see `described`.
    """

    kind: LinkKind
    value: str
    written: str
    attributes: Mapping[str, str] = {}
    nofollow: bool = False


def kind_of_rel(rel: str) -> LinkKind | None:
    """Return the kind of a link with this rel; None if the link names nothing to be fetched."""
    tokens = rel.lower().split()
    for token in tokens:
        if (kind := _BY_REL.get(token)) is not None:
            return kind
    return None if not tokens or _NO_DOCUMENTS.issuperset(tokens) else LinkKind.LINK


def pointers(
    name: str, source: str, *, foreign: bool
) -> tuple[tuple[Pointer, ...], Mapping[str, str]]:
    """Return what an element points to, and its attributes; `source` are these as written.

    `foreign` is whether the element is one of SVG or MathML.
    """
    # Most pages of a site begin and end with the same elements.
    read = _cached if len(source) <= _MAX_CACHED_SOURCE else _read
    return read(name, source, foreign)


def _read(name: str, source: str, foreign: bool) -> tuple[tuple[Pointer, ...], Mapping[str, str]]:
    found = attributes(source)
    return tuple(pointers_in(name, found, foreign=foreign)), found


_cached = lru_cache(4_096)(_read)


def pointers_in(name: str, found: Mapping[str, str], *, foreign: bool) -> Iterator[Pointer]:
    """Yield what an element with some attributes points to."""
    if foreign:
        yield from _in_svg(name, found)
    elif name == "link":
        yield from _in_link(found)
    elif name == "meta":
        yield from _in_meta(found)
    else:
        yield from _in_html(name, found)
    if style := found.get("style"):
        for url in css.style_urls(entities.in_attribute(style), attribute=True):
            yield Pointer(LinkKind.CSS, url.url, url.written[:MAX_WRITTEN])


def _in_html(name: str, found: Mapping[str, str]) -> Iterator[Pointer]:
    for attribute, kind in _IN_HTML.get(name, ()):
        if attribute in found and not (attribute == "src" and "srcdoc" in found):
            yield from _pointer(kind, found, attribute)
    if name == "input" and "src" in found and found.get("type", "").lower() == "image":
        yield from _pointer(LinkKind.IMAGE, found, "src")
    if "srcset" in found and name in ("img", "image", "source"):
        yield from _in_srcset(found, "srcset")
    if "background" in found and name in _BACKGROUNDS:
        yield from _pointer(LinkKind.IMAGE, found, "background")


def _in_svg(name: str, found: Mapping[str, str]) -> Iterator[Pointer]:
    kind = _IN_SVG.get(name)
    attribute = "href" if "href" in found else "xlink:href"
    if kind is not None and attribute in found:
        yield from _pointer(kind, found, attribute)


def _in_link(found: Mapping[str, str]) -> Iterator[Pointer]:
    kind = kind_of_rel(entities.in_attribute(found.get("rel", "")))
    if kind is None:
        return
    if "href" in found:
        yield from _pointer(kind, found, "href")
    if kind is LinkKind.PRELOAD and "imagesrcset" in found:
        yield from _in_srcset(found, "imagesrcset")


def _in_meta(found: Mapping[str, str]) -> Iterator[Pointer]:
    content = found.get("content")
    if content is None:
        return
    if found.get("http-equiv", "").lower() == "refresh":
        if target := values.in_refresh(entities.in_attribute(content)):
            yield Pointer(LinkKind.REFRESH, target, content[:MAX_WRITTEN])
        return
    named = (found.get("property", ""), found.get("name", ""))
    kind = next((_BY_PROPERTY[each] for each in map(_folded, named) if each in _BY_PROPERTY), None)
    if kind is not None:
        yield from _pointer(kind, found, "content")


def _folded(name: str) -> str:
    return entities.in_attribute(name).strip(urls.STRIPPED).lower()


def _pointer(kind: LinkKind, found: Mapping[str, str], attribute: str) -> Iterator[Pointer]:
    source = found[attribute]
    value = entities.in_attribute(source)
    if kind is LinkKind.A or value.strip(urls.STRIPPED):
        rel = found.get("rel")
        nofollow = rel is not None and has_nofollow(entities.in_attribute(rel))
        yield Pointer(kind, value, source[:MAX_WRITTEN], found, nofollow)


def _in_srcset(found: Mapping[str, str], attribute: str) -> Iterator[Pointer]:
    for url in values.in_srcset(entities.in_attribute(found[attribute])):
        yield Pointer(LinkKind.IMAGE, url, url[:MAX_WRITTEN], found)


def described(found: Mapping[str, str]) -> str:
    """Return the text that describes an element: its `alt`, `title` or `aria-label`."""
    for attribute in ("alt", "title", "aria-label"):
        if source := found.get(attribute):
            # References are longer than what they stand for, but not without end.
            text = _SPACES.sub(" ", entities.in_attribute(source[: 8 * MAX_TEXT])).strip()
            if text:
                return text[:MAX_TEXT].rstrip()
    return ""
