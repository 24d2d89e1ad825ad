"""WARC 1.1 records, written by warcio; imported late, because only an archive needs warcio."""

from __future__ import annotations

import zlib
from base64 import b32encode
from collections.abc import Mapping
from hashlib import sha1
from io import BytesIO
from typing import Any
from uuid import uuid4

from warcio.warcwriter import WARCWriter  # type: ignore[import-untyped]

_HEAD_SIZE = 1024
"""More bytes than a record usually has before its block."""


class Records:
    """Encode records; with `gzip` each becomes its own member, compressed at `level` (1 to 9)."""

    def __init__(self, *, gzip: bool, level: int) -> None:
        self._gzip = gzip
        self._level = level

    def __call__(
        self, kind: str, fields: Mapping[str, str], head: bytes, payload: bytes = b""
    ) -> bytes:
        """Return a record whose block is `head` and `payload`; a revisit omits the payload.

        `fields` has all fields but the type, the length, the media type and the block digest.
        """
        size = len(head) + len(payload)
        out = _GzipMember(self._level, size) if self._gzip else _Buffer()
        # Not warcio's own gzip, whose level is 9. A writer for each record: robots.txt files and
        # sitemaps are encoded in threads.
        writer = WARCWriter(out, gzip=False, warc_version="1.1")
        # In records of other types the payload is the block itself.
        writer.NO_PAYLOAD_DIGEST_TYPES = ("warcinfo", "revisit", "request", "metadata")
        block = sha1(head, usedforsecurity=False)
        if kind != "revisit":
            block.update(payload)
        named = {"WARC-Type": kind, **fields, "WARC-Block-Digest": format_digest(block.digest())}
        record = writer.create_warc_record(
            fields.get("WARC-Target-URI", ""),
            kind,
            payload=BytesIO(payload),
            length=len(payload),
            warc_headers_dict=named,
            http_headers=_Head(head),
        )
        writer.write_record(record)
        return out.result()


def new_id() -> str:
    """Return a new record ID."""
    return f"<urn:uuid:{uuid4()}>"


def payload_digest(payload: bytes) -> bytes:
    """Return the SHA-1 of a payload, 20 bytes: equal digests are a revisit."""
    return sha1(payload, usedforsecurity=False).digest()


def format_digest(digest: bytes) -> str:
    """Return a SHA-1 in the form of the WARC fields: "sha1:" and Base32."""
    return f"sha1:{b32encode(digest).decode()}"


class _Head:
    """The head of a message, unchanged; warcio's own class would rewrite bytes beyond ASCII."""

    def __init__(self, head: bytes) -> None:
        self.headers_buff = head

    def compute_headers_buffer(self, header_filter: Any = None) -> None:
        """Do nothing: the bytes are complete."""


class _Buffer:
    """A file for warcio to write to."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> None:
        self._pieces.append(data)

    def flush(self) -> None:
        pass

    def result(self) -> bytes:
        return b"".join(self._pieces)


class _GzipMember(_Buffer):
    """A file that compresses everything written to it into one gzip member (RFC 1952)."""

    def __init__(self, level: int, size: int) -> None:
        super().__init__()
        # ▶ A window of 32 KiB takes 60 us to set up; one of 2 KiB, enough for a small record, 5.
        window = min(15, (size + _HEAD_SIZE).bit_length())
        self._zlib = zlib.compressobj(level, zlib.DEFLATED, 16 + window, window - 7)

    def write(self, data: bytes) -> None:
        super().write(self._zlib.compress(data))

    def result(self) -> bytes:
        return super().result() + self._zlib.flush()
