"""URLs by the WHATWG URL Standard: one spelling for each, and cheap answers about it.

A normalised URL is what `normalise` returns: the standard's `href` without fragment and
userinfo. Everything here that asks for one relies on that spelling and does not check it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache, partial

import ada_url

_SURROGATES = re.compile("[\ud800-\udfff]")
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
_BARE_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")
# What a browser would skip before a host, then all to its "@". Behind a colon that no port follows
# an unescaped "/" may be of a password: there the last "@" counts.
_USERINFO = re.compile(
    r"((?:[^:/?#\\@]*+:)?+[\x00-\x20/\\]*+)"
    r"(?:[^/?#\\]*@|(?!\[)[^/?#\\@:]*+:(?![0-9]*(?:[/?#\\]|$)).*@)",
    re.DOTALL,
)
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

# What the fast path accepts is what the standard leaves exactly as it stands: no percent sign
# (%2e is a dot), no backslash, tab or space, no colon in a path (it might end a scheme), and
# no segment that begins with a dot.
_SEGMENT = r"[\w~!$&()*+,;=@-][\w~!$&()*+,;=@.-]*+"
_PATH = rf"{_SEGMENT}(?:/{_SEGMENT})*+/?+"
_QUERY = r"\?[\w~!$&()*+,;=@.:/?\[\]-]*+"
_PLAIN = re.compile(rf"(/|(?:\.\./)++|\?|(?=[^?]))((?:{_PATH})?+(?:{_QUERY})?+)", re.ASCII)

# Links and URLs longer than this together are not kept: so all that is kept of directories takes
# some 30 MiB at most, whatever the links are.
_DIRECTORIES, _LINKS_KEPT, _LONGEST_KEPT = 64, 1_024, 256


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
    """
    found, malformed = leads(plain(hrefs, base), base)
    return list(dict.fromkeys(found.values())), malformed


def leads(hrefs: Iterable[str], base: str) -> tuple[dict[str, str], list[str]]:
    """Tell where hrefs that are `plain` lead, and which of them (without fragment) are no URLs.

    Resolving was the largest single layer of a crawl: `urljoin` and `urldefrag` cost 15 us a
    link of a real page, ada for each link 4.2, ada after cutting fragments and duplicates
    1.6. The common relative link is therefore joined by hand; a test proves that this never
    differs from ada, which does all the rest. And where the links of a directory's pages led is
    remembered for the next of its pages: with that it is 0.25 us a link.
    """
    distinct = dict.fromkeys(hrefs)
    if not web(base):
        return _each(distinct, partial(normalise, base=base))
    directory = _directory(_without_name(base))
    known, join = directory.known.get, directory.join
    try:
        return {href: known(href) or join(href, base) for href in distinct}, []
    except ValueError:
        return _each(distinct, lambda href: known(href) or join(href, base))


def _each(hrefs: Iterable[str], lead: Callable[[str], str]) -> tuple[dict[str, str], list[str]]:
    found: dict[str, str] = {}
    malformed: dict[str, None] = {}
    for href in hrefs:
        try:
            found[href] = lead(href)
        except ValueError:
            malformed[href.partition("#")[0]] = None
    return found, list(malformed)


def plain(hrefs: Iterable[str], base: str) -> list[str]:
    """Cut from hrefs what makes no difference, their fragments, if the base is of http(s)."""
    if not web(base):
        return list(hrefs)
    # The test for what stands before the "#" is that of `_cut`; a call costs more than both.
    return [
        href if (at := href.find("#")) < 0 else href[:at] if href[at - 1] > " " else _cut(href)
        for href in hrefs
    ]


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


def without_userinfo(text: str) -> str:
    """Cut user and password out of text that need not be a URL, so that it can be shown."""
    found = _USERINFO.match(text) if "@" in text else None
    return found[1] + text[found.end() :] if found else text


def scheme(url: str) -> str:
    """Give the scheme of a normalised URL, lower case, without the colon."""
    return url[: url.index(":")]


def web(url: str) -> bool:
    """Tell whether a normalised URL is one of http or https."""
    return url.startswith(("http://", "https://"))


def origin(url: str) -> str:
    """Give `scheme://host[:port]` of a normalised http(s) URL."""
    return url[: url.index("/", url.index("//") + 2)]


def authority(url: str) -> str:
    """Give `host[:port]` of a normalised http(s) URL; the usual port is not written."""
    start = url.index("//") + 2
    return url[start : url.index("/", start)]


def host(url: str) -> str:
    """Give the host of a normalised http(s) URL, without the port; IPv6 keeps its brackets."""
    name = authority(url)
    if name[-1] == "]":
        return name
    return name.rpartition(":")[0] if ":" in name else name


def _without_name(base: str) -> str:
    page = base.partition("?")[0]
    return page[: page.rindex("/") + 1]


@lru_cache(_DIRECTORIES)
def _directory(path: str) -> _Directory:
    return _Directory(path)


class _Directory:
    """Hold where the links of the pages in one directory lead, as far as it is `known`."""

    __slots__ = ("_origin", "_path", "_root", "known")

    def __init__(self, path: str) -> None:
        self._origin = origin(path)
        self._path = path
        self._root = self._origin + "/"
        self.known: dict[str, str] = {}

    def join(self, href: str, base: str) -> str:
        """Join a link without a fragment; raises ValueError when it is no URL."""
        match = _PLAIN.fullmatch(href)
        if match is None:
            return self._join_the_rest(href, base)
        start, rest = match.groups()
        if start == "?":
            return base.partition("?")[0] + href
        return self._keep(href, self._start(start) + rest if start else self._path + rest)

    def _join_the_rest(self, href: str, base: str) -> str:
        if not href:
            return base
        if not href.startswith(("http://", "https://", "mailto:")):
            return normalise(href, base)
        if href.startswith(self._root) and _PLAIN.fullmatch(href, len(self._origin)):
            return self._keep(href, href)
        return self._keep(href, normalise(href))

    def _keep(self, href: str, url: str) -> str:
        # Only what means the same on every page of the directory may come here.
        if len(href) + len(url) <= _LONGEST_KEPT:
            if len(self.known) >= _LINKS_KEPT:
                self.known.clear()
            self.known[href] = url
        return url

    def _start(self, start: str) -> str:
        if start == "/":
            return self._root
        end, root = len(self._path), len(self._root)
        for _ in range(len(start) // len("../")):
            if end == root:
                break
            end = self._path.rindex("/", 0, end - 1) + 1
        return self._path[:end]


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
