"""Read the facts of a page: its headings, its metadata, and its figures.

They come from the start tags that the link readers find, and from one search for headings. A tree
would have them in fewer lines, but it takes quadratic time: ▶ lexbor needs 26 s for 512 KiB of
`<div>`, and 2.8 s and 1.3 GiB for 32 KiB of `<b x=1><p>`. A page of 28 KB (SQLite's documentation)
takes 0.5 ms here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec

from trio_crawler.expressions import lazy
from trio_crawler.facts import PageFacts
from trio_crawler.page import charset, entities, media, urls
from trio_crawler.page.html.start_tags import PLACE, StartTag, attributes, start_tags
from trio_crawler.page.html.tokenizer import (
    ANY_TAG,
    COMMENT,
    NAME_END,
    SPACE,
    TAG_END,
    either_case,
)
from trio_crawler.page.link_targets import resolve_base
from trio_crawler.page.text_digest import visible_text

HEADERS = (
    *("server", "content-language", "content-encoding", "cache-control", "expires", "etag"),
    *("last-modified", "vary", "x-robots-tag", "strict-transport-security", "referrer-policy"),
    *("content-security-policy", "x-content-type-options", "x-frame-options"),
)
"""The names of the response headers that the facts of a page have."""

_LONGEST, _MOST_H1, _MOST_PAIRS, _MOST_SOCIAL = 500, 10, 200, 50
_MOST_ITEMS, _MOST_ERRORS, _MOST_INSECURE = 50, 10, 20
_MOST_JSON = 1 << 20
_FEW_WORDS = 10
_HEADING = 4_096  # characters of its source

# What comes before the tag of the root, and this tag.
_ROOT = lazy(
    rf"""
    (?: [{SPACE}\ufeff]++ | < (?: {COMMENT} > | (?: ! (?!--) | \? ) [^>]*+ > ) )*+
    < (?:{either_case("html")}) {NAME_END} (?P<attributes> (?= {TAG_END} ) [^>]*+ )
    """,
    re.VERBOSE,
)
# The next h1, or an element whose content is not shown. Without an end each goes to the end of the
# text, so that the search takes linear time.
_HIDDEN = "script style noscript template title textarea xmp iframe noembed noframes"
_NEXT = lazy(
    rf"""
    < (?: {COMMENT} > | !-- (?s: .*+ )
    |   (?P<hidden> {either_case(_HIDDEN)} ) {NAME_END}
    |   (?P<h1> [hH]1 ) {NAME_END} (?: {TAG_END} | (?s: .*+ ) )
    )
    """,
    re.VERBOSE,
)
_HIDDEN_END = {
    name: lazy(rf"</(?:{either_case(name)}){NAME_END}", re.VERBOSE) for name in _HIDDEN.split()
}
_HEADING_END = re.compile(rf"</?[hH][1-6]{NAME_END}").search
# In a heading: what is not shown, a tag that ends a word, and any other tag.
_IN_HEADING = lazy(
    rf"""
    < (?: {COMMENT} >
    |   (?P<name> script | style | template ) {NAME_END}
        (?s: .*? ) (?: </ (?P=name) [^>]*+ >?+ | \Z )
    |   (?P<ends> /?+ (?: br | div | p | li | hr ) {NAME_END} {TAG_END} )
    |   /?+ [a-zA-Z] {ANY_TAG}
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_EMPTY_CUSTOM = re.compile(r"<([a-z]+-[a-z0-9-]{1,60})>\s{0,100}</\1>").search
_CLOSED = re.compile(r"\s{0,100}</").match
_SOURCES = dict.fromkeys(("img", "script", "iframe", "audio", "video", "source"), "src")
_SOURCES |= {"track": "src", "embed": "src", "object": "data", "link": "href"}
_ROOTS = frozenset({"div", "main", "section"})
_PARTS = frozenset({"stylesheet", "icon", "preload", "modulepreload", "manifest"})
_SOCIAL = ("og:", "article:", "twitter:", "fb:", "product:", "profile:", "book:")


def page_facts(
    body: bytes,
    kind: str,
    encoding: str,
    url: str,
    headers: httpx.Headers,
    *,
    fetched: float,
) -> PageFacts:
    """Return the facts of a good answer from `url`, of this media type and encoding.

    Those of its content are left out unless it is HTML or XHTML.
    """
    served = header_values(headers)
    if kind not in media.MARKUP or not encoding:
        return PageFacts(fetched, served)
    xml = kind != media.HTML
    text, _ = charset.decode(body, encoding)
    if xml:
        text = media.without_doctype(text)
        if kind in media.XML and not media.has_html_root(text):
            return PageFacts(fetched, served)
    root = _ROOT.match(text)
    lang = attributes(root["attributes"]).get("lang", "") if root else ""
    source = body if encoding == "utf-8" and not xml else text.encode("utf-8", "replace")
    words = len(visible_text(source, xml=xml).split())
    reader = _Reader(text, url, encoding)
    for tag in start_tags(text, xml=xml):
        # The usual link has no name.
        if tag[0]:
            reader.read(tag)
    h1, count = reader.headings()
    return PageFacts(
        fetched,
        served,
        _collapsed(entities.in_attribute(lang)),
        tuple(h1),
        count,
        reader.description,
        reader.alternates(),
        reader.social,
        tuple(reader.items[:_MOST_ITEMS]),
        tuple(reader.errors[:_MOST_ERRORS]),
        words,
        len(reader.images),
        sum(alt is None for _, alt in reader.images),
        tuple(dict.fromkeys(reader.insecure))[:_MOST_INSECURE],
        words < _FEW_WORDS and reader.scripts and reader.has_root(),
    )


def header_values(headers: httpx.Headers) -> dict[str, str]:
    """Return the values of `HEADERS` that a response has."""
    found = {name: headers.get(name) for name in HEADERS}
    return {name: value[:_LONGEST] for name, value in found.items() if value}


class _Reader:
    """The facts of the start tags of one page, in the order of the page."""

    def __init__(self, text: str, url: str, encoding: str) -> None:
        self.description: str | None = None
        self.social: dict[str, str] = {}
        self.items: list[str] = []
        self.errors: list[str] = []
        # Where each image begins, and its `alt`.
        self.images: list[tuple[int, str | None]] = []
        self.insecure: list[str] = []
        self.scripts = False
        self._text = text
        self._url = url
        self._encoding = encoding
        self._base: str | None = None
        self._alternates: list[tuple[str, str]] = []
        self._has_empty = False

    def read(self, tag: StartTag) -> None:
        """Read one start tag."""
        name, at, start, end, content, content_end, foreign = tag
        if name == PLACE:
            self._has_empty = self._has_empty or _CLOSED(self._text, content) is not None
        elif not foreign and (name in _SOURCES or name in ("meta", "base")):
            found = attributes(self._text[start:end])
            if name == "meta":
                self._meta(found)
            elif name == "base":
                if "href" in found and self._base is None:
                    source = entities.in_attribute(found["href"])
                    self._base = resolve_base(source, self._url, self._encoding)
            else:
                if name == "img":
                    alt = found.get("alt")
                    self.images.append((at, None if alt is None else entities.in_attribute(alt)))
                elif name == "script":
                    self._script(found.get("type", ""), content, content_end)
                self._part(name, found)
        elif name in _ROOTS and "id" in attributes(self._text[start:end]):
            # An id that is written in another way than most.
            self._has_empty = self._has_empty or _CLOSED(self._text, content) is not None

    def _meta(self, found: dict[str, str]) -> None:
        content = found.get("content")
        name = entities.in_attribute(found.get("property") or found.get("name", "")).strip()
        if content is None:
            return
        name, value = name.lower(), _collapsed(entities.in_attribute(content))
        if name == "description" and self.description is None:
            self.description = value
        elif name.startswith(_SOCIAL) and len(self.social) < _MOST_SOCIAL:
            self.social.setdefault(name[:_LONGEST], value)

    def _script(self, kind: str, start: int, end: int) -> None:
        if kind.strip().lower() != "application/ld+json":
            self.scripts = True
            return
        try:
            if end - start > _MOST_JSON:
                raise ValueError("it has more than 1 MiB")
            found = msgspec.json.decode(self._text[start:end])
        # A document of a million brackets is too deep.
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            self.errors.append(str(error).removeprefix("JSON is malformed: "))
        else:
            self.items += _types(found)

    def _part(self, name: str, found: dict[str, str]) -> None:
        source = found.get(_SOURCES[name])
        if source is None:
            return
        rel = set(found.get("rel", "").lower().split())
        if name == "link" and "alternate" in rel and "hreflang" in found:
            language = _collapsed(entities.in_attribute(found["hreflang"]))
            self._alternates.append((language, entities.in_attribute(source)))
        if name == "link" and _PARTS.isdisjoint(rel):
            return
        # It may also be one by its base, but then each part is.
        if self._url.startswith("https:") and source.lstrip()[:5].lower() == "http:":
            self.insecure.append(entities.in_attribute(source).strip()[:_LONGEST])

    def alternates(self) -> tuple[tuple[str, str], ...]:
        """Return the pairs of language and URL that are URLs."""
        pairs = []
        for language, href in self._alternates[:_MOST_PAIRS]:
            try:
                pairs.append((language, urls.normalise(href, self._base or self._url)))
            except ValueError:
                continue
        return tuple(pairs)

    def headings(self) -> tuple[list[str], int]:
        """Return the texts of the first h1, and the number of all."""
        text, at, count = self._text, 0, 0
        # ▶ Most pages have one h1, near their beginning: the search takes half of all the time.
        last = max(text.rfind("<h1"), text.rfind("<H1"))
        found: list[str] = []
        while at <= last and (match := _NEXT.search(text, at)) is not None:
            at = match.end()
            if (name := match["hidden"]) is not None:
                end = _HIDDEN_END[name.lower()].search(text, at)
                at = len(text) if end is None else end.end()
            elif match["h1"] is not None:
                count += 1
                if len(found) < _MOST_H1:
                    found.append(self._heading(at))
        return found, count

    def _heading(self, at: int) -> str:
        text = self._text
        end = _HEADING_END(text, at, at + _HEADING)
        to = min(len(text), at + _HEADING) if end is None else end.start()
        source = _IN_HEADING.sub(lambda each: " " if each["ends"] else "", text[at:to])
        alts = [alt for begin, alt in self.images if at <= begin < to and alt]
        return _collapsed(entities.in_text(source)) or _collapsed(" ".join(alts))

    def has_root(self) -> bool:
        """Whether an element that has an id, or the name of a custom element, is empty."""
        return self._has_empty or _EMPTY_CUSTOM(self._text) is not None


def _types(found: Any) -> Iterator[str]:
    """Yield the types of the items at the top of JSON-LD: of a list or a graph those in it."""
    for item in found if isinstance(found, list) else [found]:
        if not isinstance(item, dict):
            continue
        graph = item.get("@graph")
        for each in [item, *(graph if isinstance(graph, list) else ())]:
            named = each.get("@type") if isinstance(each, dict) else None
            for name in named if isinstance(named, list) else [named]:
                if isinstance(name, str):
                    yield _collapsed(name)


def _collapsed(text: str) -> str:
    return " ".join(text[: 16 * _LONGEST].split())[:_LONGEST].rstrip(" ")
