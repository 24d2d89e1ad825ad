"""Find the relevant tags of a sitemap or feed in one pass over chunks of text.

All other tags are skipped, so the file need not be well formed. No tree is built, and no
declaration is read. expat is not used: it takes 4.7 s and 1,079 MiB for 50 MB of open `<url>`, and
stops at the first bare "&".

Every expression is possessive and every search goes forward, so the time is linear for every file.
At most five chunks of the file are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from trio_crawler.expressions import lazy
from trio_crawler.page import entities

_W = "\\t\\n\\r "
_END = rf"(?=[{_W}/>])"
_MAX_TAG = 256 * 1024  # characters of a tag with the text after it, or of a comment
# Pieces of expressions, for re.VERBOSE; each begins after its "<".
_ATTRIBUTES = rf"""(?: [{_W}/] (?: [^<>"']++ | "[^"<]*+" | '[^'<]*+' )*+ )?+"""
_COMMENT = r"!-- (?: [^-]++ | - (?!->) )*+ -->"
_INSTRUCTION = r"\? (?: [^?]++ | \? (?!>) )*+ \?>"
_CDATA = r"!\[CDATA\[ (?P<data> (?: [^\]]++ | \] (?!\]>) )*+ ) \]\]>"
_MAX_NAME = 128
# The text that may precede the root element.
_PROLOGUE = lazy(
    rf"(?: [\ufeff{_W}]++ | < (?: {_INSTRUCTION} | {_COMMENT} | !DOCTYPE [^\[<>]*+ > ) )*+",
    re.VERBOSE,
)
_ROOT = lazy(
    rf"""
    < (?P<prefix> (?: [\w.-]{{1,64}}+ : )?+ ) (?P<name> urlset|sitemapindex|rss|feed|RDF ) {_END}
    """,
    re.VERBOSE,
)
_DECLARATIONS = lazy(r"<!DOCTYPE[^\[<>]*+\[")
_PAGE = lazy(r"<(?:!doctype\s++html|html|head|body)\b", re.IGNORECASE)

LOOSE = ("urlset", "index")
"""Kinds of files in which URLs outside of records count, too."""

SOURCE = "source"
"""The element of a record that may contain the URL of another feed (RFC 4287, 4.2.11)."""


class ElementNames(NamedTuple):
    """The names of a record and its fields in one kind of file; "-" for a missing field."""

    kind: str
    record: str
    url: str
    date: str = "-"
    priority: str = "-"


class Root(NamedTuple):
    """The root element: where it begins, its name, and the names of the elements in it.

    Names contain their prefixes. `late` is whether there is text before the root that is not
    allowed there.
    """

    start: int
    name: str
    names: ElementNames
    late: bool


_ELEMENT_NAMES = {
    "urlset": ElementNames("urlset", "url", "loc", "lastmod", "priority"),
    "sitemapindex": ElementNames("index", "sitemap", "loc", "lastmod"),
    "rss": ElementNames("rss", "item", "link", "pubDate"),
    "RDF": ElementNames("rss", "item", "link"),
    "feed": ElementNames("atom", "entry", "link", "updated"),
}


def root(head: str) -> Root | None:
    """Return the root element in the first chunk of a file; None if it is no sitemap or feed.

    A file with its own declarations is rejected, since declarations are never read.
    """
    prologue = _PROLOGUE.match(head)
    start = 0 if prologue is None else prologue.end()
    found = None if head.startswith(("<!--", "<?"), start) else _ROOT.search(head, start)
    if found is None or _PAGE.search(head, 0, found.start()) or declares(head[: found.start()]):
        return None
    # The items of RSS 1.0 are in another namespace than its root.
    prefix = "" if found["name"] == "RDF" else found["prefix"]
    kind, *local_names = _ELEMENT_NAMES[found["name"]]
    names = ElementNames(kind, *(prefix + name for name in local_names))
    name = found["prefix"] + found["name"]
    return Root(found.start(), name, names, found.start() > start)


def declares(head: str) -> bool:
    """Whether a text has a document type with declarations."""
    return _DECLARATIONS.search(head) is not None


class TagScanner:
    """A scanner for the relevant tags in chunks of text; the first chunk begins with the root.

    `rest` is the part of the chunks that is not scanned yet; it may begin with a tag or comment
    that is `too_long`.
    """

    def __init__(self, root: Root) -> None:
        names = root.names
        fields, others = _either(names[2:]), _either((root.name, names.record, SOURCE))
        first = re.escape("".join(sorted({name[0] for name in (root.name, SOURCE, *names[1:])})))
        # The alternatives after "<"; each stops at "|", and `lastgroup` names it:
        #
        #   text                           lastgroup  captured before  what it is
        #   <loc xml:lang="a">…</loc>|     closed     field, …, text   a field
        #   <loc>…|<                       text       field, …         a field without its end tag
        #   <url>|  </url>|  </loc>|       tag                         any other relevant tag
        #   <!--…-->…|<  <?…?>…|<          more                        a comment or an instruction
        #   <![CDATA[…]]>…|<               more       data             CDATA
        #   <!--|  <?|  <![CDATA[|         open                        one of these without its end
        self._next = re.compile(
            rf"""
            < (?= [{first}/!?] )
            (?: (?P<field> {fields} ) (?P<attributes> {_ATTRIBUTES} ) >
                (?P<text> [^<]*+ ) (?: (?P<closed> </ (?P=field) [{_W}]*+ > ) | (?=<) )
            |   (?P<tag> /?+ {others} | / {fields} ) {_ATTRIBUTES} >
            |   (?: {_COMMENT} | {_INSTRUCTION} | {_CDATA} ) (?P<more> [^<]*+ ) (?=<)
            |   (?P<open> !-- | \? | !\[CDATA\[ )
            )
            """,
            re.VERBOSE,
        )
        # Records are counted by their URLs, but by their end tags in feeds: there, elements with
        # the name of the URL are outside of records, too.
        one = re.escape(names.url) if names.kind in LOOSE else "/" + re.escape(names.record)
        self._count = re.compile(rf"<(?:{one}|(?P<root_end>/{re.escape(root.name)})){_END}")
        self.rest, self.too_long = "", False

    def scan(self, chunks: Iterable[str]) -> Iterator[re.Match[str]]:
        """Yield one match after another, with one of these for its `lastgroup`:

        - "closed": a start tag (`field`, `attributes`), its `text` and its end tag.
        - "text": the same without the end tag.
        - "tag": any other relevant tag; the name of an end tag begins with "/".
        - "more": a comment, an instruction or CDATA (`data`), with the text after it.

        A text goes up to the next "<"; a text at the end of the file, without a "<" after it, is
        not yielded. References are not decoded. Behind a tag or comment that is `too_long` nothing
        is read.
        """
        for chunk in chunks:
            text, at = self.rest + chunk, 0
            for match in self._next.finditer(text):
                if match.lastgroup == "open":
                    at = match.start()
                    break
                at = match.end()
                yield match
            else:
                at = text.rfind("<", at)
            self.rest = text[at:] if at >= 0 else ""
            if len(self.rest) > _MAX_TAG:
                self.too_long = True
                return

    def count(self, chunks: Iterable[str]) -> tuple[int, bool]:
        """Return the number of records in the rest and in more chunks, and whether the root ends.

        It is faster than `scan`, and counts records in comments, too.
        """
        count, ended = 0, False
        for text in _undivided(chain((self.rest,), chunks)):
            found = self._count.findall(text)
            ends = len(found) - found.count("")
            count += len(found) - ends
            ended = bool(found[-1]) if found else ended
        return count, ended


def _undivided(chunks: Iterable[str]) -> Iterator[str]:
    """Yield the text of chunks, never divided within the name of a tag."""
    rest = ""
    for chunk in chunks:
        text = rest + chunk
        end = text.rfind("<", -_MAX_NAME)
        yield text if end < 0 else text[:end]
        rest = "" if end < 0 else text[end:]
    yield rest


def _either(names: Iterable[str]) -> str:
    return f"(?:{'|'.join(map(re.escape, names))})"


_MAX_VALUE = 8 * 1024  # characters of a value that is put together from parts
_HREF = lazy(r"""(?:^|[\s"'])href\s*+=\s*+(?:"(?P<double>[^"]*+)|'(?P<single>[^']*+))""")
_REL = lazy(r"""(?:^|[\s"'])rel\s*+=\s*+(?:"(?P<double>[^"]*+)|'(?P<single>[^']*+))""")
# &#x26; (hexadecimal), &#38; (decimal), or &amp; (name).
_REFERENCE = lazy(
    r"""
    &
    (?: \# (?: [xX] (?P<hexadecimal> [0-9a-fA-F]++ ) | (?P<decimal> [0-9]++ ) )
    |   (?P<name> amp|lt|gt|quot|apos )
    )
    ;
    """,
    re.VERBOSE,
)
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}


class Record(NamedTuple):
    """A record with references decoded; None for a missing field."""

    url: str
    date: str | None
    priority: str | None


class RecordReader:
    """A reader of the records of a sitemap or feed.

    It counts the `tags`, the `roots` (root elements), the `unclosed` values (without an end tag),
    and each `bare` "&" in a value that does not begin a reference. `ended` is whether the last
    root has its end tag, `is_cut` whether the rest is not read because of a very long tag.
    """

    def __init__(self, root: Root) -> None:
        self.tags = self.roots = self.unclosed = self.bare = 0
        self.ended = self.is_cut = False
        self._tags = TagScanner(root)
        self._root = root
        self._names = root.names
        self._is_loose = root.names.kind in LOOSE
        self._in_record = self._is_loose
        self._in_source = False
        self._values: dict[str, str] = {}
        self._open_field = ""
        self._open_text = ""
        self._correction = 0

    def read(self, chunks: Iterable[str]) -> Iterator[Record]:
        """Yield the records in chunks of text; the first chunk must begin with the root.

        A value that the end of the text cuts off is left out.
        """
        for match in self._tags.scan(chunks):
            self.tags += 1
            if (record := self._handle(match)) is not None:
                yield record
        self.is_cut = self._tags.too_long
        inside, begun = self._in_record and not self._is_loose, self._open_field == self._names.url
        if (record := self._finish()) is not None:
            yield record
        # For `count`: a record that was yielded before its end tag must not be counted again, and
        # a record that only began must be counted.
        self._correction = -inside if record is not None else begun and not inside

    def count(self, chunks: Iterable[str]) -> int:
        """Return the number of records in the rest of the file, also in comments."""
        count, ended = self._tags.count(chunks)
        self.ended = self.ended or ended
        return count + self._correction

    def _handle(self, match: re.Match[str]) -> Record | None:
        if match.lastgroup == "more":
            self._continue_value(match["data"] or "", match["more"])
        elif match.lastgroup == "tag":
            tag = match["tag"]
            if tag[0] == "/":
                return self._handle_end(tag[1:])
            return self._handle_start(tag, empty=match.string.endswith("/>", 0, match.end()))
        elif self._in_record and not self._in_source:
            return self._handle_field(match)
        return None

    def _handle_field(self, match: re.Match[str]) -> Record | None:
        self._close()
        name, attributes = match["field"], match["attributes"]
        is_url = name == self._names.url
        # A second URL begins another record.
        done = self._finish() if is_url and name in self._values else None
        if is_url and self._names.kind == "atom":
            self._store_link(attributes)
        elif match["closed"] or attributes.endswith("/"):
            self._values.setdefault(name, self._decode(match["text"]))
        else:
            self._open_field, self._open_text = name, self._decode(match["text"])
        return done

    def _handle_start(self, name: str, *, empty: bool) -> Record | None:
        self._close()
        if name == self._root.name:
            self.roots += 1
            self.ended = empty
        elif name == SOURCE:
            self._in_source = not empty
        else:
            self._in_record, self._in_source = self._is_loose or not empty, False
            return self._finish()
        return None

    def _handle_end(self, name: str) -> Record | None:
        self._close(ended=name)
        if name == self._root.name:
            self.ended = True
        elif name == SOURCE:
            self._in_source = False
        elif name == self._names.record:
            self._in_record, self._in_source = self._is_loose, False
            return self._finish()
        return None

    def _continue_value(self, data: str, text: str) -> None:
        if self._open_field and len(self._open_text) <= _MAX_VALUE:
            self._open_text += data + self._decode(text)

    def _store_link(self, attributes: str) -> None:
        """Store the URL of a link in Atom if it is the page's own URL (RFC 4287, 4.2.7)."""
        href, rel = _HREF.search(attributes), _REL.search(attributes)
        if href is not None and (rel is None or rel[rel.lastgroup or 0] == "alternate"):
            self._values.setdefault(self._names.url, self._decode(href[href.lastgroup or 0]))

    def _close(self, *, ended: str = "") -> None:
        """End the open value, if any; it counts as unclosed unless `ended` is its name."""
        if not self._open_field:
            return
        self.unclosed += self._open_field != ended
        self._values.setdefault(self._open_field, self._open_text)
        self._open_field = ""

    def _finish(self) -> Record | None:
        values, self._values = self._values, {}
        _, _, url, date, priority = self._names
        if url not in values:
            return None
        return Record(values[url], values.get(date), values.get(priority))

    def _decode(self, source: str) -> str:
        if "&" not in source:
            return source
        text, known = _REFERENCE.subn(_decode_reference, source)
        self.bare += source.count("&") - known
        return text


def _decode_reference(reference: re.Match[str]) -> str:
    if (name := reference["name"]) is not None:
        return _ENTITIES[name]
    return entities.character(reference["hexadecimal"], reference["decimal"])
