"""Read the facts of a page: its headings, its metadata, and its figures.

They come from the start tags that the link readers find, and from the reader of the text. A tree
would have them in fewer lines, but it takes quadratic time: ▶ lexbor needs 26 s for 512 KiB of
`<div>`, and 2.8 s and 1.3 GiB for 32 KiB of `<b x=1><p>`. A page of 28 KB (SQLite's documentation)
takes 0.08 ms here.
"""

from __future__ import annotations

import re
from bisect import bisect
from codecs import BOM_UTF8
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import httpx
import msgspec

from trio_crawler.expressions import lazy
from trio_crawler.facts import PageFacts
from trio_crawler.page import charset, entities, media, urls
from trio_crawler.page.html.start_tags import StartTag, attributes, start_tags
from trio_crawler.page.html.tokenizer import (
    ANY_TAG,
    COMMENT,
    NAME_END,
    SPACE,
    TAG_END,
    either_case,
)
from trio_crawler.page.link_targets import resolve_base
from trio_crawler.page.text_digest import outline

HEADERS = (
    *("server", "content-language", "content-encoding", "cache-control", "expires", "etag"),
    *("last-modified", "vary", "x-robots-tag", "strict-transport-security", "referrer-policy"),
    *("content-security-policy", "x-content-type-options", "x-frame-options"),
)
"""The names of the response headers that the facts of a page have."""

_NAMES = {name.encode(): name for name in HEADERS}
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
# From the tag on: what may follow the name, and all the rest if the tag has no end.
_H1 = lazy(rf"<[hH]1 {NAME_END} (?: {TAG_END} | (?s: .*+ ) )", re.VERBOSE)
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
# An empty element that has an id, or the name of a custom element.
_EMPTY_ROOT = re.compile(
    r"<(?:(?:div|main|section)(?=[^<>]*?\sid\s*=)[^<>]*+|[a-z]+-[a-z0-9-]{1,60})>\s{0,100}</",
    re.IGNORECASE,
).search
# ▶ The pages of a site have most of these tags in common: it saves a tenth of the time.
_SHORT = 300  # characters
_attributes = lru_cache(1_024)(attributes)
_SOURCES = dict.fromkeys(("img", "script", "iframe", "audio", "video", "source"), "src")
_SOURCES |= {"track": "src", "embed": "src", "object": "data", "link": "href"}
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
    source = body.removeprefix(BOM_UTF8)
    if xml or encoding != "utf-8":
        text, _ = charset.decode(body, encoding)
        if xml:
            text = media.blank_doctype(text)
        if kind in media.XML and not media.has_html_root(text):
            return PageFacts(fetched, served)
        source = text.encode("utf-8", "replace")
    words, tags = outline(source, xml=xml)
    # A character for each byte: ▶ to decode it all takes a tenth of the time.
    text = source.decode("latin-1")
    root = _ROOT.match(text)
    lang = attributes(_decoded(root["attributes"])).get("lang", "") if root else ""
    reader = _Reader(text, url, encoding)
    for tag in start_tags(text, xml=xml, lean=True):
        reader.read(tag)
    h1, count = reader.headings(tags)
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
        words < _FEW_WORDS and reader.scripts and _EMPTY_ROOT(text) is not None,
    )


def header_values(headers: httpx.Headers) -> dict[str, str]:
    """Return the values of `HEADERS` that a response has."""
    found: dict[str, str] = {}
    for name, value in headers.raw:
        if (key := _NAMES.get(name.lower())) is not None and value:
            text = _decoded(value.decode("latin-1"))
            found[key] = f"{found[key]}, {text}" if key in found else text
    return {name: found[name][:_LONGEST] for name in HEADERS if name in found}


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
        # Where the content of an element that is no markup begins and ends.
        self._raw: list[tuple[int, int]] = []

    def read(self, tag: StartTag) -> None:
        """Read one start tag."""
        name, at, start, end, content, content_end, foreign = tag
        if content_end > content:
            self._raw.append((content, content_end))
        if not foreign and (name in _SOURCES or name in ("meta", "base")):
            source = self._text[start:end]
            found = (_attributes if len(source) < _SHORT else attributes)(_decoded(source))
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
            found = msgspec.json.decode(_decoded(self._text[start:end]))
        # A document of a million brackets is too deep.
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            self.errors.append(str(error).removeprefix("JSON is malformed: "))
        else:
            self.items += _types(found)

    def _part(self, name: str, found: dict[str, str]) -> None:
        source = found.get(_SOURCES[name])
        if source is None:
            return
        is_link = name == "link"
        if is_link and "hreflang" in found and "alternate" in found.get("rel", "").lower().split():
            language = _collapsed(entities.in_attribute(found["hreflang"]))
            self._alternates.append((language, entities.in_attribute(source)))
        # It may also be one by its base, but then each part is.
        if (
            self._url.startswith("https:")
            and source.lstrip()[:5].lower() == "http:"
            and not (is_link and _PARTS.isdisjoint(found.get("rel", "").lower().split()))
        ):
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

    def headings(self, tags: list[tuple[int, int]]) -> tuple[list[str], int]:
        """Return the texts of the first h1, and the number of all."""
        found: list[str] = []
        count = 0
        for at, _ in tags:
            raw = bisect(self._raw, (at, len(self._text)))
            tag = _H1.match(self._text, at)
            if tag is not None and not (raw and at < self._raw[raw - 1][1]):
                count += 1
                if len(found) < _MOST_H1:
                    found.append(self._heading(tag.end()))
        return found, count

    def _heading(self, at: int) -> str:
        text = self._text
        end = _HEADING_END(text, at, at + _HEADING)
        to = min(len(text), at + _HEADING) if end is None else end.start()
        written = _decoded(text[at:to])
        source = _IN_HEADING.sub(lambda each: " " if each["ends"] else "", written)
        alts = [alt for begin, alt in self.images if at <= begin < to and alt]
        return _collapsed(entities.in_text(source)) or _collapsed(" ".join(alts))


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


def _decoded(text: str) -> str:
    """Return the text of a source that has a character for each byte."""
    return text if text.isascii() else text.encode("latin-1").decode("utf-8", "replace")


def _collapsed(text: str) -> str:
    return " ".join(text[: 16 * _LONGEST].split())[:_LONGEST].rstrip(" ")
