"""Convert outcomes to the values of a row, and rows back to outcomes.

An outcome is read back unchanged, with three exceptions. Of the body of a page only the size and
the SHA-1 are stored; of its headers only Content-Type, ETag and Last-Modified; of its anchors only
those of its links and rejected links. URL, depth and referrer are in the row of the URL.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from struct import pack, unpack
from types import GenericAlias
from typing import Any, TypeAlias

import httpx
import msgspec

from trio_crawler.facts import PageFacts
from trio_crawler.link import Link
from trio_crawler.model import (
    Anchor,
    Checked,
    Failure,
    Outcome,
    Page,
    Phase,
    Purpose,
    Reason,
    Redirect,
    RejectedLink,
    Skipped,
)
from trio_crawler.page.text_digest import page_text
from trio_crawler.policy.answers import LONGEST
from trio_crawler.reason import NOT_WHOLE
from trio_crawler.store.database import (
    BadRow,
    Count,
    Digest,
    Number,
    Time,
    Url,
    checked,
    decoded,
)

Values: TypeAlias = tuple[Any, ...]
EncodeJson: TypeAlias = Callable[[Any], str]

PAGE = (
    "fetched, status, size, tries, seconds, rejected, links_beyond, same_as, digest, "
    "content_type, charset, title, media, etag, last_modified, canonical, duplicate_of, robots, "
    "flaws, folded_into"
)
REDIRECT = "fetched, status, target, rejected, tries, seconds, fragment"
FAILURE = "fetched, reason, detail, target, phase, tries, seconds, about"
CHECK = "fetched, status, reason, detail, phase, target, rejected, tries, seconds, fragment"


# The types of rows: number, URL, depth and referrer; then the columns above. Of a page the links
# and the rejected links follow.
def _row(*columns: Any) -> Any:
    return GenericAlias(tuple, (int, Url, Count, _TEXT, *columns))


_TEXT: Any = str | None
PAGE_ROW = _row(
    *(Time, Count, Count, Count, float, Count, Count, int | None, Digest),
    *(str, str, _TEXT, _TEXT, _TEXT, _TEXT, _TEXT, _TEXT, _TEXT, _TEXT, _TEXT, _TEXT, _TEXT),
)
REDIRECT_ROW = _row(Time, Count, str, Reason | None, Count, float, _TEXT)
FAILURE_ROW = _row(Time, Reason, str, _TEXT, Phase | None, Count, float, Purpose | None)
SKIP_ROW = _row(Reason)
CHECK_ROW = _row(
    *(Time, Count | None, Reason | None, str, Phase | None, _TEXT, Reason | None, Count, float),
    _TEXT,
)

_HEADERS = (b"content-type", b"etag", b"last-modified")
_NO_HEADERS = httpx.Headers()
_SURROGATES = re.compile("[\ud800-\udfff]")
_MAX_INTEGER = 2**63 - 1
_encoder = msgspec.json.Encoder()


def to_json(value: Any) -> str:
    """Return a value as JSON. Raises UnicodeEncodeError for a lone surrogate."""
    return _encoder.encode(value).decode()


any_to_json: EncodeJson = partial(json.dumps, ensure_ascii=False, separators=(",", ":"))
"""Return a value as JSON, also with lone surrogates; slower."""


def page_values(
    page: Page,
    fetched: float,
    same_as: int | None,
    digest: bytes | None,
    encode: EncodeJson,
) -> Values:
    """Return the values of the columns PAGE."""
    media, etag, last_modified = _stored_headers(page.headers)
    return (
        fetched,
        page.status,
        page.size,
        page.tries,
        page.seconds,
        len(page.rejected),
        page.links_beyond,
        same_as,
        digest,
        page.content_type,
        page.charset,
        page.title,
        media,
        etag,
        last_modified,
        page.canonical,
        page.duplicate_of,
        encode(page.robots) if page.robots else None,
        encode(page.flaws) if page.flaws else None,
        page.folded_into,
    )


def link_values(page: Page, encode: EncodeJson, numbers: Mapping[str, int]) -> Values:
    """Return the links and the rejected links of a page, None for none.

    Links that have one of the `numbers` are stored as that.
    """
    links: Sequence[Any] = [numbers.get(url, url) for url in page.links] if numbers else page.links
    rejected: Sequence[Any] = page.rejected
    if page.anchors:
        anchor = page.anchors.get
        links = list(zip(links, map(anchor, page.links), strict=True))
        rejected = [(url, reason, anchor(url)) for url, reason in rejected]
    return encode(links) if links else None, encode(rejected) if rejected else None


def digests(page: Page, known: bytes | None) -> Values:
    """Return the SHA-1 of a body, unless it is `known`; digest, size and blocks of its text.

    Each is None if there is none, or if the body is not whole; only a good page has a text.
    """
    if not page.body or not NOT_WHOLE.isdisjoint(page.flaws):
        return (None, None, None, None)
    good = 200 <= page.status < 300
    text = good and page_text(page.body, page.content_type, page.charset)
    known = known or hashlib.sha1(page.body, usedforsecurity=False).digest()
    return known, *(text or (None, None, None))


def _stored_headers(headers: httpx.Headers) -> list[str | None]:
    """Return Content-Type, ETag and Last-Modified; None for one that is repeated or too long."""
    found: dict[bytes, str | None] = {}
    # Raw bytes: httpx would decode them by an encoding that it guesses.
    for key, value in headers.raw:
        if (name := key.lower()) in _HEADERS:
            once = name not in found and len(value) <= LONGEST
            found[name] = value.decode("latin-1") if once else None
    return list(map(found.get, _HEADERS))


_VALUES: Mapping[type[Outcome], attrgetter[Values]] = {
    kind: attrgetter(*columns.split(", ")[1:])
    for kind, columns in ((Redirect, REDIRECT), (Failure, FAILURE), (Checked, CHECK))
}


def other_values(outcome: Redirect | Failure | Checked, fetched: float) -> Values:
    """Return the values of the columns REDIRECT, FAILURE or CHECK."""
    *values, last = _VALUES[type(outcome)](outcome)
    # No fragment is stored as NULL.
    return (fetched, *values, last or None)


def column_value(value: Any) -> Any:
    """Return the nearest value that a column can hold: without surrogates, of 64 bits."""
    if isinstance(value, str):
        return _SURROGATES.sub("\ufffd", value)
    if isinstance(value, int):
        return max(-_MAX_INTEGER, min(value, _MAX_INTEGER))
    return value


_STRINGS = msgspec.json.Decoder(tuple[str, ...])
_REASONS = msgspec.json.Decoder(tuple[Reason, ...])
_URLS = msgspec.json.Decoder(list[str | Number])
_LINKS = msgspec.json.Decoder(list[tuple[str | Number, Anchor | None]])
# ▶ Without their texts the links of a page are read in two thirds of the time.
_LINKS_ALONE = msgspec.json.Decoder(list[tuple[str | Number, msgspec.Raw]])
_REJECTED = msgspec.json.Decoder(list[RejectedLink])
_ANCHORED = msgspec.json.Decoder(list[tuple[str, Reason, Anchor | None]])
# Rejected links without texts end with a reason.
_END = '"]]'


def page(
    url: str,
    depth: int,
    referrer: str | None,
    values: Values,
    named: Callable[[int], str],
    *,
    brief: bool = False,
) -> Page:
    """Return the page from the values of `page_values` and `link_values`.

    `named` returns the URL with a number. With `brief` the page has neither headers nor anchors.
    """
    (_, status, size, tries, seconds, _, beyond, _, _, content_type, charset) = values[:11]
    title, media, etag, last_modified, canonical, duplicate_of, robots, flaws = values[11:19]
    links, anchors = _links(values[20], named, texts=not brief)
    rejected, more = _rejected(values[21], texts=not brief)
    return Page(
        url,
        status,
        _NO_HEADERS if brief else _headers(media, etag, last_modified),
        b"",
        depth=depth,
        referrer=referrer,
        tries=tries,
        seconds=seconds,
        content_type=content_type,
        charset=charset,
        title=title,
        links=links,
        links_beyond=beyond,
        rejected=rejected,
        flaws=parse_reasons(flaws),
        canonical=canonical,
        robots=() if robots is None else decoded(_STRINGS, robots),
        duplicate_of=duplicate_of,
        anchors=more | anchors,
        body_size=size,
        folded_into=values[19],
    )


def _headers(media: str | None, etag: str | None, last_modified: str | None) -> httpx.Headers:
    """Return the headers that were stored. Raises BadRow."""
    named = ((b"Content-Type", media), (b"ETag", etag), (b"Last-Modified", last_modified))
    try:
        fields = [(key, value.encode("latin-1")) for key, value in named if value]
    except UnicodeEncodeError as error:
        raise BadRow(str(error)) from error
    return httpx.Headers(fields)


def parse_reasons(text: str | None) -> tuple[Reason, ...]:
    """Return the reasons of a JSON list; none for NULL. Raises BadRow."""
    return () if text is None else decoded(_REASONS, text)


def _links(
    text: str | None, named: Callable[[int], str], *, texts: bool
) -> tuple[tuple[str, ...], dict[str, Anchor]]:
    if text is None:
        return (), {}
    if not text.startswith("[["):
        found = decoded(_URLS, text)
        return tuple([url if isinstance(url, str) else named(url) for url in found]), {}
    pairs = [
        (url if isinstance(url, str) else named(url), anchor)
        for url, anchor in decoded(_LINKS if texts else _LINKS_ALONE, text)
    ]
    return tuple([url for url, _ in pairs]), _anchors(pairs) if texts else {}


def _rejected(
    text: str | None, *, texts: bool
) -> tuple[tuple[RejectedLink, ...], dict[str, Anchor]]:
    if text is None:
        return (), {}
    if text.endswith(_END):
        return tuple(decoded(_REJECTED, text)), {}
    found = decoded(_ANCHORED, text)
    return (
        tuple([RejectedLink(url, reason) for url, reason, _ in found]),
        _anchors((url, anchor) for url, _, anchor in found) if texts else {},
    )


def _anchors(pairs: Iterable[tuple[str, Anchor | None]]) -> dict[str, Anchor]:
    return {url: anchor for url, anchor in pairs if anchor is not None}


def other(
    kind: type[Redirect | Failure | Skipped | Checked],
    columns: Sequence[str],
    url: str,
    depth: int,
    referrer: str | None,
    values: Values,
) -> Outcome:
    """Return the outcome from the values that `other_values` returned for it, by its columns."""
    stored = zip(columns, values, strict=True)
    # The fields that may be NULL have that, or "", as their default.
    fields = {name: value for name, value in stored if value is not None and name != "fetched"}
    return kind(url, depth=depth, referrer=referrer, **fields)


_FACTS = msgspec.json.Decoder(PageFacts)


def facts_value(facts: PageFacts) -> str:
    """Return the facts of a page as they are stored."""
    try:
        return to_json(facts)
    except UnicodeEncodeError:
        # A lone surrogate, which no column can hold.
        return _SURROGATES.sub("\ufffd", any_to_json(msgspec.to_builtins(facts)))


def stored_page_facts(text: str) -> PageFacts:
    """Return the facts of a page from their column. Raises BadRow."""
    found: PageFacts = decoded(_FACTS, text)
    return found


FOUND = "size, links, targets"
MAX_SIZE = 128 * 1024 * 1024
"""The most bytes of JSON for one page; 100,000 links of a usual page have 13 MB."""

# ▶ The next level takes a third longer and saves 5 %.
_LEVEL = 1
_KEY = 8
_FOUND_LINKS = msgspec.json.Decoder(tuple[Link, ...])
_FOUND_ROW: Any = tuple[int | None, bytes | None, bytes | None]


def found_values(outcome: Outcome) -> Values | None:
    """Return the values of the columns; None if there is nothing to store."""
    if not isinstance(outcome, Page | Checked):
        return None
    links = tuple(outcome.found) if isinstance(outcome, Page) else ()
    if not links and outcome.targets is None:
        return None
    places = outcome.targets
    targets = None if places is None else pack(f"<{len(places)}Q", *sorted(places))
    return (*_compressed(links), targets) if links else (None, None, targets)


def _compressed(links: Sequence[Link]) -> tuple[int, bytes]:
    try:
        text = to_json(links).encode()
    except UnicodeEncodeError:
        text = any_to_json(links).encode("utf-8", "surrogatepass")
    if len(text) > MAX_SIZE:
        # Far more links than the default limit: those that come first are kept.
        return _compressed(links[: len(links) // 2])
    packed = zlib.compress(text, _LEVEL)
    return len(text), packed if len(packed) < len(text) else text


def found_fields(outcome: Outcome, values: Any) -> dict[str, Any]:
    """Return the fields of an outcome from the values of the columns. Raises BadRow."""
    size, links, targets = checked(_FOUND_ROW, values)
    fields: dict[str, Any] = {"targets": stored_places(targets)}
    if isinstance(outcome, Page):
        fields["found"] = () if links is None else _stored_links(size, links)
    return fields


def _stored_links(size: int | None, packed: bytes) -> tuple[Link, ...]:
    """Return the links of a page from their columns. Raises BadRow."""
    text = packed if size == len(packed) else _decompressed(size, packed)
    try:
        return tuple(decoded(_FOUND_LINKS, text.decode("utf-8", "surrogatepass")))
    except UnicodeDecodeError as error:
        raise BadRow(str(error)) from error


def _decompressed(size: int | None, packed: bytes) -> bytes:
    if size is None or not 0 <= size <= MAX_SIZE:
        raise BadRow(f"links of {size} bytes")
    stream = zlib.decompressobj()
    try:
        text = stream.decompress(packed, size + 1)
    except zlib.error as error:
        raise BadRow(str(error)) from error
    if len(text) != size or not stream.eof:
        raise BadRow(f"links that have not {size} bytes")
    return text


def stored_places(packed: bytes | None) -> frozenset[int] | None:
    """Return the places of a page from their column. Raises BadRow."""
    if packed is None:
        return None
    if len(packed) % _KEY:
        raise BadRow(f"{len(packed)} bytes of places")
    return frozenset(unpack(f"<{len(packed) // _KEY}Q", packed))
