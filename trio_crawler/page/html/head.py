"""What a page says to those who index it: rel=canonical (RFC 6596) and meta robots.

Of a page only the head counts, so nothing that users write into it can speak for it. The head ends
where the HTML Standard ends it (13.2.6.4): at the first text, or at a tag that belongs into the
body. As in a browser that runs scripts, `noscript` holds nothing: an image in it is common, and
must not end the head. Most heads say neither, and a few searches of their text tell that. A
canonical URL may stand in the Link header as well (RFC 8288).

Every expression is possessive and every search goes forward, so the time is linear whatever a
page or a header holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from trio_crawler.page import entities, urls
from trio_crawler.page.html import tokenizer as scan
from trio_crawler.page.html.tokenizer import ATTRIBUTES, COMMENT, W, either_case

_MOST_TAGS = 5_000  # the rest of such a head is not read
_FEW = 8  # places where one of the words may stand, or the whole head is gone through

_END = rf"(?=[{W}/>])"
_TAG_END = rf"{_END}(?:[{W}]++[a-z-]++=\"[^\"]*+\")*+{ATTRIBUTES}[{W}/]*+>"
_PASSED = "|".join(
    [
        rf"{COMMENT}>",
        r"(?:!(?!--)|\?|/(?![a-zA-Z]))[^>]*+>",
        rf"(?:{either_case('html head base basefont bgsound')}){_TAG_END}",
        # The Standard passes over any end tag but these.
        rf"/(?!(?:{either_case('body html br')}){_END})[a-zA-Z][^{W}/>]*+{_TAG_END}",
    ]
)
_RAW = "script style title noscript noframes"
_NEXT = re.compile(
    rf"(?:[{W}]++|<(?:{_PASSED}))*+"
    rf"<(?:({either_case('link meta')})|({either_case('template ' + _RAW)})){_END}"
    rf"{ATTRIBUTES}([{W}/]*+)>",
    re.ASCII,
).match
_TELLING, _HIDING, _SLASH = 1, 2, 3
# Without what a script that holds "<!--" needs, and without templates.
_SIMPLE = "|".join(
    [rf"(?:{either_case('link meta')}){_TAG_END}", _PASSED]
    + [
        rf"(?:{either_case(name)}){_TAG_END}[^<]*+(?:<(?!!--|/(?:{either_case(name)}){_END})[^<]*+)*+</(?:{either_case(name)}){_TAG_END}"
        for name in _RAW.split()
    ]
)

_TELLING_TAG = re.compile(rf"<(?:{either_case('link meta')}){_END}").match
_USUAL = re.compile(
    rf'<(?:link rel="canonical" href="([^"&\0]*+)"|meta name="robots" content="([^"&\0]*+)")'
    rf"[{W}/]*+>"
).match

_MAY_SPEAK = ((b"<!--", b"-->"), (b"<script", b"</script"), (b"<style", b"</style"))
_BODY_FOLLOWS = re.compile(rf"</head[{W}]*+>[{W}]*+<(?:body|BODY)[{W}>]").match
# The references that may stand for a letter or a hyphen of a word.
_REFERENCE = re.compile(
    rb"&#(?:0*+(?:45|6[5-9]|[7-9][0-9]|1[01][0-9]|12[0-2])(?![0-9])"
    rb"|x0*+(?:2d|[4-7][0-9a-f])(?![0-9a-f]))"
).search
_IS_CANONICAL = re.compile(rf"(?<![^{W}])canonical(?![^{W}])", re.IGNORECASE | re.ASCII).search
_NAME, _CONTENT = scan.attribute("name"), scan.attribute("content")

_QUOTED = r'"((?:[^"\\]++|\\.)*+)"?+'
# One link of several: no comma between "<" and ">" or in quotes ends it.
_LINKS = re.compile(rf'(?:[^",<]++|<[^>]*+>?+|{_QUOTED})++', re.DOTALL).finditer
_TARGET = re.compile(r"[ \t]*+<([^>]*+)>").match
_PARAMETERS = re.compile(
    rf'([^ \t;="]++)[ \t]*+(?:=[ \t]*+(?:{_QUOTED}|([^ \t;]*+)))?+', re.DOTALL
).finditer
_UNQUOTE = re.compile(r"\\(.)", re.DOTALL).sub


class Hints(NamedTuple):
    """Hold the distinct hrefs of rel=canonical and contents of meta robots, entities decoded."""

    canonicals: tuple[str, ...] = ()
    robots: tuple[str, ...] = ()


_NOTHING = Hints()


def read(text: str, *, agent: str = "", xml: bool = False) -> Hints:
    """Read the head of a page; a meta element counts if its name is robots or the `agent`.

    With `xml`, a tag that ends in "/>" has no content, as in XHTML. Of a head with more than
    5,000 of the elements that matter here, the rest is not read.
    """
    words = _words(agent)
    head = _head(text)
    starts = None if head is None else _starts(head, words)
    if starts is None or (starts and (xml or not _are_of_head(starts, text))):
        starts = [at for at, end in _tags(text, xml=xml) if _holds(_lower(text[at:end]), words)]
    return _said(text, starts, words[1:]) if starts else _NOTHING


def canonical_in_headers(values: Iterable[str], url: str) -> str | None:
    """Give the one canonical URL that the Link fields of an answer from `url` name.

    By the rules of `one_canonical`; a link of which another URL is the context (its `anchor`)
    does not count.
    """
    return one_canonical([href for value in values for href in _in_field(value, url)], url)


def one_canonical(hrefs: Iterable[str], base: str) -> str | None:
    """Give the one http(s) URL, normalised, that all these name; None if they name several.

    Those that are empty or no such URL do not count. `base` is a normalised URL.
    """
    found: set[str] = set()
    for href in filter(str.strip, hrefs):
        try:
            url = base if href == base else urls.normalise(href, base)
        except ValueError:
            continue
        if urls.web(url):
            found.add(url)
    return found.pop() if len(found) == 1 else None


@lru_cache(1)
def _simple_head() -> re.Pattern[str]:
    # It takes 10 ms to compile, and heads of most sites never need it.
    return re.compile(rf"(?:[{W}]++|<(?:{_SIMPLE}))*+", re.ASCII)


@lru_cache(8)
def _words(agent: str) -> tuple[bytes, ...]:
    """Give the words that tell: first that of links, then the names of meta elements."""
    return b"canonical", *dict.fromkeys((b"robots", _lower(agent) or b"robots"))


def _head(text: str) -> bytes | None:
    """Find the head, a byte a character and in lower case; None if that is not easy."""
    end = text.find("</head")
    if end < 0 or not _BODY_FOLLOWS(text, end):
        return None
    head = text[:end].encode("latin-1", "replace").lower()
    # A comment, a script or a style may speak of the end of a head.
    for start, its_end in _MAY_SPEAK:
        at = head.rfind(start)
        if at >= 0 and head.find(its_end, at) < 0:
            return None
    return head


def _starts(head: bytes, words: Iterable[bytes]) -> list[int] | None:
    """Find where the names of the tags with these words end; None if that is not easy.

    That they are tags, named `link` or `meta`, is yet to be shown.
    """
    if b"&" in head and _REFERENCE(head):
        return None
    starts: list[int] = []
    for word in words:
        at = head.find(word)
        while at >= 0:
            if len(starts) == _FEW:
                return None
            starts.append(head.rfind(b"<", 0, at) + len("<link"))
            at = head.find(word, at + 1)
    return sorted(set(starts)) if starts else starts


def _are_of_head(starts: list[int], text: str) -> bool:
    """Tell whether nothing stands before these tags that is hard to read, or no part of a head."""
    done = 0
    for start in starts:
        before = start - len("<link")
        if not (_TELLING_TAG(text, before) and _simple_head().fullmatch(text, done, before)):
            return False
        done = before
    return True


def _holds(source: bytes, words: Iterable[bytes]) -> bool:
    # A loop: a generator would cost as much as all the rest.
    for word in words:
        if word in source:
            return True
    return b"&" in source and _REFERENCE(source) is not None


def _tags(text: str, *, xml: bool) -> Iterator[tuple[int, int]]:
    """Find `link` and `meta` in the head: where their attributes begin and end."""
    at = 0
    for _ in range(_MOST_TAGS):
        if (match := _NEXT(text, at)) is None:
            return
        at = match.end()
        if match[_TELLING]:
            yield match.end(_TELLING), match.start(_SLASH)
        elif xml and match[_SLASH].endswith("/"):
            continue
        elif (name := match[_HIDING].lower()) == "template":
            at = scan.behind_template(text, at)
        else:
            at = scan.raw_end(name, text, at)


def _said(text: str, starts: list[int], names: tuple[bytes, ...]) -> Hints:
    """Read the tags whose names, `link` or `meta`, end at these places."""
    canonicals: dict[str, None] = {}
    robots: dict[str, None] = {}
    for at in starts:
        if (usual := _USUAL(text, at - len("<link"))) is not None:
            (canonicals if usual.lastindex == 1 else robots)[usual[usual.lastindex or 0]] = None
        elif text[at - 1] in "kK":
            if _IS_CANONICAL(_value(scan.REL, text, at)):
                canonicals[_value(scan.HREF, text, at)] = None
        elif _lower(_value(_NAME, text, at)) in names:
            robots[_value(_CONTENT, text, at)] = None
    return Hints(tuple(filter(None, canonicals)), tuple(filter(None, robots)))


def _value(find: scan.Find, text: str, at: int) -> str:
    match = find(text, at)
    return "" if match is None else entities.in_attribute(scan.value_of(match))


def _lower(text: str) -> bytes:
    """Encode, with ASCII letters in lower case and no others: as the Standard compares names."""
    return text.encode("utf-8", "surrogatepass").lower()


def _in_field(field: str, url: str) -> Iterator[str]:
    """Find the canonical URLs that one Link field gives for a page, as written."""
    for link in _LINKS(field):
        if (target := _TARGET(link[0])) is None:
            continue
        parameters = _parameters(link[0][target.end() :])
        if _IS_CANONICAL(parameters.get("rel", "")) and _is_about(parameters, url):
            yield target[1]


def _parameters(source: str) -> dict[str, str]:
    """Read the parameters of a link; the first of a name counts (RFC 8288, 3.3)."""
    found: dict[str, str] = {}
    for name, quoted, plain in (match.groups("") for match in _PARAMETERS(source)):
        found.setdefault(name.lower(), _UNQUOTE(r"\1", quoted) or plain)
    return found


def _is_about(parameters: dict[str, str], url: str) -> bool:
    try:
        return urls.normalise(parameters.get("anchor", ""), url) == url
    except ValueError:
        return False
