"""Rows: what a table keeps of an outcome, and the outcome that comes back from it.

Everything comes back as it was, but a page's body, of which the size and the SHA-1 are kept, and
its headers, of which Content-Type, ETag and Last-Modified are, and anchors of what is neither in
its links nor refused. URL, depth and referrer are those of the URL's own row.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeAlias

import httpx
import msgspec

from trio_crawler.model import (
    Anchor,
    Failure,
    Page,
    Phase,
    Reason,
    Redirect,
    Refused,
    Skipped,
)
from trio_crawler.policy.conditional import LONGEST

Values: TypeAlias = tuple[Any, ...]
Dumps: TypeAlias = Callable[[Any], str]

PAGE = (
    "fetched, status, size, tries, seconds, refused, links_beyond, same_as, digest, content_type, "
    "charset, title, media, etag, last_modified, canonical, duplicate_of, robots, flaws"
)
REDIRECT = "fetched, status, target, refused, tries, seconds"
FAILURE = "fetched, reason, detail, target, phase, tries, seconds"

_KEPT = (b"content-type", b"etag", b"last-modified")
_SIZES = frozenset(map(len, _KEPT))
_SURROGATES = re.compile("[\ud800-\udfff]")
_MOST = 2**63 - 1
_encoder = msgspec.json.Encoder()


def fast(value: Any) -> str:
    """Write JSON. Raises UnicodeEncodeError for a lone surrogate."""
    return _encoder.encode(value).decode()


careful: Dumps = partial(json.dumps, ensure_ascii=False, separators=(",", ":"))
"""Write JSON with whatever characters there are; slower."""


def of_page(
    page: Page, fetched: float, same_as: int | None, digest: bytes | None, dumps: Dumps
) -> Values:
    """Give the values of PAGE, then the links and the refused ones."""
    media, etag, last_modified = _fields(page.headers)
    links, refused = page.links, page.refused
    return (
        fetched,
        page.status,
        page.size,
        page.tries,
        page.seconds,
        len(refused),
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
        dumps(page.robots) if page.robots else None,
        dumps(page.flaws) if page.flaws else None,
        dumps(_anchored(page)) if links else None,
        dumps(_anchored_refused(page)) if refused else None,
    )


def digest_of(page: Page) -> bytes | None:
    """Give the SHA-1 of a body; None if it is empty."""
    return hashlib.sha1(page.body, usedforsecurity=False).digest() if page.body else None


def _fields(headers: httpx.Headers) -> list[str | None]:
    """Give Content-Type, ETag and Last-Modified; what came twice, or is long, is no use."""
    found: dict[bytes, str | None] = {}
    # The raw bytes: httpx guesses an encoding.
    for key, value in headers.raw:
        if len(key) in _SIZES:
            name = key.lower()
            once = name not in found and len(value) <= LONGEST
            found[name] = value.decode("latin-1") if once else None
    return [found.get(name) for name in _KEPT]


def _anchored(page: Page) -> Sequence[Any]:
    if not page.anchors:
        return page.links
    return list(zip(page.links, map(page.anchors.get, page.links), strict=True))


def _anchored_refused(page: Page) -> Sequence[Any]:
    if not page.anchors:
        return page.refused
    anchor = page.anchors.get
    return [(url, reason, anchor(url)) for url, reason in page.refused]


def of_redirect(redirect: Redirect, fetched: float) -> Values:
    """Give the values of REDIRECT."""
    return (
        fetched,
        redirect.status,
        redirect.target,
        redirect.refused,
        redirect.tries,
        redirect.seconds,
    )


def of_failure(failure: Failure, fetched: float) -> Values:
    """Give the values of FAILURE."""
    return (
        fetched,
        failure.reason,
        failure.detail,
        failure.target,
        failure.phase,
        failure.tries,
        failure.seconds,
    )


def storable(values: Values) -> tuple[Values, bytes | None]:
    """Give values that SQLite can hold, and, if these differ, all but the bytes as they were."""
    held = tuple(map(near, values))
    if held == values:
        return values, None
    plain = [None if isinstance(value, bytes) else value for value in values]
    return held, careful(plain).encode("utf-8", "surrogatepass")


def near(value: Any) -> Any:
    """Give what SQLite can hold of a value."""
    if isinstance(value, str):
        return _SURROGATES.sub("\ufffd", value)
    if isinstance(value, int):
        return max(-_MOST, min(value, _MOST))
    return value


def exactly(values: Values, exact: bytes | None) -> Values:
    """Give the values as they were before `storable`."""
    if exact is None:
        return values
    were = json.loads(exact.decode("utf-8", "surrogatepass"))
    pairs = zip(values, were, strict=True)
    return tuple([held if was is None else was for held, was in pairs])


_URLS = msgspec.json.Decoder(list[str])
_LINKS = msgspec.json.Decoder(list[tuple[str, Anchor | None]])
_REFUSED = msgspec.json.Decoder(list[Refused])
_ANCHORED = msgspec.json.Decoder(list[tuple[str, Reason, Anchor | None]])


def page(url: str, depth: int, referrer: str | None, values: Values) -> Page:
    """Make the page of which `of_page` gave the values."""
    (_, status, size, tries, seconds, _, beyond, _, _, content_type, charset) = values[:11]
    title, media, etag, last_modified, canonical, duplicate_of, robots, flaws = values[11:19]
    links, anchors = _links(values[19])
    refused, more = _refused(values[20])
    return Page(
        url,
        status,
        headers_of(media, etag, last_modified),
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
        refused=refused,
        flaws=tuple(map(Reason, words(flaws))),
        canonical=canonical,
        robots=tuple(words(robots)),
        duplicate_of=duplicate_of,
        anchors=more | anchors,
        body_size=size,
    )


def headers_of(media: str | None, etag: str | None, last_modified: str | None) -> httpx.Headers:
    """Make headers of what is kept of them."""
    named = ((b"Content-Type", media), (b"ETag", etag), (b"Last-Modified", last_modified))
    return httpx.Headers([(key, value.encode("latin-1")) for key, value in named if value])


def words(text: str | None) -> list[str]:
    """Read a JSON list of strings; NULL is an empty one."""
    return [] if text is None else read(_URLS, text)


def read(decoder: msgspec.json.Decoder[Any], text: str) -> Any:
    """Read JSON that may hold lone surrogates."""
    try:
        return decoder.decode(text)
    except UnicodeEncodeError:
        return msgspec.convert(json.loads(text), decoder.type)


def _links(text: str | None) -> tuple[tuple[str, ...], dict[str, Anchor]]:
    if text is None:
        return (), {}
    if not text.startswith("[["):
        return tuple(read(_URLS, text)), {}
    pairs = read(_LINKS, text)
    return tuple([url for url, _ in pairs]), _named(pairs)


def _refused(text: str | None) -> tuple[tuple[Refused, ...], dict[str, Anchor]]:
    if text is None:
        return (), {}
    try:
        found = read(_ANCHORED, text)
    except msgspec.ValidationError:
        return tuple(read(_REFUSED, text)), {}
    return (
        tuple([Refused(url, reason) for url, reason, _ in found]),
        _named((url, anchor) for url, _, anchor in found),
    )


def _named(pairs: Iterable[tuple[str, Anchor | None]]) -> dict[str, Anchor]:
    return {url: anchor for url, anchor in pairs if anchor is not None}


def redirect(url: str, depth: int, referrer: str | None, values: Values) -> Redirect:
    """Make the redirect of which `of_redirect` gave the values."""
    _, status, target, refused, tries, seconds = values
    reason = None if refused is None else Reason(refused)
    return Redirect(url, status, target, depth, referrer, tries, seconds, reason)


def failure(url: str, depth: int, referrer: str | None, values: Values) -> Failure:
    """Make the failure of which `of_failure` gave the values."""
    _, reason, detail, target, phase, tries, seconds = values
    way = (depth, referrer, tries, seconds)
    return Failure(url, Reason(reason), detail, *way, target, Phase(phase) if phase else None)


def skipped(url: str, depth: int, referrer: str | None, values: Values) -> Skipped:
    """Make the outcome of a URL that was not asked for."""
    return Skipped(url, Reason(values[0]), depth, referrer)
