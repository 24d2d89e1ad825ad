"""Read the records of sitemaps and feeds; only the five named references of XML are decoded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from trio_crawler.page import entities
from trio_crawler.page.sitemap.elements import LOOSE, SOURCE, Root, TagScanner

_MAX_VALUE = 8 * 1024  # characters of a value that is put together from parts
_HREF = re.compile(r"""(?:^|[\s"'])href\s*+=\s*+(?:"(?P<double>[^"]*+)|'(?P<single>[^']*+))""")
_REL = re.compile(r"""(?:^|[\s"'])rel\s*+=\s*+(?:"(?P<double>[^"]*+)|'(?P<single>[^']*+))""")
# &#x26; (hexadecimal), &#38; (decimal), or &amp; (name).
_REFERENCE = re.compile(
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
    root has its end tag.
    """

    def __init__(self, root: Root) -> None:
        self.tags = self.roots = self.unclosed = self.bare = 0
        self.ended = False
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

    def _handle(self, match: re.Match[str] | None) -> Record | None:
        if match is None:
            self._close(keep=False)
        elif match.lastgroup == "record":
            return self._handle_record(match)
        elif match.lastgroup == "more":
            self._continue_value(match["data"] or "", match["more"])
        elif match.lastgroup == "tag":
            tag = match["tag"]
            if tag[0] == "/":
                return self._handle_end(tag[1:])
            return self._handle_start(tag, empty=match.string.endswith("/>", 0, match.end()))
        elif self._in_record and not self._in_source:
            return self._handle_field(match)
        return None

    def _handle_record(self, match: re.Match[str]) -> Record | None:
        self._close()
        self._in_record, self._in_source = self._is_loose, False
        done = self._finish()
        _, _, url, date, priority = self._names
        self._values = {url: match["url"]}
        for name, value in ((date, match["date"]), (priority, match["priority"])):
            if value is not None:
                self._values[name] = value
        return done

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

    def _close(self, *, ended: str = "", keep: bool = True) -> None:
        """End the open value, if any; it counts as unclosed unless `ended` is its name."""
        if not self._open_field:
            return
        self.unclosed += self._open_field != ended
        if keep:
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
