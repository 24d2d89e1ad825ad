"""Validators: the version of a response, and the conditional request made from it."""

from __future__ import annotations

import re

import httpx

from trio_crawler.model import Validator

LONGEST = 1_024
"""The most bytes of a value that is kept; an entity tag takes a few dozen."""

# Apache, and others like it, mark the entity tag of a body that they encode, and do not recognise
# their mark in a request (bug 45023). The tag without the mark is that of the body as it is
# decoded, which is the one that is kept.
_coded = re.compile(rb'((?:W/)?"[^"]*[^"-])(?:--?|;)(?:gzip|br|deflate|zstd)"').fullmatch
# Bytes that a field value cannot hold (RFC 9110, 5.5).
_has_control = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]").search


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
        marked = _coded(tag)
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
