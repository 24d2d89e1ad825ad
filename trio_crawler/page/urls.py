"""Normalise and resolve URLs by the WHATWG URL Standard, and return parts of them.

A normalised URL is a result of `normalise`: the standard's `href` without fragment and userinfo.
Functions that expect a normalised URL rely on that form and do not check it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any

import ada_url
import httpx

from trio_crawler.arguments import ArgumentError, check_kind, public, several, several_strings
from trio_crawler.expressions import lazy
from trio_crawler.page import charset

WEB = ("http://", "https://")
"""The beginnings of http and https URLs."""

NOWHERE = "http://folder.invalid/"
"""Where the files of a folder are that has no URL: no host has this name (RFC 6761, 6.4)."""

_SPECIAL = ("http:", "https:", "ftp:", "file:")
STRIPPED = "".join(map(chr, range(0x21)))
"""The characters that the URL Standard removes from the ends of a URL."""

# And those that it removes from everywhere in it.
_NOT_IN_URLS = dict.fromkeys(map(ord, "\t\n\r"))

_SURROGATES = lazy("[\ud800-\udfff]")
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
BARE_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")
# The userinfo of a text that may be a URL, with its "@"; `before` is the text up to the userinfo:
#
#   http://  user:password@     up to the last "@" before a "/", "?" or "#"
#   http://  user:pass/word@    if no port follows the colon, an unescaped "/" may belong to the
#                               password: up to the last "@" of the text
_USERINFO = lazy(
    r"""
    (?P<before> (?: [^:/?#\\@]*+ : )?+ [\x00-\x20/\\]*+ )
    (?: [^/?#\\]* @
    |   (?!\[) [^/?#\\@:]*+ : (?! [0-9]* (?: [/?#\\] | $ ) ) .* @
    )
    """,
    re.DOTALL | re.VERBOSE,
)
# A position after "http://" and "https://", and before the end of the host, which is never empty.
_AFTER_SCHEME = len("https://")
# Hrefs that are resolved at once, where the URLs may be very long.
_PORTION = 1_000
MAX_CHARACTERS = 4 * 1024 * 1024
"""The most characters of the links that are read from one page, as absolute URLs."""
# A character of a query may become %26%231114111%3B.
_LONGEST = 16
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

# A link that is joined by hand, since the standard does not change its text: no backslash, tab or
# space, no colon in a path (it might end a scheme), no segment that begins with a dot, and no %2e,
# which is one.
#
#   start     rest              joined to
#   /         a/b.html?c=d      the root of the site
#   ../../    a/b.html?c=d      a directory above that of the page
#   ./        a/b.html?c=d      the directory of the page
#             a/b.html?c=d      the same
#
# So is the path of an absolute URL whose host is that of the page, or is plain: the standard does
# not change it, since it is in lower case, without a port and an empty label, and neither an
# address nor "xn--".
_PLAIN = r"\w~!$&()*+,;=@\-"
_SEGMENT = rf"(?: [{_PLAIN}] | %(?!2[eE]) ) (?: [{_PLAIN}.]++ | %(?!2[eE]) )*+"
_SIMPLE = lazy(
    rf"""
    (?P<start>
        / | (?: \.\.?/ )++
    |   https?:// (?: (?=[a-z0-9-]) (?: -?[a-z0-9]++ )*+ -?+ \. )*+ [a-z]++ /
    |   (?= [^?] )
    )
    (?P<rest>
        (?: {_SEGMENT} (?: / {_SEGMENT} )*+ /?+ )?+
        (?: \? [{_PLAIN}.:/?\[\]%]*+ )?+
    )
    """,
    re.ASCII | re.VERBOSE,
)

# A link and its URL with more characters than this together are not cached, so the caches of all
# directories take at most some 30 MiB.
_MAX_DIRECTORIES, _MAX_CACHED_LINKS, _MAX_CACHED_CHARACTERS = 64, 1_024, 256
# Links that are the same on all pages, whatever their directories: to other sites, mostly.
_MAX_ABSOLUTE = 4_096
_ABSOLUTE = (*WEB, "mailto:", "file:///")


@public("trio_crawler")
def normalise(url: str | httpx.URL, base: str | httpx.URL | None = None) -> str:
    """Return a URL as serialised by the WHATWG URL Standard, without fragment and userinfo.

    Any scheme is accepted. `url` may be relative if there is a `base`. Raises ValueError if the
    URL is invalid by the standard, and TypeError unless it is a str or httpx.URL.

    >>> normalise("HTTPS://E.org:443/a/../b c#top")
    'https://e.org/b%20c'
    >>> normalise("../b?x=1", base="https://e.org/a/c/")
    'https://e.org/a/b?x=1'
    """
    if type(url) is not str:
        url = _text("url", url)
    if base is not None and type(base) is not str:
        base = _text("base", base)
    try:
        href = ada_url.URL(url, base).href
    except UnicodeEncodeError:
        # The standard works on scalar values: a lone surrogate counts as U+FFFD.
        plain = None if base is None else _replace_surrogates(base)
        try:
            href = ada_url.URL(_replace_surrogates(url), plain).href
        except ValueError:
            raise _not_a_url(url, base) from None
    except ValueError:
        raise _not_a_url(url, base) from None
    if "#" in href:
        # An opaque path may end in spaces before a fragment; without the fragment it may not.
        href = href[: href.index("#")].rstrip(" ")
    return _without_userinfo(href) if "@" in href else href


def _not_a_url(url: str, base: str | None) -> ValueError:
    at = "" if base is None else f" with the base {without_userinfo(base)!r}"
    return ValueError(f"url: not a URL of the WHATWG URL Standard: {without_userinfo(url)!r}{at}")


def web_urls(name: str, urls: Iterable[str | httpx.URL]) -> tuple[str, ...]:
    """Return distinct http and https URLs, normalised; `name` is the name of the argument.

    Raises ValueError if one is not an http or https URL, and TypeError for a single str, or if one
    is not a str or httpx.URL. The messages show no password.
    """
    if isinstance(urls, str):
        raise TypeError(f"{name} must be several URLs: write [{without_userinfo(urls)!r}]")
    found = several(name, urls, "URLs")
    texts = [_text(f"each of {name}", url) for url in found]
    return tuple(dict.fromkeys(_web_url(name, text) for text in texts))


def url_texts(name: str, urls: Iterable[str | httpx.URL]) -> tuple[str, ...]:
    """Return URLs as they are written; an httpx.URL is normalised. `name` is that of the argument.

    Raises TypeError as `several_strings` does.
    """
    found = several(name, urls, "URLs")
    texts = [normalise(url) if isinstance(url, httpx.URL) else url for url in found]
    return several_strings(name, texts)


def web_url(name: str, url: str | httpx.URL) -> str:
    """Return one http or https URL, normalised; `name` is the name of the argument.

    Raises ValueError for any other URL, and TypeError for anything else, as `web_urls` does.
    """
    return _web_url(name, _text(name, url))


def _web_url(name: str, text: str) -> str:
    try:
        found = normalise(text)
    except ValueError:
        found = ""
    if not is_web(found):
        raise ArgumentError(name, f": not an http or https URL: {without_userinfo(text)!r}")
    return found


def _text(name: str, url: object) -> str:
    check_kind(name, url, (str, httpx.URL), "a URL as a str or httpx.URL")
    return str(url)


def normalise_in(encoding: str, url: str, base: str) -> str:
    """Return the result of `normalise` for a URL in a document of an encoding.

    The query of a special URL is percent-encoded in that encoding (URL Standard, 4.4).
    """
    if url.isascii() or encoding in charset.AS_UTF_8:
        return _resolve_other(url, base) if url else normalise(url, base)
    before, mark, query = url.partition("#")[0].partition("?")
    if query.isascii() or not (found := normalise(before + mark, base)).startswith(_SPECIAL):
        return normalise(url, base)
    if "#" not in url:
        query = query.rstrip(STRIPPED)
    if not query.isprintable():
        query = query.translate(_NOT_IN_URLS)
    return found + charset.encode_query(query, encoding)


def resolve(
    hrefs: Iterable[str], base: str, encoding: str = "utf-8"
) -> tuple[dict[str, str], list[str]]:
    """Return the normalised URL of each href, and the distinct malformed hrefs.

    The hrefs must come from `without_fragments`. `encoding` is that of the document.

    ▶ `urljoin` and `urldefrag` take 15 us for a link of a real page, ada 4.2 us, and ada without
    fragments and duplicates 1.6 us, which would be the largest part of a crawl. So common relative
    links are joined by hand, and ada does the rest; a test proves that the results never differ.
    The links of one directory's pages are cached for its next pages, so that these share them.
    """
    return _resolve_distinct(dict.fromkeys(hrefs, ""), base, encoding)


def _resolve_distinct(
    distinct: dict[str, str], base: str, encoding: str
) -> tuple[dict[str, str], list[str]]:
    legacy = encoding not in charset.AS_UTF_8 and not "".join(distinct).isascii()
    if legacy or not base.startswith(WEB):
        # Not cached: on a page of another encoding the same link leads elsewhere.
        return _resolve_each(distinct, distinct, partial(normalise_in, encoding, base=base))
    home = directory(base)
    root = home.index("/", _AFTER_SCHEME) + 1
    others = _join(distinct, home, root, links_of(home), _MAX_CACHED_CHARACTERS, _MAX_CACHED_LINKS)
    if not others:
        return distinct, []
    return _resolve_each(distinct, others, partial(_resolve_other, base=base))


@lru_cache(_MAX_DIRECTORIES)
def joining(home: str, encoding: str) -> tuple[Any, ...]:
    """Return what `accelerator.scan` needs to make URLs of links; nothing if it cannot do that.

    `home` is the directory of a page, and `encoding` that of the page.
    """
    if not home.startswith(WEB):
        return ()
    root = home.index("/", _AFTER_SCHEME) + 1
    known: dict[str, str] = {}
    cache = known, _shared, _MAX_CACHED_CHARACTERS, _MAX_CACHED_LINKS
    usual = encoding in charset.AS_UTF_8
    other = _resolve_other if usual else partial(normalise_in, encoding)
    return home, root, *cache, other, MAX_CHARACTERS


def in_directory(href: str, home: str) -> str:
    """Return the URL of a href on the pages of a directory, where it does not depend on the page.

    A href with a fragment is never simple. Raises ValueError as `normalise` does.
    """
    if (url := (known := links_of(home)).get(href)) is not None:
        return url
    found, root = {href: ""}, home.index("/", _AFTER_SCHEME) + 1
    others = _join(found, home, root, known, _MAX_CACHED_CHARACTERS, _MAX_CACHED_LINKS)
    return _resolve_other(href, home) if others else found[href]


def _resolve_other(href: str, base: str) -> str:
    if not href:
        return base
    if len(href) <= _MAX_CACHED_CHARACTERS and href.startswith(_ABSOLUTE):
        return _absolute(href)
    return normalise(href, base)


def _join(
    hrefs: dict[str, str], home: str, root: int, known: dict[str, str], longest: int, most: int
) -> list[str]:
    """Set the URL of each simple href; return the hrefs that are not simple.

    `home` is the directory of the page, and `root` the end of the root in it. `known` is the cache
    of the directory: at most `most` hrefs with their URLs, of at most `longest` characters each.
    """
    others = []
    # Where each beginning leads to: a page has few.
    tops = {"": home, "/": home[:root]}
    for href in hrefs:
        url = known.get(href)
        if url is None:
            match = _SIMPLE.fullmatch(href, root - 1 if href.startswith(tops["/"]) else 0)
            if match is None:
                others.append(href)
                continue
            start, rest = match.groups()
            if start not in tops:
                above = len(home)
                for _ in range(start.count("../")):
                    above = above if above == root else home.rindex("/", 0, above - 1) + 1
                tops[start] = home[:above] if start[0] == "." else start
            url = tops[start] + rest
            if len(href) + len(url) <= longest:
                if len(known) >= most:
                    known.clear()
                known[href] = url
        hrefs[href] = url
    return others


def resolve_within(
    hrefs: list[str], base: str, encoding: str, room: int = MAX_CHARACTERS
) -> tuple[dict[str, str], list[str], int]:
    """Return the result of `resolve`, and how many characters are left of `room` for URLs.

    The hrefs that do not fit are left out; then the characters left are negative. Each distinct
    href takes room once.
    """
    distinct = dict.fromkeys(hrefs, "")
    if len(distinct) * len(base) + _LONGEST * sum(map(len, distinct)) <= room:
        return *_resolve_distinct(distinct, base, encoding), room
    hrefs = list(distinct)
    resolved: dict[str, str] = {}
    malformed: list[str] = []
    # In portions: with a long base, 100,000 short hrefs would become URLs of 200 MB.
    portion = max(1, min(_PORTION, room // (len(base) + 1)))
    for start in range(0, len(hrefs), portion):
        if room < 0:
            break
        found, bad = resolve(hrefs[start : start + portion], base, encoding)
        size = sum(map(len, found.values())) + sum(map(len, bad))
        if size > room:
            found = {href: url for href, url in found.items() if (room := room - len(url)) >= 0}
            room = -1
        else:
            room -= size
        resolved |= found
        malformed += bad
    return resolved, malformed, room


def _resolve_each(
    found: dict[str, str], hrefs: Iterable[str], resolve_one: Callable[[str], str]
) -> tuple[dict[str, str], list[str]]:
    malformed: dict[str, None] = {}
    for href in list(hrefs):
        try:
            found[href] = resolve_one(href)
        except ValueError:
            del found[href]
            malformed[href.partition("#")[0]] = None
    return found, list(malformed)


def without_fragments(hrefs: Iterable[str], base: str) -> list[str]:
    """Return hrefs without their fragments, or as they are if the base is not an http(s) URL."""
    if not base.startswith(WEB):
        return list(hrefs)
    # Most hrefs need no call of `_cut_fragment`, which would cost more than all the rest.
    return [
        href
        if (at := href.find("#")) < 0
        else href[:at]
        if href[at - 1] > " "
        else _cut_fragment(href)
        for href in hrefs
    ]


def _cut_fragment(href: str) -> str:
    """Return a href without its fragment, but with "#" if white space comes before it.

    Without the "#", the white space would be stripped as the end of the URL.
    """
    plain = href[: href.index("#")]
    return plain + "#" if plain and plain[-1] <= " " else plain


@public("trio_crawler.frontier")
def seen_key(url: str) -> str:
    """Return the key under which `url`, a normalised http(s) URL, counts as seen.

    Unreserved characters are percent-decoded, other escapes are put in upper case (RFC 3986, 2.3
    and 6.2.2), and the order of the query does not change.

    >>> seen_key("https://e.org/%7Eann?b=%c3%bc&a=1")
    'https://e.org/~ann?b=%C3%BC&a=1'
    """
    check_kind("url", url, str, "a normalised URL as a str")
    if "%" not in url:
        return url
    if BARE_PERCENT.search(url):
        # Decoding next to a stray "%" could make a new escape: "%2%65" would become "%2e".
        return _ESCAPE.sub(lambda escape: escape[0].upper(), url)
    return _ESCAPE.sub(_decode_unreserved, url)


def without_userinfo(text: str) -> str:
    """Return a text without user and password, for messages; it need not be a URL."""
    found = _USERINFO.match(text) if "@" in text else None
    return found["before"] + text[found.end() :] if found else text


def is_web(url: str) -> bool:
    """Whether a normalised URL has the scheme http or https."""
    return url.startswith(WEB)


def origin(url: str) -> str:
    """Return `scheme://host[:port]` of a normalised http(s) URL."""
    return url[: url.index("/", _AFTER_SCHEME)]


def authority(url: str) -> str:
    """Return `host[:port]` of a normalised http(s) URL; a default port is left out."""
    start = url.index("//") + 2
    return url[start : url.index("/", start)]


def host(url: str) -> str:
    """Return the host of a normalised http(s) URL without the port; IPv6 keeps its brackets."""
    name = authority(url)
    return name if name[-1] == "]" or ":" not in name else name.rpartition(":")[0]


def host_name(argument: str, name: str) -> str:
    """Return the name of a host as URLs have it, or raise ArgumentError."""
    check_kind(argument, name, str, "names of hosts")
    try:
        url = normalise(f"http://{name}/")
        if host(url) == authority(url) and url == f"http://{authority(url)}/":
            return host(url)
    except ValueError:
        pass
    raise ArgumentError(argument, f": {name!r} is not the name of a host")


def path(url: str) -> str:
    """Return the path of a normalised http(s) URL, without the query; it begins with a slash."""
    start, end = url.index("/", _AFTER_SCHEME), url.find("?")
    return url[start:] if end < 0 else url[start:end]


def directory(url: str) -> str:
    """Return a normalised http(s) URL up to the last slash of its path."""
    end = url.find("?")
    return url[: url.rindex("/", 0, end if end >= 0 else None) + 1]


def links_of(home: str) -> dict[str, str]:
    """Return the cache of the URLs that the links of one directory's pages resolve to."""
    known: dict[str, str] = joining(home, "utf-8")[2]
    return known


_absolute = lru_cache(_MAX_ABSOLUTE)(normalise)
# The URLs of all directories, 16,384 at most: the same URL is one str. ▶ A crawl of linux-doc
# takes 2 % less.
_shared: dict[str, str] = {}


def _replace_surrogates(text: str) -> str:
    return _SURROGATES.sub("\ufffd", text)


def _without_userinfo(href: str) -> str:
    start = href.index(":") + 3
    if href[start - 2 : start] != "//":
        return href
    authority = re.split("[/?]", href[start:], maxsplit=1)[0]
    return href[:start] + href[start + authority.rfind("@") + 1 :]


def _decode_unreserved(escape: re.Match[str]) -> str:
    character = chr(int(escape[0][1:], 16))
    return character if character in _UNRESERVED else escape[0].upper()
