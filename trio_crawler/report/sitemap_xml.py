"""A sitemap of what was crawled, as sitemaps.org has it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from xml.sax.saxutils import escape  # it writes XML; nothing is parsed here

from trio_crawler.model import Outcome, Page
from trio_crawler.policy.http_dates import moment
from trio_crawler.report.indexable import is_indexable

MOST_URLS = 50_000
MOST_BYTES = 50 * 1024 * 1024
_LONGEST = 2_047

_SPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_FIRST = '<?xml version="1.0" encoding="UTF-8"?>\n'
_HEAD = f"{_FIRST}<urlset {_SPACE}>\n".encode()
_TAIL = b"</urlset>\n"
_HOME = re.compile(rb"<loc>(https?://[^/<]*/)")


def entry(outcome: Outcome) -> bytes:
    """Encode a page as one line of a sitemap; nothing for what does not belong in one.

    What belongs is an html page that is well (2xx, or 304 in a crawl that refreshes), does not ask
    not to be indexed, is no duplicate, and names no other page as its canonical one. A URL of
    2,048 characters or more must not be listed. `lastmod` is the Last-Modified header.
    """
    if not isinstance(outcome, Page) or not is_indexable(outcome) or not _can_stand(outcome.url):
        return b""
    url = escape(outcome.url, {"'": "&apos;", '"': "&quot;"})
    changed = moment(outcome.headers.get("last-modified", ""))
    when = f"<lastmod>{changed:%Y-%m-%dT%H:%M:%SZ}</lastmod>" if changed else ""
    return f"<url><loc>{url}</loc>{when}</url>\n".encode()


def parts(entries: Iterable[bytes]) -> Iterator[Iterator[bytes]]:
    """Divide entries into files of at most 50,000 URLs and 50 MiB; at least one, if empty.

    Each file is an iterator over its bytes, to be used up before the next one is asked for.
    """
    rest = filter(None, entries)
    ahead = [next(rest, b"")]
    yield _part(ahead, rest)
    while ahead:
        yield _part(ahead, rest)


def home(line: bytes) -> str:
    """Give the URL of the root of the site that an entry is of."""
    found = _HOME.search(line)
    return found[1].decode() if found else ""


def index(urls: Iterable[str]) -> bytes:
    """Write the sitemap index that names the sitemaps at these URLs."""
    named = "".join(f"<sitemap><loc>{escape(url)}</loc></sitemap>\n" for url in urls)
    return f"{_FIRST}<sitemapindex {_SPACE}>\n{named}</sitemapindex>\n".encode()


def _part(ahead: list[bytes], rest: Iterator[bytes]) -> Iterator[bytes]:
    """Give one file, beginning with what is `ahead`; leave there what did not fit any more."""
    yield _HEAD
    left, urls = MOST_BYTES - len(_HEAD) - len(_TAIL), 0
    line = ahead.pop()
    while line and urls < MOST_URLS and len(line) <= left:
        yield line
        left, urls = left - len(line), urls + 1
        line = next(rest, b"")
    if line:
        ahead.append(line)
    yield _TAIL


def _can_stand(url: str) -> bool:
    # XML has no way to write most control characters.
    return len(url) <= _LONGEST and url.isprintable()
