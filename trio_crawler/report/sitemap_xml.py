"""A sitemap of the crawled pages, in the format of sitemaps.org."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape

import httpx

from trio_crawler.arguments import check_iterable, check_kind, check_whole, public
from trio_crawler.ledger.ledger import is_html
from trio_crawler.model import Outcome, Page
from trio_crawler.page.urls import seen_key, url_texts
from trio_crawler.policy.answers import parse_http_date

MAX_URLS = 50_000
MAX_BYTES = 50 * 1024 * 1024
_MAX_URL_LENGTH = 2_047

_NOT_MODIFIED = 304
_NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_XML = '<?xml version="1.0" encoding="UTF-8"?>\n'
_HEAD = f"{_XML}<urlset {_NAMESPACE}>\n".encode()
_TAIL = b"</urlset>\n"
_HOME = re.compile(rb"<loc>(https?://[^/<]*/)")


@public("trio_crawler.report")
def sitemap_entry(outcome: Outcome) -> bytes:
    r"""Return a page as one line of a sitemap; b"" for an outcome that does not belong in one.

    A page belongs in a sitemap if it is good HTML (2xx, or 304 in a refresh), has no "noindex", is
    not a duplicate, and names no other page as its canonical one. A URL of 2,048 characters or
    more is not listed. `lastmod` is the Last-Modified header.

    >>> headers = httpx.Headers({"content-type": "text/html"})
    >>> sitemap_entry(Page("https://e.org/", 200, headers, b"", content_type="text/html"))
    b'<url><loc>https://e.org/</loc></url>\n'
    """
    check_kind("outcome", outcome, Outcome, "an outcome")
    if (
        not isinstance(outcome, Page)
        or not is_html(outcome.content_type)
        or not (outcome.ok or outcome.status == _NOT_MODIFIED)
        or (outcome.canonical and seen_key(outcome.canonical) != seen_key(outcome.url))
        or outcome.duplicate_of
        or "noindex" in outcome.robots
        or len(outcome.url) > _MAX_URL_LENGTH
        # XML cannot represent most control characters.
        or not outcome.url.isprintable()
    ):
        return b""
    url = escape(outcome.url)
    changed = parse_http_date(outcome.headers.get("last-modified", ""))
    when = f"<lastmod>{changed:%Y-%m-%dT%H:%M:%SZ}</lastmod>" if changed else ""
    return f"<url><loc>{url}</loc>{when}</url>\n".encode()


@public("trio_crawler.report")
def sitemap_parts(
    entries: Iterable[bytes], *, max_urls: int = MAX_URLS, max_bytes: int = MAX_BYTES
) -> Iterator[list[bytes]]:
    """Divide entries into files of at most 50,000 URLs and 50 MiB each; yield at least one file.

    A file is a list of its pieces. Raises TypeError or ValueError, naming the argument, for an
    invalid value, and ValueError if an entry alone has more than `max_bytes` bytes with the frame
    of a file.

    >>> entries = [b"<url><loc>https://e.org/%d</loc></url>" % number for number in range(3)]
    >>> [b"".join(part).count(b"<loc>") for part in sitemap_parts(entries, max_urls=2)]
    [2, 1]
    """
    check_iterable("entries", entries, "entries")
    check_whole("max_urls", max_urls, least=1)
    check_whole("max_bytes", max_bytes, least=1)
    return _parts(entries, max_urls, max_bytes - len(_HEAD) - len(_TAIL))


def _parts(entries: Iterable[bytes], max_urls: int, room: int) -> Iterator[list[bytes]]:
    part, left = list[bytes](), room
    for entry in filter(None, entries):
        check_kind("each of entries", entry, bytes, "an entry as bytes")
        if len(entry) > room:
            wrong = f"max_bytes leaves {room} bytes for an entry, and one has {len(entry)}"
            raise ValueError(wrong)
        if len(part) == max_urls or len(entry) > left:
            yield [_HEAD, *part, _TAIL]
            part, left = [], room
        part.append(entry)
        left -= len(entry)
    yield [_HEAD, *part, _TAIL]


@public("trio_crawler.report")
def sitemap_home(line: bytes) -> str:
    """Return the root URL of the site that an entry belongs to; "" for a line without an entry.

    >>> sitemap_home(b"<url><loc>https://e.org/a</loc></url>")
    'https://e.org/'
    """
    check_kind("line", line, bytes, "an entry as bytes")
    found = _HOME.search(line)
    return found[1].decode() if found else ""


@public("trio_crawler.report")
def sitemap_index(urls: Iterable[str | httpx.URL]) -> bytes:
    """Return the sitemap index that names the sitemaps at these `urls`.

    >>> sitemap_index(["https://e.org/sitemap-1.xml"]).splitlines()[2]
    b'<sitemap><loc>https://e.org/sitemap-1.xml</loc></sitemap>'
    """
    locations = url_texts("urls", urls)
    named = "".join(f"<sitemap><loc>{escape(url)}</loc></sitemap>\n" for url in locations)
    return f"{_XML}<sitemapindex {_NAMESPACE}>\n{named}</sitemapindex>\n".encode()
