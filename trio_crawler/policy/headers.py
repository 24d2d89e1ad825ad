"""Header fields of a response: its version, dates, and the directives for robots."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from trio_crawler.expressions import lazy
from trio_crawler.model import Validator
from trio_crawler.policy.robots import product_token

LONGEST = 1_024
"""The most bytes of a value that is kept; an entity tag takes a few dozen."""

# Apache, and others like it, mark the entity tag of a body that they encode, and do not recognise
# their mark in a request (bug 45023). The tag without the mark is that of the body as it is
# decoded, which is the one that is kept.
_coded = lazy(rb'((?:W/)?"[^"]*[^"-])(?:--?|;)(?:gzip|br|deflate|zstd)"')
# Bytes that a field value cannot hold (RFC 9110, 5.5).
_has_control = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]").search

MAX_DIRECTIVES = 50
"""The most directives kept from the header fields of one page, and from its meta elements."""

_LONGEST = 100
"""The most characters of a directive; no date in one is that long."""

_MAX_TEXT = 4_096
"""The most characters that are read of one field or attribute."""

# A date has a comma before its day.
_COMMA = re.compile(r",(?!\s*[0-9])")
_VALUED = re.compile(r"unavailable_after|max-[a-z-]+")
_AGENT = re.compile(r"\*|[a-z0-9_-]\S*")


def parse_http_date(text: str) -> datetime | None:
    """Return a date in one of the formats of HTTP (RFC 9110, 5.6.7) as UTC; None if it is none."""
    try:
        date = parsedate_to_datetime(text)
        return date.replace(tzinfo=UTC) if date.tzinfo is None else date.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


class ReceivedHeaders(httpx.Headers):
    """The headers of a response as they were received: httpx reads them when somebody looks.

    ▶ It takes 6 us for the eight fields of a usual head, and 2 us to find one of them.
    """

    def __init__(self, fields: list[tuple[bytes, bytes]], values: dict[bytes, bytes]) -> None:
        self._received = fields, values

    def __getattr__(self, name: str) -> Any:
        """Let httpx read the fields: a method looks for an attribute that was not set yet."""
        given = self.__dict__
        if "_received" not in given:
            raise AttributeError(name)
        fields, _ = given.pop("_received")
        set_before = dict(given)
        super().__init__(fields)
        given.update(set_before)
        return getattr(self, name)

    @property
    def raw(self) -> list[tuple[bytes, bytes]]:
        """The fields as they were received."""
        received = self.__dict__.get("_received")
        return super().raw if received is None else list(received[0])


def by_name(fields: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Return the values of fields by their names in lower case; several of one name as a list."""
    values: dict[bytes, bytes] = {}
    for name, value in fields:
        lower = name.lower()
        values[lower] = values[lower] + b", " + value if lower in values else value
    return values


def validator_of(headers: httpx.Headers) -> Validator | None:
    """Return the validator of a response (RFC 9110, 8.8); None if it has none.

    An entity tag is kept as it was received, weak or strong, quoted or not; one character stands
    for one byte (latin-1). A field that came twice, or cannot be sent back, is left out.
    """
    etag, last_modified = _only(headers, b"etag"), _only(headers, b"last-modified")
    return Validator(etag, last_modified) if etag or last_modified else None


def conditions_of(validator: Validator) -> list[tuple[bytes, bytes]]:
    """Return the fields that make a request conditional (RFC 9110, 13.1.2 and 13.1.3).

    With both values there are both fields; the server then uses the entity tag alone. An entity
    tag that is marked with a content coding (`"a-gzip"`) is sent with the mark and without it. A
    value that cannot be sent is left out.
    """
    fields = []
    if validator.etag is not None and (tag := _encoded(validator.etag)) is not None:
        marked = _coded.fullmatch(tag)
        tags = tag if marked is None else b'%b, %b"' % (tag, marked[1])
        fields.append((b"If-None-Match", tags))
    # With a tag the server ignores the date (RFC 9110, 13.1.3).
    if validator.last_modified is not None and (date := _encoded(validator.last_modified)):
        fields.append((b"If-Modified-Since", date))
    return fields


def _only(headers: httpx.Headers, name: bytes) -> str | None:
    # Raw bytes: httpx would decode them by an encoding that it guesses.
    values = [value for key, value in headers.raw if key.lower() == name]
    value = _sendable(values[0]) if len(values) == 1 else None
    return None if value is None else value.decode("latin-1")


def _encoded(value: str) -> bytes | None:
    try:
        return _sendable(value.encode("latin-1"))
    except UnicodeEncodeError:
        return None


def _sendable(value: bytes) -> bytes | None:
    value = value.strip(b" \t")
    # "*" stands for every version: the answer would be 304 for ever.
    if value in (b"", b"*") or len(value) > LONGEST or _has_control(value):
        return None
    return value


def header_directives(headers: httpx.Headers, token: str) -> tuple[str, ...]:
    """Return the directives of all X-Robots-Tag fields that are for all agents or for this one.

    They are in lower case, distinct and in order; "none" becomes "noindex" and "nofollow".
    `token` is a product token. In a field such as "somebot: noindex, nofollow" all directives are
    for that agent, up to the next agent that the field names.
    """
    fields = headers.get_list("x-robots-tag")
    return _distinct(each for text in fields for each in _for_agent(text, token.lower()))


def meta_directives(contents: Iterable[str]) -> tuple[str, ...]:
    """Return the directives in the `content` attributes of meta elements.

    They have the form that `header_directives` documents. The caller chooses the elements:
    `<meta name=robots>`, and those that are named after its product token.
    """
    return _distinct(
        each for text in contents for part in _elements(text) for each in _words(part)
    )


def _for_agent(text: str, token: str) -> Iterator[str]:
    ours = True
    for element in _elements(text):
        name, colon, rest = element.partition(":")
        if colon and _AGENT.fullmatch(name) and not _VALUED.fullmatch(name):
            ours = name == "*" or (token != "" and product_token(name) == token)
            element = rest
        if ours:
            yield from _words(element)


def _elements(text: str) -> Iterator[str]:
    for part in _COMMA.split(text[:_MAX_TEXT].lower()):
        yield ":".join(piece.strip() for piece in part.split(":"))


def _words(element: str) -> Iterable[str]:
    """Return the directives of one element; white space separates them, but not in a value."""
    return [element] if ":" in element else element.split()


def _distinct(elements: Iterable[str]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for element in elements:
        if len(found) >= MAX_DIRECTIVES:
            break
        if element == "none":
            found.update({"noindex": None, "nofollow": None})
        elif len(element) <= _LONGEST:
            found[element] = None
    return tuple(found)[:MAX_DIRECTIVES]
