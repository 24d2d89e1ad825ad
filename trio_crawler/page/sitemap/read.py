"""Parse the URLs in a sitemap (sitemaps.org), which may be an XML file, a text file or a feed.

A broken file is read as far as possible, and its flaws are recorded. Files are decompressed,
decoded and read in chunks, so a file of 50 MB needs little more memory than its URLs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from trio_crawler.model import Reason
from trio_crawler.page import urls
from trio_crawler.page.sitemap import elements
from trio_crawler.page.sitemap.decoding import CHUNK, DecodedBody
from trio_crawler.page.sitemap.records import RecordReader

__all__ = ["MAX_BYTES", "MAX_ENTRIES", "ParsedSitemap", "SitemapEntry", "parse_sitemap"]

MAX_BYTES = 50 * 1024 * 1024
"""The most bytes of a sitemap after decompression (sitemaps.org)."""

MAX_ENTRIES = 50_000
"""The most URLs in one sitemap (sitemaps.org)."""

MAX_CHARACTERS = 50 * 1024 * 1024
"""The most characters of all URLs of one sitemap: a base and escapes may make URLs long."""

# A bound on the tags that are read: 50 MB of nothing but tags would take half a minute.
_TAGS_PER_ENTRY, _TAGS_SPARE = 20, 1_000
_MAX_URL = 2_048  # characters (sitemaps.org)
_MAX_DATE = 64
_MAX_PRIORITY = 32
_BLANK = "\ufeff\t\n\r "
_LINE = re.compile(r"[\ufeff\t ]*+[^\ufeff\t\r\n ][^\r\n]*+")
_LISTS_URLS = re.compile(r"^[\ufeff\t ]*+https?://", re.IGNORECASE | re.MULTILINE)
_PRIORITY = re.compile(r"\+?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")


class SitemapEntry(NamedTuple):
    """The entry of one page in a sitemap.

    `url` is normalised, `last_modified` is as written, `priority` is 0 to 1; the last two are None
    if they are missing or invalid.
    """

    url: str
    last_modified: str | None = None
    priority: float | None = None


@dataclass(frozen=True, slots=True)
class ParsedSitemap:
    """The content of one sitemap.

    `kind` is "urlset", "index", "text", "rss" or "atom", or "" if the file is not a sitemap. The
    `entries` have distinct URLs. `sitemaps` are the distinct normalised URLs of an index. `beyond`
    is the number of entries that were not read because there were too many. `detail` describes the
    flaws in words.
    """

    kind: str = ""
    entries: tuple[SitemapEntry, ...] = field(default=(), repr=False)
    sitemaps: tuple[str, ...] = field(default=(), repr=False)
    beyond: int = 0
    flaws: tuple[Reason, ...] = ()
    detail: str = ""


def parse_sitemap(
    body: bytes,
    content_type: str,
    url: str,
    *,
    max_entries: int = MAX_ENTRIES,
    max_bytes: int = MAX_BYTES,
) -> ParsedSitemap:
    """Return the content of a sitemap from `url` (normalised), with a raw Content-Type header.

    Any body is accepted; nothing is raised. Declarations are not read, and no other file is
    requested.
    """
    decoded = DecodedBody(body, content_type, max_bytes)
    chunks = iter(decoded)
    head = next(chunks, "")
    root = elements.root(head)
    if root is not None:
        found = _EntryCollector(url, max_entries)
        flaws = _read_records(root, chain((head[root.start :],), chunks), found, decoded)
        return found.result(root.names.kind, decoded.flaws | flaws)
    found = _EntryCollector(None, max_entries)
    if not head.lstrip(_BLANK).startswith("<") and _LISTS_URLS.search(head):
        _read_lines(chain((head,), chunks), found, decoded)
        return found.result("text", decoded.flaws)
    return found.result("", decoded.flaws | {_why_no_sitemap(head): Reason.BAD_SITEMAP})


class _EntryCollector:
    """A collector of the entries of a sitemap, within bounds; relative URLs need a base."""

    def __init__(self, base: str | None, max_entries: int) -> None:
        self.left = max_entries
        self.beyond = 0
        self._base = base
        self._characters_left = MAX_CHARACTERS
        self._entries: dict[str, SitemapEntry] = {}
        self._malformed = 0

    @property
    def full(self) -> bool:
        """Whether further entries are only counted."""
        return self.left <= 0 or self._characters_left <= 0

    def add(self, source: str, date: str | None = None, priority: str | None = None) -> None:
        """Add an entry, as written."""
        if self.full:
            self.beyond += 1
            return
        self.left -= 1
        link = self._link(source.strip(_BLANK))
        if link is None:
            self._malformed += 1
        elif link not in self._entries:
            self._characters_left -= len(link)
            self._entries[link] = SitemapEntry(link, _date(date), _priority(priority))

    def _link(self, source: str) -> str | None:
        try:
            link = urls.normalise(source, None if source.startswith(urls.WEB) else self._base)
        except ValueError:
            return None
        return link if source and link.startswith(urls.WEB) and len(link) <= _MAX_URL else None

    def result(self, kind: str, flaws: dict[str, Reason]) -> ParsedSitemap:
        """Return the sitemap with `flaws` and the flaws of its URLs."""
        index = kind == "index"
        if index and self._base and self._entries.pop(self._base, None):
            flaws["it lists itself"] = Reason.BAD_SITEMAP
        if self._malformed:
            sentence = f"{self._malformed} of its URLs are not http or https URLs, or too long"
            flaws[sentence] = Reason.BAD_SITEMAP
        if self.beyond:
            reason = Reason.TOO_MANY_ENTRIES if self._characters_left > 0 else Reason.TOO_LARGE
            flaws[f"it lists {self.beyond} URLs too many"] = reason
        return ParsedSitemap(
            kind,
            () if index else tuple(self._entries.values()),
            tuple(self._entries) if index else (),
            self.beyond,
            tuple(dict.fromkeys(flaws.values())),
            "; ".join(flaws),
        )


def _read_records(
    root: elements.Root, chunks: Iterator[str], found: _EntryCollector, decoded: DecodedBody
) -> dict[str, Reason]:
    """Add the records of an XML file; return its flaws."""
    records = RecordReader(root)
    max_tags = _TAGS_PER_ENTRY * (found.left + _TAGS_SPARE)
    for record in records.read(
        _take_while(lambda: not found.full and records.tags < max_tags, chunks)
    ):
        found.add(*record)
    if found.full or records.tags >= max_tags:
        found.beyond += records.count(chunks)
    sentences = {
        "it has text before its root element": root.late,
        f"it has {records.roots} root elements": records.roots > 1,
        f"only its first {records.tags} tags were read": records.tags >= max_tags,
        f"{records.unclosed} of its values have no end tag": records.unclosed,
        f'{records.bare} "&" in its values are not escaped': records.bare,
    }
    flaws = {sentence: Reason.BAD_SITEMAP for sentence, true in sentences.items() if true}
    if decoded.complete and not records.ended:
        flaws["it ends before the end of its root element"] = Reason.INCOMPLETE
    return flaws


def _take_while(condition: Callable[[], bool], chunks: Iterator[str]) -> Iterator[str]:
    """Yield chunks until the condition is false before one of them."""
    while condition() and (chunk := next(chunks, None)) is not None:
        yield chunk


def _read_lines(chunks: Iterator[str], found: _EntryCollector, decoded: DecodedBody) -> None:
    """Add a URL for each line that is not blank."""
    for lines in _lines(chunks, decoded):
        several = lines[: found.left]
        for line in several:
            found.add(line)
        found.beyond += len(lines) - len(several)


def _lines(chunks: Iterator[str], decoded: DecodedBody) -> Iterator[list[str]]:
    """Yield the lines that are not blank; the last line only if the file is complete."""
    rest = ""
    for chunk in chunks:
        text = rest + chunk
        end = max(text.rfind("\n"), text.rfind("\r")) + 1
        yield _LINE.findall(text, 0, end)
        # A line that is too long for a URL need not be kept as a whole.
        rest = text[end:][:CHUNK]
    if decoded.complete:
        yield _LINE.findall(rest)


def _why_no_sitemap(head: str) -> str:
    """Return a sentence why a text is not a sitemap."""
    if not head.strip(_BLANK):
        return "it is empty"
    if elements.declares(head):
        return "it has declarations (a DTD), and those are not read"
    return "it is neither a sitemap or feed in XML nor a list of URLs"


def _date(text: str | None) -> str | None:
    date = "" if text is None else text.strip(_BLANK)
    return date if 0 < len(date) <= _MAX_DATE else None


def _priority(text: str | None) -> float | None:
    number = "" if text is None else text.strip(_BLANK)
    if len(number) > _MAX_PRIORITY or not _PRIORITY.fullmatch(number):
        return None
    priority = float(number)
    return priority if priority <= 1 else None
