"""Ruler: the size of one answer, measured strictly by RFC 9112, with no help of what is tested."""

from __future__ import annotations

import re
import string

TOKEN = frozenset((string.ascii_letters + string.digits + "!#$%&'*+-.^_`|~").encode())


def size_of_one(data: bytes) -> int | None:
    """Return the size of the answer that `data` begin with, None where that is in doubt."""
    start = 0
    while True:
        stops = [data.find(stop, start) + len(stop) for stop in (b"\n\n", b"\n\r\n")]
        stops = [stop for stop in stops if stop > start + 1]
        if not stops:
            return None
        head = data[start : min(stops)]
        start += len(head)
        if head[9:10] != b"1":
            break
    lines = head.split(b"\r\n")
    if head.count(b"\r\n") != head.count(b"\n") or b"\r" in b"".join(lines) or b"\0" in head:
        return None
    fields = [line.partition(b":") for line in lines[1:-2]]
    if not all(colon and name and set(name) <= TOKEN for name, colon, _ in fields):
        return None
    named = [(name.lower(), value.strip(b" \t")) for name, _, value in fields]
    return _size(data, start, head, named)


def _size(data: bytes, start: int, head: bytes, named: list[tuple[bytes, bytes]]) -> int | None:
    def said(name: bytes) -> list[bytes]:
        values = b",".join(value for other, value in named if other == name)
        return [part.strip(b" \t").lower() for part in values.split(b",") if part.strip(b" \t")]

    lengths, codings = set(said(b"content-length")), said(b"transfer-encoding")
    status, options, old = head[9:12], said(b"connection"), head.startswith(b"HTTP/1.0")
    if b"close" in options or (old and b"keep-alive" not in options):
        return None
    if codings and (lengths or old):
        return None
    if status == b"304" or (status == b"204" and not codings and lengths <= {b"0"}):
        return start
    codings = [coding for coding in codings if coding != b"identity"]
    if codings == [b"chunked"]:
        return _end_of_chunks(data, start)
    if codings or not lengths or not all(map(bytes.isdigit, lengths)):
        return None
    figures = set(map(int, lengths))
    return start + figures.pop() if len(figures) == 1 else None


def _end_of_chunks(data: bytes, place: int) -> int | None:
    while True:
        line = _line(data, place)
        place += len(line)
        figure = re.fullmatch(rb"([0-9a-fA-F]+)[ \t]*(?:;.*)?\r\n", line)
        if figure is None:
            return None
        if (size := int(figure[1], 16)) == 0:
            break
        place += size + 2
        if data[place - 2 : place] != b"\r\n":
            return None
    while (line := _line(data, place)) != b"\r\n":
        place += len(line)
        if b":" not in line:
            return None
    return place + 2


def _line(data: bytes, place: int) -> bytes:
    stop = data.find(b"\r\n", place)
    return data[place : stop + 2] if stop >= 0 else b""
