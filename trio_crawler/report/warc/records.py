"""Records: WARC 1.1 as warcio writes it; imported late, as only an archive needs that."""

from __future__ import annotations

import zlib
from base64 import b32encode
from collections.abc import Mapping
from hashlib import sha1
from io import BytesIO
from typing import Any
from uuid import uuid4

from warcio.warcwriter import WARCWriter  # type: ignore[import-untyped]

_FIELDS = 1024
"""More bytes than a record usually has before its block."""


class Records:
    """Write records, with `gzip` each as a member of its own, by zlib at `level` (1 to 9)."""

    def __init__(self, *, gzip: bool, level: int) -> None:
        self._gzip = gzip
        self._level = level

    def __call__(
        self, kind: str, fields: Mapping[str, str], head: bytes, payload: bytes = b""
    ) -> bytes:
        """Write a record whose block is `head` and `payload`, without the payload if a revisit.

        `fields` has all but the type, the length, the media type and the digest of the block.
        """
        size = len(head) + len(payload)
        out = _Member(self._level, size) if self._gzip else _Plain()
        # Not warcio's own gzip, whose level is 9; and one for each, as errands come in threads.
        writer = WARCWriter(out, gzip=False, warc_version="1.1")
        # Elsewhere a payload is nothing but the block.
        writer.NO_PAYLOAD_DIGEST_TYPES = ("warcinfo", "revisit", "request", "metadata")
        block = sha1(head, usedforsecurity=False)
        if kind != "revisit":
            block.update(payload)
        named = {"WARC-Type": kind, **fields, "WARC-Block-Digest": written(block.digest())}
        record = writer.create_warc_record(
            fields.get("WARC-Target-URI", ""),
            kind,
            payload=BytesIO(payload),
            length=len(payload),
            warc_headers_dict=named,
            http_headers=_Head(head),
        )
        writer.write_record(record)
        return out.taken()


def new_id() -> str:
    """Make up the name of a record."""
    return f"<urn:uuid:{uuid4()}>"


def digest_of(payload: bytes) -> bytes:
    """Return the 20 bytes by which payloads are compared."""
    return sha1(payload, usedforsecurity=False).digest()


def written(digest: bytes) -> str:
    """Write a digest as WARC has it."""
    return f"sha1:{b32encode(digest).decode()}"


class _Head:
    """Stand for warcio's own headers, which would write bytes that are not ASCII otherwise."""

    def __init__(self, head: bytes) -> None:
        self.headers_buff = head

    def compute_headers_buffer(self, header_filter: Any = None) -> None:
        """Leave the bytes as they are."""


class _Plain:
    """Take what warcio writes."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> None:
        self._pieces.append(data)

    def flush(self) -> None:
        pass

    def taken(self) -> bytes:
        return b"".join(self._pieces)


class _Member(_Plain):
    """Take what warcio writes, and make a gzip member of it (RFC 1952)."""

    def __init__(self, level: int, size: int) -> None:
        super().__init__()
        # ▶ A window of 32 KiB takes 60 us to set up, one of 2 KiB, enough for a small record, 5.
        window = min(15, (size + _FIELDS).bit_length())
        self._zlib = zlib.compressobj(level, zlib.DEFLATED, 16 + window, window - 7)

    def write(self, data: bytes) -> None:
        super().write(self._zlib.compress(data))

    def taken(self) -> bytes:
        return super().taken() + self._zlib.flush()
