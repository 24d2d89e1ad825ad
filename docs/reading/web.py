"""What all programs need and none is about; the chapter hides it too."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urldefrag, urljoin, urlsplit

HREF = re.compile(r'href="([^"]*)"', re.IGNORECASE)


def links(url: str, body: bytes) -> set[str]:
    """Return the links within the site; raise if the page is not UTF-8."""
    found = {
        urldefrag(urljoin(url, href)).url for href in HREF.findall(body.decode())
    }
    return {link for link in found if urlsplit(link)[:2] == urlsplit(url)[:2]}


def address(url: str) -> tuple[str, int]:
    """Return the host and the port to connect to."""
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or 80


def request(url: str) -> bytes:
    """Return a request after whose answer the server closes."""
    parts = urlsplit(url)
    return (
        f"GET {parts.path or '/'} HTTP/1.0\r\nHost: {parts.netloc}\r\n\r\n".encode()
    )


def body(response: bytes) -> bytes:
    """Return what follows the head of a whole response."""
    return response.partition(b"\r\n\r\n")[2]


def show(pages: Iterable[str]) -> None:
    """Print the pages, one a line, in an order that is always the same."""
    for url in sorted(pages, key=lambda url: (len(url), url)):
        print(url)
