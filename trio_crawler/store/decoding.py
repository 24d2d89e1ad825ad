"""The one door for what is read from a database: rows of the types that a crawl writes.

SQLite stores any value in any column, and has no checksums: a byte that flips on a disk may turn a
text into a number. Only what passes here is used, so that damage is found where it is read.
"""

# The annotations are objects, not strings: msgspec reads them.

import json
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

_T = TypeVar("_T")

Count = Annotated[int, Meta(ge=0)]
Number = Annotated[int, Meta(ge=0, le=2**53)]
"""A number after which there are others."""
Time = Annotated[float, Meta(ge=0, le=250_000_000_000)]
"""Seconds since 1970, up to the last year that `datetime` knows."""
Url = Annotated[str, Meta(pattern=r"^https?://[^/]+/")]
Origin = Annotated[str, Meta(pattern=r"^https?://[^/]+$")]
Digest: Any = bytes | None
Latin1 = Annotated[str, Meta(pattern="^[\x00-\xff]*$")]


class BadRow(Exception):
    """A row of the database is none that a crawl writes."""


def checked(kind: type[_T], row: Any) -> _T:
    """Return a row, or a list of rows, as values of a type. Raises BadRow."""
    try:
        return msgspec.convert(row, kind)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise BadRow(str(error)) from error


def parsed(kind: type[_T], text: str | bytes) -> _T:
    """Return the value of JSON text, which may contain lone surrogates. Raises BadRow."""
    return checked(kind, loaded(text))


def loaded(text: str | bytes) -> Any:
    """Return the value of JSON text; bytes are UTF-8 with lone surrogates. Raises BadRow."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8", "surrogatepass")
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRow(str(error)) from error


def decoded(decoder: msgspec.json.Decoder[Any], text: str) -> Any:
    """Return the value of JSON text by a decoder, as `parsed` does, but faster."""
    try:
        return decoder.decode(text)
    except UnicodeEncodeError:
        return parsed(decoder.type, text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadRow(str(error)) from error


def increasing(after: int, last: int) -> int:
    """Return the last number of a portion, which must be above `after`. Raises BadRow.

    Without this a reader that goes on after the last number might go on for ever.
    """
    if last <= after:
        raise BadRow(f"number {last} comes after {after}")
    return last
