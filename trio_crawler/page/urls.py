"""URLs by the WHATWG URL Standard: one spelling for each, and cheap answers about it.

A normalised URL is what `normalise` returns: the standard's `href` without fragment and
userinfo. Everything here that asks for one relies on that spelling and does not check it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import ada_url

_SURROGATES = re.compile("[\ud800-\udfff]")
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
_BARE_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

# What the fast path accepts is what the standard leaves exactly as it stands: no percent sign
# (%2e is a dot), no backslash, tab or space, no colon in a path (it might end a scheme), and
# no segment that begins with a dot.
_SEGMENT = r"[\w~!$&()*+,;=@-][\w~!$&()*+,;=@.-]*+"
_PATH = rf"{_SEGMENT}(?:/{_SEGMENT})*+/?+"
_QUERY = r"\?[\w~!$&()*+,;=@.:/?\[\]-]*+"
_PLAIN = re.compile(
    rf"{_PATH}(?:{_QUERY})?+|(/)(?:{_PATH})?+(?:{_QUERY})?+"
    rf"|((?:\.\./)++)(?:{_PATH})?+(?:{_QUERY})?+|({_QUERY})",
    re.ASCII,
)
_ROOTED, _UPWARD, _QUERY_ONLY = 1, 2, 3


def normalise(url: str, base: str | None = None) -> str:
    """Spell a URL as the WHATWG URL Standard does, without fragment and userinfo.

    Any scheme will do; `url` may be relative when there is a base. Raises ValueError, and
    nothing else, when the standard finds no URL in it.
    """
    try:
        href = ada_url.URL(url, base).href
    except UnicodeEncodeError:
        # The standard works on scalar values: a lone surrogate counts as U+FFFD.
        href = ada_url.URL(_scalar(url), None if base is None else _scalar(base)).href
    return _without_userinfo(_without_fragment(href))


def resolve(hrefs: Iterable[str], base: str) -> tuple[list[str], list[str]]:
    """Resolve a page's hrefs against a normalised base.

    Returns the distinct URLs in the order of their first appearance, and the distinct hrefs
    (without fragment) that are no URLs.

    Resolving was the largest single layer of a crawl: `urljoin` and `urldefrag` cost 15 us a
    link of a real page, ada for each link 4.2, ada after cutting fragments and duplicates
    1.6. The common relative link is therefore joined by hand, at 0.55 us; a test proves
    that this never differs from ada, which does all the rest.
    """
    if not base.startswith(("http://", "https://")):
        return _resolve_each(hrefs, base)
    join = _Joiner(base)
    found: dict[str, None] = {}
    malformed = []
    plain = _PLAIN.fullmatch
    directory = join.directory
    for href in dict.fromkeys([_cut(h) if "#" in h else h for h in hrefs]):
        match = plain(href)
        if match is not None and match.lastindex is None:
            found[directory + href] = None
            continue
        try:
            found[join(href, match)] = None
        except ValueError:
            malformed.append(href.partition("#")[0])
    return list(found), list(dict.fromkeys(malformed))


def _cut(href: str) -> str:
    """Cut the fragment, but keep its sign behind what would be stripped at the end of a URL."""
    plain = href[: href.index("#")]
    return plain + "#" if plain and plain[-1] <= " " else plain


def seen_key(url: str) -> str:
    """Give the one key under which a normalised http(s) URL is remembered.

    Percent-encoded unreserved characters are decoded, the other encodings upper-cased
    (RFC 3986, 2.3 and 6.2.2); the order of a query is kept.
    """
    if "%" not in url:
        return url
    if _BARE_PERCENT.search(url):
        # Decoding next to a stray "%" could make a new escape: "%2%65" would become "%2e".
        return _ESCAPE.sub(lambda escape: escape[0].upper(), url)
    return _ESCAPE.sub(_simplest, url)


def scheme(url: str) -> str:
    """Give the scheme of a normalised URL, lower case, without the colon."""
    return url[: url.index(":")]


def origin(url: str) -> str:
    """Give `scheme://host[:port]` of a normalised http(s) URL."""
    return url[: url.index("/", url.index("//") + 2)]


def host(url: str) -> str:
    """Give the host of a normalised http(s) URL, without the port; IPv6 keeps its brackets."""
    start = url.index("//") + 2
    authority = url[start : url.index("/", start)]
    if authority[-1] == "]":
        return authority
    return authority.rpartition(":")[0] if ":" in authority else authority


class _Joiner:
    """Hold the slices of an http(s) base from which links are joined."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.origin = origin(base)
        self.page = base.partition("?")[0]
        self.directory = self.page[: self.page.rindex("/") + 1]

    def __call__(self, href: str, match: re.Match[str] | None) -> str:
        """Join an href without a fragment; `match` is what the fast path found in it."""
        if match is None:
            return self._join_the_rest(href)
        if match.lastindex == _ROOTED:
            return self.origin + href
        if match.lastindex == _UPWARD:
            climb = match.end(_UPWARD)
            return self._ancestor(climb // 3) + href[climb:]
        return self.page + href

    def _join_the_rest(self, href: str) -> str:
        if not href:
            return self.base
        if href.startswith(self.origin):
            match = _PLAIN.fullmatch(href, len(self.origin))
            if match is not None and match.lastindex == _ROOTED:
                return href
        return normalise(href, self.base)

    def _ancestor(self, levels: int) -> str:
        end = len(self.directory)
        root = len(self.origin) + 1
        while levels and end > root:
            end = self.directory.rindex("/", 0, end - 1) + 1
            levels -= 1
        return self.directory[:end]


def _resolve_each(hrefs: Iterable[str], base: str) -> tuple[list[str], list[str]]:
    found: dict[str, None] = {}
    malformed: dict[str, None] = {}
    for href in dict.fromkeys(hrefs):
        try:
            found[normalise(href, base)] = None
        except ValueError:
            malformed[href.partition("#")[0]] = None
    return list(found), list(malformed)


def _scalar(text: str) -> str:
    return _SURROGATES.sub("\ufffd", text)


def _without_fragment(href: str) -> str:
    if "#" not in href:
        return href
    # A fragment protects the spaces at the end of an opaque path; without it they go too.
    return href[: href.index("#")].rstrip(" ")


def _without_userinfo(href: str) -> str:
    if "@" not in href:
        return href
    start = href.index(":") + 3
    if href[start - 2 : start] != "//":
        return href
    authority = re.split("[/?]", href[start:], maxsplit=1)[0]
    return href[:start] + href[start + authority.rfind("@") + 1 :]


def _simplest(escape: re.Match[str]) -> str:
    character = chr(int(escape[0][1:], 16))
    return character if character in _UNRESERVED else escape[0].upper()
