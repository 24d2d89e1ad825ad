"""Convert what a page points to, and its places, to compact columns and back.

The links are JSON, compressed as in an SQLite archive: by zlib, or not at all if that is no longer
than the original. They are read within a bound, since somebody may have planted the database.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec

from trio_crawler.link import Link
from trio_crawler.model import Checked, Outcome, Page
from trio_crawler.store.database import BadRow, checked, decoded
from trio_crawler.store.rows import any_to_json, to_json

COLUMNS = "size, links, targets"
MAX_SIZE = 128 * 1024 * 1024
"""The most bytes of JSON for one page; 100,000 links of a usual page have 13 MB."""

Values: TypeAlias = tuple[int | None, bytes | None, bytes | None]

# ▶ The next level takes a third longer and saves 5 %.
_LEVEL = 1
_KEY = 8
_LINKS = msgspec.json.Decoder(tuple[Link, ...])
_ROW: Any = tuple[int | None, bytes | None, bytes | None]


def found_values(outcome: Outcome) -> Values | None:
    """Return the values of the columns; None if there is nothing to store."""
    if not isinstance(outcome, Page | Checked):
        return None
    links = tuple(outcome.found) if isinstance(outcome, Page) else ()
    if not links and outcome.targets is None:
        return None
    targets = None if outcome.targets is None else _packed(outcome.targets)
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


def _packed(targets: frozenset[int]) -> bytes:
    keys = array("Q", sorted(targets))
    if sys.byteorder == "big":
        keys.byteswap()
    return keys.tobytes()


def found_fields(outcome: Outcome, values: Any) -> dict[str, Any]:
    """Return the fields of an outcome from the values of the columns. Raises BadRow."""
    size, links, targets = checked(_ROW, values)
    fields: dict[str, Any] = {"targets": stored_places(targets)}
    if isinstance(outcome, Page):
        fields["found"] = () if links is None else stored_links(size, links)
    return fields


def stored_links(size: int | None, packed: bytes) -> tuple[Link, ...]:
    """Return the links of a page from their columns. Raises BadRow."""
    text = packed if size == len(packed) else _decompressed(size, packed)
    try:
        return tuple(decoded(_LINKS, text.decode("utf-8", "surrogatepass")))
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
    keys = array("Q", packed)
    if sys.byteorder == "big":
        keys.byteswap()
    return frozenset(keys)
