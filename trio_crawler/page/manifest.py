"""Read what a web application manifest points to (W3C, Web Application Manifest)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from trio_crawler.link import LinkKind

_MAX_BYTES = 1 << 20
_BOM = b"\xef\xbb\xbf"


def members(body: bytes) -> Iterator[tuple[LinkKind, str]]:
    """Yield the kind and the value of each URL in a manifest.

    These are `start_url`, the `src` of icons and screenshots, and the `url` and icons of
    shortcuts. A member of another type is ignored, as the standard says; a manifest that is not
    JSON, or has more than 1 MiB, has none.
    """
    try:
        found = msgspec.json.decode(body.removeprefix(_BOM)) if len(body) <= _MAX_BYTES else None
    # A document of a million brackets is too deep.
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    if not isinstance(found, dict):
        return
    yield from _of(found, "start_url", LinkKind.LINK)
    for icon in _several(found, "icons"):
        yield from _of(icon, "src", LinkKind.ICON)
    for picture in _several(found, "screenshots"):
        yield from _of(picture, "src", LinkKind.IMAGE)
    for shortcut in _several(found, "shortcuts"):
        yield from _of(shortcut, "url", LinkKind.LINK)
        for icon in _several(shortcut, "icons"):
            yield from _of(icon, "src", LinkKind.ICON)


def _several(member: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = member.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _of(member: dict[str, Any], name: str, kind: LinkKind) -> Iterator[tuple[LinkKind, str]]:
    if isinstance(value := member.get(name), str) and value:
        yield kind, value
