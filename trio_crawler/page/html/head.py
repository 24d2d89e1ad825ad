"""Parse the metadata for search engines: rel=canonical (RFC 6596) and meta robots.

Only the head of a page counts, so that text by users of a site cannot contain metadata. The head
ends where the HTML Standard ends it (13.2.6.4): at the first text, or at a tag of the body. The
content of `noscript` is skipped, as in a browser that runs scripts: it often contains an image,
which must not end the head. Most heads contain neither kind of metadata, and a few searches in
their text prove that. A canonical URL may also be in the Link header (RFC 8288).

Every expression is possessive and every search goes forward, so the time is linear for every page
and header.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain

import msgspec

from trio_crawler.expressions import lazy
from trio_crawler.page import urls, values
from trio_crawler.page.html import tokenizer
from trio_crawler.page.html.tokenizer import (
    NAME_END,
    PASSED,
    SPACE,
    TAG_END_WITH_SLASH,
    TAG_REST,
    decoded_value,
    either_case,
    simple_raw,
)

_MAX_TAGS = 5_000  # the rest of a head with more tags is not read

_RAW = "script style title noscript noframes"
# After a "<", anything that does not end a head and contains no metadata:
#
#   !--…-->                        a comment
#   !doctype …>  ?xml …>  /1>      a doctype or a bogus comment
#   html …>  head …>  base …>      a start tag that may be in or before a head
#   /p>  /link>                    an end tag: the standard ignores all but </body>, </html>, </br>
_IGNORED = rf"""
    {PASSED}
|   (?: {either_case("html head base basefont bgsound")} ) {TAG_REST}
|   / (?! (?: {either_case("body html br")} ) {NAME_END} ) [a-zA-Z] [^{SPACE}/>]*+ {TAG_REST}
"""
# The next tag of a head that may contain metadata, or that begins content to be skipped. There is
# no match at the end of the head:
#
#   text                                    captured
#   <link …>  <meta …>                      metadata, slash
#   <template …>  <script …>  <title …>     skipped, slash
_NEXT = lazy(
    rf"""
    (?: [{SPACE}]++ | < (?: {_IGNORED} ) )*+
    <
    (?: (?P<metadata> {either_case("link meta")} )
    |   (?P<skipped> {either_case("template " + _RAW)} )
    )
    {NAME_END} {TAG_END_WITH_SLASH}
    """,
    re.ASCII | re.VERBOSE,
)


# A beginning of a head without templates and without scripts in comments of scripts.
_SIMPLE_HEAD = lazy(
    rf"""
    (?: [{SPACE}]++
    |   < (?: (?: {either_case("link meta")} ) {TAG_REST}
        |   {_IGNORED}
        |   {"|".join(map(simple_raw, _RAW.split()))}
        )
    )*+
    """,
    re.ASCII | re.VERBOSE,
)
_RELEVANT_TAG = re.compile(rf"<(?:{either_case('link meta')}){NAME_END}").match
# The usual spellings of the two tags with metadata.
_USUAL = re.compile(
    rf"""
    <
    (?: link [ ]rel="canonical" [ ]href="(?P<canonical> [^"&\0]*+ )"
    |   meta [ ]name="robots" [ ]content="(?P<robots> [^"&\0]*+ )"
    )
    [{SPACE}/]*+ >
    """,
    re.VERBOSE,
).match

REFERENCE = re.compile(
    rb"""
    &\#
    (?: 0*+ (?: 45 | 6[5-9] | [7-9][0-9] | 1[01][0-9] | 12[0-2] ) (?![0-9])
    |   x 0*+ (?: 2d | [4-7][0-9a-f] ) (?![0-9a-f])
    )
    """,
    re.VERBOSE,
).search
"""Find a numeric reference, in lower case, to a letter or the hyphen of a keyword."""
_IS_CANONICAL = re.compile(
    rf"(?<![^{SPACE}])canonical(?![^{SPACE}])", re.IGNORECASE | re.ASCII
).search
_NAME, _CONTENT = tokenizer.attribute_matcher("name"), tokenizer.attribute_matcher("content")


class HeadMetadata(msgspec.Struct, frozen=True):
    """The distinct hrefs of rel=canonical and contents of meta robots, references decoded."""

    canonicals: tuple[str, ...] = ()
    robots: tuple[str, ...] = ()


NOTHING = HeadMetadata()
"""That of most heads."""


def parse_head(text: str, *, agent: str = "", xml: bool = False) -> HeadMetadata:
    """Return the metadata in the head of a page.

    A meta element counts if its name is "robots" or `agent`, in any case. With `xml`, a tag that
    ends in "/>" has no content, as in XHTML. After 5,000 tags that may contain metadata or are
    skipped with their content, the rest of the head is not read.
    """
    names = keywords_of(agent)
    places = _scan_head(text, names, xml=xml)
    return _read_tags(text, places, names[1:]) if places else NOTHING


def parse_tags(head: str, starts: list[int], keywords: tuple[bytes, ...]) -> HeadMetadata | None:
    """Return the metadata of the tags of a head whose names end at `starts`.

    None if these may be no tags of it, or if the last one may go on behind the head.
    """
    done = 0
    for start in starts:
        before = start - len("<link")
        if not (_RELEVANT_TAG(head, before) and _SIMPLE_HEAD.fullmatch(head, done, before)):
            return None
        done = before
    return _read_tags(head, starts, keywords[1:]) if _SIMPLE_HEAD.fullmatch(head, done) else None


def canonical_in_headers(fields: Iterable[str], url: str) -> str | None:
    """Return the canonical URL in the Link fields of a response from `url`, or None.

    The rules are those of `single_canonical`. A link with another context (its `anchor`) is
    ignored.
    """
    links = chain.from_iterable(map(values.in_link_field, fields))
    hrefs = [each.target for each in links if _IS_CANONICAL(each.rel) and each.is_about(url)]
    return single_canonical(hrefs, url)


def single_canonical(hrefs: Iterable[str], base: str, encoding: str = "utf-8") -> str | None:
    """Return the normalised http(s) URL that all hrefs resolve to; None if they differ.

    Hrefs that are empty or not an http(s) URL are ignored. `base` is a normalised URL, `encoding`
    that of the document.
    """
    found: set[str] = set()
    for href in filter(str.strip, hrefs):
        try:
            url = base if href == base else urls.normalise_in(encoding, href, base)
        except ValueError:
            continue
        if urls.is_web(url):
            found.add(url)
    return found.pop() if len(found) == 1 else None


@lru_cache(8)
def keywords_of(agent: str) -> tuple[bytes, ...]:
    """Return the keywords in lower case: "canonical", then the names of meta elements."""
    return b"canonical", *dict.fromkeys((b"robots", _lower(agent) or b"robots"))


def _scan_head(text: str, keywords: Iterable[bytes], *, xml: bool) -> list[int]:
    """Read a head tag by tag; return where the names of the tags with keywords end."""
    places: list[int] = []
    at = 0
    for _ in range(_MAX_TAGS):
        if (match := _NEXT.match(text, at)) is None:
            break
        at = match.end()
        if match["metadata"]:
            end = match.end("metadata")
            attributes = text[end : match.start("slash")]
            if _has_keyword(attributes.encode("utf-8", "surrogatepass"), keywords):
                places.append(end)
        elif xml and match["slash"].endswith("/"):
            continue
        elif (name := match["skipped"].lower()) == "template":
            at = tokenizer.template_end(text, at)
        else:
            at = tokenizer.raw_text_end(name, text, at)
    return places


def _has_keyword(source: bytes, keywords: Iterable[bytes]) -> bool:
    source = source.lower()
    # A generator would take as much time as all the rest.
    if any(map(source.__contains__, keywords)):
        return True
    return b"&" in source and REFERENCE(source) is not None


def _read_tags(text: str, starts: list[int], names: tuple[bytes, ...]) -> HeadMetadata:
    """Return the metadata of the tags whose names, `link` or `meta`, end at these places."""
    canonicals: dict[str, None] = {}
    robots: dict[str, None] = {}
    for at in starts:
        if (usual := _USUAL(text, at - len("<link"))) is not None:
            kind = canonicals if usual.lastgroup == "canonical" else robots
            kind[usual[usual.lastgroup or 0]] = None
        elif text[at - 1] in "kK":
            if _IS_CANONICAL(decoded_value(tokenizer.REL, text, at)):
                canonicals[decoded_value(tokenizer.HREF, text, at)] = None
        elif _lower(decoded_value(_NAME, text, at)) in names:
            robots[decoded_value(_CONTENT, text, at)] = None
    return HeadMetadata(tuple(filter(None, canonicals)), tuple(filter(None, robots)))


def _lower(text: str) -> bytes:
    """Return a text as bytes, with ASCII letters in lower case, as the standard compares names."""
    return text.encode("utf-8", "surrogatepass").lower()
