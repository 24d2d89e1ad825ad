"""Parse the URLs in a sitemap (sitemaps.org), which may be an XML file, a text file or a feed.

A broken file is read as far as possible, and its flaws are recorded. Files are decompressed,
decoded and read in chunks, so a file of 50 MB needs little more memory than its URLs.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from trio_crawler.expressions import lazy
from trio_crawler.model import Reason, Record
from trio_crawler.page import charset, urls
from trio_crawler.page.sitemap import elements
from trio_crawler.page.sitemap.elements import RecordReader

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
_LINE = lazy(r"[\ufeff\t ]*+[^\ufeff\t\r\n ][^\r\n]*+")
_LISTS_URLS = lazy(r"^[\ufeff\t ]*+https?://", re.IGNORECASE | re.MULTILINE)
_PRIORITY = lazy(r"\+?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")


class SitemapEntry(NamedTuple):
    """The entry of one page in a sitemap.

    `url` is normalised, `last_modified` is as written, `priority` is 0 to 1; the last two are None
    if they are missing or invalid.
    """

    url: str
    last_modified: str | None = None
    priority: float | None = None


class ParsedSitemap(Record, frozen=True):
    """The content of one sitemap.

    `kind` is "urlset", "index", "text", "rss" or "atom", or "" if the file is not a sitemap. The
    `entries` have distinct URLs. `sitemaps` are the distinct normalised URLs of an index. `beyond`
    is the number of entries that were not read because there were too many. `detail` describes the
    flaws in words.
    """

    _unshown = frozenset({"entries", "sitemaps"})

    kind: str = ""
    entries: tuple[SitemapEntry, ...] = ()
    sitemaps: tuple[str, ...] = ()
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
        "it is not read behind a tag or a comment of more than 256 KiB": records.is_cut,
        f"{records.unclosed} of its values have no end tag": records.unclosed,
        f'{records.bare} "&" in its values are not escaped': records.bare,
    }
    flaws = {sentence: Reason.BAD_SITEMAP for sentence, true in sentences.items() if true}
    if decoded.complete and not (records.ended or records.is_cut):
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


CHUNK = 64 * 1024
"""The bytes of a chunk."""

MAX_MEMBERS = 10_000
"""The most members of a gzip file; even an empty one takes some microseconds."""

# Small, since the output of a step is lost if its input is damaged, and since each step copies the
# rest of its slice.
_SLICE = _STEP = 4 * 1024
# A byte order mark, an XML declaration in UTF-16, or one in ASCII that names an encoding.
_ENCODING_MARK = lazy(
    rb"""
    \xef\xbb\xbf | \xff\xfe | \xfe\xff
|   <\0\?\0x\0 | \0<\0\?\0x
|   [\t\n\r ]*+
    (?P<declaration>
        <\?xml (?=[\t\n\r ]) [\t\n\r -;=@-~]*? encoding [\t\n\r -;=@-~]*+ \?>
    )
    """,
    re.VERBOSE,
)
_MAX_DECLARATION = 512


class DecodedBody:
    """The text of a body in chunks of at most 65,536 characters, to be iterated over once.

    A gzip file is recognised by its first bytes and decompressed. At most `max_bytes` bytes are
    decoded. The encoding is that of the byte order mark, else of the XML declaration, else, for
    markup, of the Content-Type header, else UTF-8. After the iteration, `flaws` has a sentence and
    a reason for each flaw, and `complete` is false if a part of the body is missing.
    """

    def __init__(self, body: bytes, content_type: str, max_bytes: int) -> None:
        self._body = body
        self._content_type = content_type
        self._max_bytes = max_bytes
        self.flaws: dict[str, Reason] = {}
        self.complete = True

    def __iter__(self) -> Iterator[str]:
        chunks = self._bounded(self._decompressed() if self._body[:2] == GZIP else self._chunks())
        first = next(chunks, b"")
        decode = charset.chunk_decoder(_encoding(first, self._content_type))
        for chunk in chain((first,), chunks):
            text = decode(chunk)
            yield text
            bad = 0 if text.isascii() else text.count("\ufffd")
            if bad > len(text) // 2:
                # 50 MB of lone surrogates would take 9 s.
                self._stop("most of its bytes are invalid in its encoding", Reason.BAD_CHARSET)
                return
            if bad:
                self.flaws["it has bytes that are invalid in its encoding"] = Reason.BAD_CHARSET

    def _stop(self, sentence: str, reason: Reason) -> None:
        self.flaws[sentence] = reason
        self.complete = False

    def _bounded(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        left = self._max_bytes
        for chunk in chunks:
            if len(chunk) > left:
                self._stop(f"it has more than {self._max_bytes} bytes", Reason.TOO_LARGE)
                yield chunk[:left]
                return
            yield chunk
            left -= len(chunk)

    def _chunks(self) -> Iterator[bytes]:
        for start in range(0, len(self._body), CHUNK):
            yield self._body[start : start + CHUNK]

    def _decompressed(self) -> Iterator[bytes]:
        """Yield the output of the steps in chunks; only the last chunk is short."""
        chunk = bytearray()
        for step in self._steps():
            chunk += step
            if len(chunk) > CHUNK - _STEP:
                yield bytes(chunk)
                chunk.clear()
        yield bytes(chunk)

    def _steps(self) -> Iterator[bytes]:
        """Yield the content of all members of a gzip file (RFC 1952), as far as possible."""
        at = 0
        for _ in range(MAX_MEMBERS):
            member = ZlibStream(GZIP_WINDOW, _STEP)
            try:
                while not member.over and (at < len(self._body) or member.more):
                    data = self._body[at : at + _SLICE]
                    yield member.step(data)
                    at += len(data) - len(member.rest)
            except member.error:
                self._stop("the gzip file is damaged", Reason.BAD_SITEMAP)
                return
            if not member.over:
                self._stop("the gzip file is cut off", Reason.INCOMPLETE)
                return
            if self._body[at : at + 2] != GZIP:
                return  # the rest is padding
        self._stop(f"the gzip file has more than {MAX_MEMBERS} members", Reason.BAD_SITEMAP)


def _encoding(first: bytes, content_type: str) -> str:
    """Return the encoding of a body with this first chunk."""
    mark = _ENCODING_MARK.match(first, 0, _MAX_DECLARATION)
    if mark is not None:
        # Only the mark: the rest may look like a declaration of HTML.
        return charset.detect(mark["declaration"] or mark[0], "", markup=True)
    # A list of URLs is in UTF-8 by the protocol; its header may name the server's default charset.
    markup = first.lstrip().startswith(b"<")
    return charset.detect(b"", content_type if markup else "", markup=False)


GZIP = b"\x1f\x8b"
"""The first bytes of each member of a gzip file."""

GZIP_WINDOW, ZLIB_WINDOW, DEFLATE_WINDOW = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS


class ZlibStream:
    """One stream, or one member of a gzip file; `window` is one of the constants above.

    After a step, `over` is whether the stream has ended, `more` whether the next step may return
    bytes without further data. `rest` is the data that was not read: pass it to the next step
    again; at the end of the stream it is the data after the stream.
    """

    error: type[Exception] = zlib.error

    def __init__(self, window: int, max_step: int) -> None:
        self._stream = zlib.decompressobj(window)
        self._max_step = max_step
        self.more = self.over = False
        self.rest = b""

    def step(self, data: bytes) -> bytes:
        """Return at most `max_step` bytes. Raises `error` if the stream is damaged."""
        stream = self._stream
        found = stream.decompress(data, self._max_step)
        self.over = stream.eof
        self.rest = stream.unused_data if self.over else stream.unconsumed_tail
        # A full step may leave output inside zlib although all input is read.
        self.more = not self.over and len(found) == self._max_step
        return found
