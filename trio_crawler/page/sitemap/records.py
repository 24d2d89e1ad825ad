"""The records of sitemaps and feeds, read from their tags; no entity is known but XML's five."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from trio_crawler.page.sitemap.elements import LOOSE, SOURCE, Root, Tags

_LONGEST = 8 * 1024  # characters of a value that is put together from parts
_HREF = re.compile(r"""(?:^|[\s"'])href\s*+=\s*+(?:"([^"]*+)|'([^']*+))""")
_REL = re.compile(r"""(?:^|[\s"'])rel\s*+=\s*+(?:"([^"]*+)|'([^']*+))""")
_REFERENCE = re.compile(r"&(?:#(?:[xX]([0-9a-fA-F]++)|([0-9]++))|(amp|lt|gt|quot|apos));")
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_DIGITS = 8  # more significant ones are beyond Unicode, in both bases


class Record(NamedTuple):
    """Hold what one record says, references decoded; None for what it does not say."""

    url: str
    date: str | None
    priority: str | None


class Records:
    """Find the records of a sitemap or feed.

    `tags` counts the tags gone through, `roots` the root elements, `unclosed` the values that
    something else than their end tag ended, `bare` the "&" in values that begin no reference;
    `ended` says whether the last root was closed.
    """

    def __init__(self, root: Root) -> None:
        self.tags = self.roots = self.unclosed = self.bare = 0
        self.ended = False
        self._tags = Tags(root)
        self._root = root
        self._form = root.form
        self._loose = root.form.kind in LOOSE
        self._inside = self._loose
        self._hidden = False
        self._values: dict[str, str] = {}
        self._open = ""
        self._text = ""
        self._owed = 0

    def read(self, pieces: Iterable[str]) -> Iterator[Record]:
        """Give the records in pieces of text that begin with the root.

        A value that the end of the text cuts off is not given.
        """
        for match in self._tags.read(pieces):
            self.tags += 1
            if (record := self._take(match)) is not None:
                yield record
        inside, begun = self._inside and not self._loose, self._open == self._form.url
        if (record := self._finish()) is not None:
            yield record
        # Where others are only counted: what was given is not to be, what was begun is.
        self._owed = -inside if record is not None else begun and not inside

    def count(self, pieces: Iterable[str]) -> int:
        """Count the records in what is left, which is quick; those in comments count as well."""
        count, ended = self._tags.count(pieces)
        self.ended = self.ended or ended
        return count + self._owed

    def _take(self, match: re.Match[str] | None) -> Record | None:
        if match is None:
            self._close(keep=False)
        elif match.lastgroup == "plain":
            return self._pass_plain(match)
        elif match.lastgroup == "more":
            self._go_on(match["data"] or "", match["more"])
        elif match.lastgroup == "own":
            tag = match["own"]
            if tag[0] == "/":
                return self._pass_end(tag[1:])
            return self._pass_start(tag, empty=match.string.endswith("/>", 0, match.end()))
        elif self._inside and not self._hidden:
            return self._pass_field(match)
        return None

    def _pass_plain(self, match: re.Match[str]) -> Record | None:
        self._close()
        self._inside, self._hidden = self._loose, False
        done = self._finish()
        _, _, url, date, priority = self._form
        self._values = {url: match["url"]}
        for name, value in ((date, match["date"]), (priority, match["priority"])):
            if value is not None:
                self._values[name] = value
        return done

    def _pass_field(self, match: re.Match[str]) -> Record | None:
        self._close()
        name, attributes = match["field"], match["attributes"]
        is_url = name == self._form.url
        # A second URL begins another record.
        done = self._finish() if is_url and name in self._values else None
        if is_url and self._form.kind == "atom":
            self._link(attributes)
        elif match["closed"] or attributes.endswith("/"):
            self._values.setdefault(name, self._decoded(match["text"]))
        else:
            self._open, self._text = name, self._decoded(match["text"])
        return done

    def _pass_start(self, name: str, *, empty: bool) -> Record | None:
        self._close()
        if name == self._root.name:
            self.roots += 1
            self.ended = empty
        elif name == SOURCE:
            self._hidden = not empty
        else:
            self._inside, self._hidden = self._loose or not empty, False
            return self._finish()
        return None

    def _pass_end(self, name: str) -> Record | None:
        self._close(ended=name)
        if name == self._root.name:
            self.ended = True
        elif name == SOURCE:
            self._hidden = False
        elif name == self._form.record:
            self._inside, self._hidden = self._loose, False
            return self._finish()
        return None

    def _go_on(self, data: str, text: str) -> None:
        if self._open and len(self._text) <= _LONGEST:
            self._text += data + self._decoded(text)

    def _link(self, attributes: str) -> None:
        """Take the URL of a link in Atom (RFC 4287, 4.2.7), if it is that of the page itself."""
        href, rel = _HREF.search(attributes), _REL.search(attributes)
        if href is not None and (rel is None or (rel[1] or rel[2]) == "alternate"):
            self._values.setdefault(self._form.url, self._decoded(href[1] or href[2] or ""))

    def _close(self, *, ended: str = "", keep: bool = True) -> None:
        """End the value that is open; if its end tag is not what `ended` it, that is counted."""
        if not self._open:
            return
        self.unclosed += self._open != ended
        if keep:
            self._values.setdefault(self._open, self._text)
        self._open = ""

    def _finish(self) -> Record | None:
        values, self._values = self._values, {}
        _, _, url, date, priority = self._form
        if url not in values:
            return None
        return Record(values[url], values.get(date), values.get(priority))

    def _decoded(self, source: str) -> str:
        if "&" not in source:
            return source
        text, known = _REFERENCE.subn(_meant, source)
        self.bare += source.count("&") - known
        return text


def _meant(reference: re.Match[str]) -> str:
    hexadecimal, decimal, name = reference.groups()
    if name is not None:
        return _ENTITIES[name]
    digits = (hexadecimal or decimal).lstrip("0")
    number = int(digits or "0", 16 if hexadecimal else 10) if len(digits) <= _DIGITS else 0
    if number == 0 or 0xD800 <= number <= 0xDFFF or number > 0x10FFFF:
        return "\ufffd"
    return chr(number)
