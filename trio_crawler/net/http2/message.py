"""Requests and responses in the form that HTTP/2 has for them (RFC 9113, 8)."""

from __future__ import annotations

import re
from typing import TypeAlias

from hpack import NeverIndexedHeaderTuple

from trio_crawler.net.http1.head import (
    WITHOUT_BODY,
    Fields,
    Head,
    bad_reply,
    check_size,
    content_encoding,
    content_length,
    is_name,
)

Block: TypeAlias = list[tuple[bytes, bytes]]

# RFC 9113, 8.2.2: they are about one connection of HTTP/1.1. Host is ":authority" (8.3.1).
_NOT_SENT = frozenset(
    {
        *(b"connection", b"host", b"keep-alive", b"proxy-connection"),
        *(b"te", b"transfer-encoding", b"upgrade"),
    }
)
# RFC 7541, 7.1.3: not in the table of the compressor, which proxies may share.
_SECRET = frozenset({b"authorization", b"cookie"})
_is_status = re.compile(rb"[2-9][0-9][0-9]").fullmatch
_has_break = re.compile(rb"[\r\n\0]").search


def block_of(request: bytes) -> Block:
    """Return the header block for a request, whose head is in the form of HTTP/1.1."""
    start, *lines = request.removesuffix(b"\r\n\r\n").split(b"\r\n")
    method, target, _ = start.split(b" ")
    authority = b""
    fields: Block = []
    for line in lines:
        name, _, value = line.partition(b": ")
        name = name.lower()
        if name == b"host":
            authority = value
        elif name in _SECRET:
            fields.append(NeverIndexedHeaderTuple(name, value))
        elif name not in _NOT_SENT:
            fields.append((name, value))
    return [
        (b":method", method),
        (b":authority", authority),
        (b":scheme", b"https"),
        (b":path", target),
        *fields,
    ]


def head_of(block: Block, *, bodiless: bool = False) -> Head:
    """Return the head of a response, which is `bodiless` after HEAD. Raises FetchError(BAD_REPLY).

    Names may have upper case, which RFC 9113, 8.2.1 forbids: browsers read such responses.
    """
    statuses = [value for name, value in block if name == b":status"]
    fields: Fields = [field for field in block if not field[0].startswith(b":")]
    if len(statuses) != 1 or not _is_status(statuses[0]):
        raise bad_reply("the answer has no final status, or more than one")
    if len(block) - len(fields) != 1:
        raise bad_reply("the answer has a pseudo-header that only requests have")
    check_size(fields)
    if any(not is_name(name) or _has_break(value) for name, value in fields):
        raise bad_reply("a header line has a control character in it, or no valid name")
    status = int(statuses[0])
    length = 0 if bodiless or status in WITHOUT_BODY else content_length(fields)
    return Head(status, b"", 0, fields, length, False, False, content_encoding(fields))
