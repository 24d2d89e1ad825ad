"""Sitemaps: the URLs that a site lists, by sitemaps.org, of a text file or of a feed.

What is broken is read as far as it can be, and said. Files are unpacked, decoded and read in
pieces, so a file of 50 MB needs little more memory than what is found in it.
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
from trio_crawler.page.sitemap.decoding import PIECE, Pieces
from trio_crawler.page.sitemap.records import Records

__all__ = ["MOST_BYTES", "MOST_ENTRIES", "Entry", "Map", "read"]

MOST_BYTES = 50 * 1024 * 1024
"""Bytes of a sitemap, unpacked (sitemaps.org)."""

MOST_ENTRIES = 50_000
"""URLs in one sitemap (sitemaps.org)."""

MOST_CHARACTERS = 50 * 1024 * 1024
"""Characters of all URLs of one sitemap: short ones may become long by a base or by escapes."""

# Tags for each URL there may be: 50 MB of nothing but tags would take half a minute.
_TAGS_EACH, _TAGS_SPARE = 20, 1_000
_LONGEST_URL = 2_048  # characters (sitemaps.org)
_LONGEST_DATE = 64
_LONGEST_PRIORITY = 32
_BLANK = "\ufeff\t\n\r "
_LINE = re.compile(r"[\ufeff\t ]*+[^\ufeff\t\r\n ][^\r\n]*+")
_HTTP = ("http://", "https://")
_LISTS_URLS = re.compile(r"^[\ufeff\t ]*+https?://", re.IGNORECASE | re.MULTILINE)
_PRIORITY = re.compile(r"\+?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")


class Entry(NamedTuple):
    """Hold what is said of one page.

    `url` is normalised, `last_modified` as it is written, `priority` 0 to 1; None is for what is
    not said, or is nonsense.
    """

    url: str
    last_modified: str | None = None
    priority: float | None = None


@dataclass(frozen=True, slots=True)
class Map:
    """Hold what one sitemap says.

    `kind` is "urlset", "index", "text", "rss" or "atom", and "" for what is no sitemap. `entries`
    are distinct by URL, `sitemaps` the distinct normalised URLs of an index. `beyond` counts what
    was left out because there is too much of it, as it is written. `detail` is a sentence on the
    flaws.
    """

    kind: str = ""
    entries: tuple[Entry, ...] = field(default=(), repr=False)
    sitemaps: tuple[str, ...] = field(default=(), repr=False)
    beyond: int = 0
    flaws: tuple[Reason, ...] = ()
    detail: str = ""


def read(
    body: bytes,
    content_type: str,
    url: str,
    *,
    most: int = MOST_ENTRIES,
    most_bytes: int = MOST_BYTES,
) -> Map:
    """Read a sitemap that came from `url` (normalised) under a raw Content-Type header.

    Whatever it holds, nothing is raised, no declaration is read and nothing else is asked for.
    """
    pieces = Pieces(body, content_type, most_bytes)
    texts = iter(pieces)
    head = next(texts, "")
    root = elements.root(head)
    if root is not None:
        found = _Found(url, most)
        complaints = _read_records(root, chain((head[root.start :],), texts), found, pieces)
        return found.map(root.form.kind, pieces.complaints | complaints)
    if not head.lstrip(_BLANK).startswith("<") and _LISTS_URLS.search(head):
        found = _Found(None, most)
        _read_lines(chain((head,), texts), found, pieces)
        return found.map("text", pieces.complaints)
    return _Found(None, most).map("", pieces.complaints | {_nothing(head): Reason.BAD_SITEMAP})


class _Found:
    """Collect the URLs that a sitemap lists, in bounds; without a base no relative ones."""

    def __init__(self, base: str | None, most: int) -> None:
        self.left = most
        self.beyond = 0
        self._base = base
        self._room = MOST_CHARACTERS
        self._entries: dict[str, Entry] = {}
        self._malformed = 0

    @property
    def full(self) -> bool:
        """Whether what is added is only counted."""
        return self.left <= 0 or self._room <= 0

    def add(self, source: str, date: str | None = None, priority: str | None = None) -> None:
        """Add what is said of one URL."""
        if self.full:
            self.beyond += 1
            return
        self.left -= 1
        link = self._link(source.strip(_BLANK))
        if link is None:
            self._malformed += 1
        elif link not in self._entries:
            self._room -= len(link)
            self._entries[link] = Entry(link, _date(date), _priority(priority))

    def _link(self, source: str) -> str | None:
        try:
            link = urls.normalise(source, None if source.startswith(_HTTP) else self._base)
        except ValueError:
            return None
        return link if source and link.startswith(_HTTP) and len(link) <= _LONGEST_URL else None

    def map(self, kind: str, complaints: dict[str, Reason]) -> Map:
        """Give the map; these complaints, and those about the URLs, become its flaws."""
        index = kind == "index"
        if index and self._base and self._entries.pop(self._base, None):
            complaints["it lists itself"] = Reason.BAD_SITEMAP
        if self._malformed:
            sentence = f"{self._malformed} of its URLs cannot be asked for"
            complaints[sentence] = Reason.BAD_SITEMAP
        if self.beyond:
            reason = Reason.TOO_MANY_ENTRIES if self._room > 0 else Reason.TOO_LARGE
            complaints[f"it lists {self.beyond} URLs too many"] = reason
        return Map(
            kind,
            () if index else tuple(self._entries.values()),
            tuple(self._entries) if index else (),
            self.beyond,
            tuple(dict.fromkeys(complaints.values())),
            "; ".join(complaints),
        )


def _read_records(
    root: elements.Root, texts: Iterator[str], found: _Found, pieces: Pieces
) -> dict[str, Reason]:
    """Read what the elements of a form say; return what was wrong with them."""
    records = Records(root)
    most = _TAGS_EACH * (found.left + _TAGS_SPARE)
    for record in records.read(_while(lambda: not found.full and records.tags < most, texts)):
        found.add(*record)
    if found.full or records.tags >= most:
        found.beyond += records.count(texts)
    wrong = {
        "something stands before its root element": root.late,
        f"it has {records.roots} root elements": records.roots > 1,
        f"only its first {records.tags} tags were read": records.tags >= most,
        f"{records.unclosed} of its values have no end tag": records.unclosed,
        f'{records.bare} "&" in its values are not escaped': records.bare,
    }
    complaints = {sentence: Reason.BAD_SITEMAP for sentence, true in wrong.items() if true}
    if pieces.whole and not records.ended:
        complaints["it ends before its root element does"] = Reason.INCOMPLETE
    return complaints


def _read_lines(texts: Iterator[str], found: _Found, pieces: Pieces) -> None:
    """Read a URL a line; what is none is counted as a bad one."""
    for lines in _lines(texts, pieces):
        several = lines[: found.left]
        for line in several:
            found.add(line)
        found.beyond += len(lines) - len(several)


def _lines(texts: Iterator[str], pieces: Pieces) -> Iterator[list[str]]:
    """Give the lines that are not blank; the last one only if nothing was cut off behind it."""
    rest = ""
    for text in texts:
        text = rest + text
        end = max(text.rfind("\n"), text.rfind("\r")) + 1
        yield _LINE.findall(text, 0, end)
        # Of a line that is too long there is no more to know than that.
        rest = text[end:][:PIECE]
    if pieces.whole:
        yield _LINE.findall(rest)


def _while(condition: Callable[[], bool], texts: Iterator[str]) -> Iterator[str]:
    """Give texts as long as the condition holds before the next is taken."""
    while condition() and (text := next(texts, None)) is not None:
        yield text


def _nothing(head: str) -> str:
    """Say why a text is no sitemap."""
    if not head.strip(_BLANK):
        return "it is empty"
    if elements.declares(head):
        return "it has declarations (a DTD), and those are not read"
    return "it is neither a sitemap or feed in XML nor a list of URLs"


def _date(text: str | None) -> str | None:
    date = "" if text is None else text.strip(_BLANK)
    return date if 0 < len(date) <= _LONGEST_DATE else None


def _priority(text: str | None) -> float | None:
    number = "" if text is None else text.strip(_BLANK)
    if len(number) > _LONGEST_PRIORITY or not _PRIORITY.fullmatch(number):
        return None
    priority = float(number)
    return priority if priority <= 1 else None
