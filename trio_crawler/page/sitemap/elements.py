"""The few tags of a sitemap or feed that mean something, found in one pass over pieces of text.

All others are passed over, so nothing has to be well formed. There is no tree and no stack, and
no declaration is read. expat was tried: 50 MB of open `<url>` took it 4.7 s and 1,079 MiB, and
the first bare "&" ends what it can read.

Every expression is possessive and every search goes forward, so the time is linear whatever a
file holds; no more than two pieces of it are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

_W = "\\t\\n\\r "
_END = rf"(?=[{_W}/>])"
_LONGEST = 64 * 1024  # characters of a tag with the text behind it, or of a comment, that are kept
_ATTRIBUTES = rf"""(?:[{_W}/](?:[^<>"']++|"[^"<]*+"|'[^'<]*+')*+)?+"""
_COMMENT = r"!--(?:[^-]++|-(?!->))*+-->"
_INSTRUCTION = r"\?(?:[^?]++|\?(?!>))*+\?>"
_CDATA = r"!\[CDATA\[(?P<data>(?:[^\]]++|\](?!\]>))*+)\]\]>"
_LONGEST_NAME = 128
_MARKS = (("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>"))
_PROLOGUE = re.compile(rf"(?:[\ufeff{_W}]++|<(?:{_INSTRUCTION}|{_COMMENT}|!DOCTYPE[^\[<>]*+>))*+")
_ROOT = re.compile(rf"<((?:[\w.-]{{1,64}}+:)?+)(urlset|sitemapindex|rss|feed|RDF){_END}")
_DECLARATIONS = re.compile(r"<!DOCTYPE[^\[<>]*+\[")
_PAGE = re.compile(r"<(?:!doctype\s++html|html|head|body)\b", re.IGNORECASE)

LOOSE = ("urlset", "index")
"""Kinds of which a URL counts outside of a record, too."""

SOURCE = "source"
"""The element of a record that may hold the URL of another feed (RFC 4287, 4.2.11)."""


class Form(NamedTuple):
    """Name the elements of a form: what holds a URL, and what is in it, "-" for none."""

    kind: str
    record: str
    url: str
    date: str = "-"
    priority: str = "-"


class Root(NamedTuple):
    """Tell where the root element begins and what it is; names have their prefixes.

    With `late` something stands before it that may not.
    """

    start: int
    name: str
    form: Form
    late: bool


_FORMS = {
    "urlset": Form("urlset", "url", "loc", "lastmod", "priority"),
    "sitemapindex": Form("index", "sitemap", "loc", "lastmod"),
    "rss": Form("rss", "item", "link", "pubDate"),
    "RDF": Form("rss", "item", "link"),
    "feed": Form("atom", "entry", "link", "updated"),
}


def root(head: str) -> Root | None:
    """Find the root element near the beginning of a text; None if it is no sitemap or feed.

    A text with declarations of its own counts as none: those are never read.
    """
    prologue = _PROLOGUE.match(head)
    start = 0 if prologue is None else prologue.end()
    found = None if head.startswith(("<!--", "<?"), start) else _ROOT.search(head, start)
    if found is None or _PAGE.search(head, 0, found.start()) or declares(head[: found.start()]):
        return None
    # The items of RSS 1.0 are in another namespace than its root.
    prefix = "" if found[2] == "RDF" else found[1]
    kind, *names = _FORMS[found[2]]
    form = Form(kind, *(prefix + name for name in names))
    return Root(found.start(), found[1] + found[2], form, found.start() > start)


def declares(head: str) -> bool:
    """Tell whether a text has a document type with declarations in it."""
    return _DECLARATIONS.search(head) is not None


class Tags:
    """Find the tags of a root's form in pieces of text that begin with that root.

    `rest` is what was not yet gone through of the pieces that were taken.
    """

    def __init__(self, root: Root) -> None:
        form = root.form
        fields, others = _either(form[2:]), _either((root.name, form.record, SOURCE))
        first = re.escape("".join(sorted({name[0] for name in (root.name, SOURCE, *form[1:])})))
        self._next = re.compile(
            rf"<(?=[{first}/!?])(?:{_plain(form)}"
            rf"|(?P<field>{fields})(?P<attributes>{_ATTRIBUTES})>"
            rf"(?P<text>[^<]*+)(?:(?P<closed></(?P=field)[{_W}]*+>)|(?=<))"
            rf"|(?P<own>/?+{others}|/{fields}){_ATTRIBUTES}>"
            rf"|(?:{_COMMENT}|{_INSTRUCTION}|{_CDATA})(?P<more>[^<]*+)(?=<)"
            r"|(?P<begun>!--|\?|!\[CDATA\[))"
        )
        # A record in which the URL is not all: elsewhere others have an element of this name, too.
        one = re.escape(form.url) if form.kind in LOOSE else "/" + re.escape(form.record)
        self._count = re.compile(rf"<(?:{one}|(/{re.escape(root.name)})){_END}")
        self.rest = ""
        self._until = ""

    def read(self, pieces: Iterable[str]) -> Iterator[re.Match[str] | None]:
        """Give one match after another, by its `lastgroup`:

        - "plain": a whole record with its `url` and perhaps a `date` and a `priority`, all without
          references, as most sitemaps have them: this takes half of the time that tags take;
        - "closed": a start tag (`field`, `attributes`), its `text` and its end tag;
        - "text": the same without the end tag;
        - "own": any other tag of the form; that of an end tag begins with "/";
        - "more": a comment, an instruction or CDATA (`data`), with the text behind it.

        None stands for one that is too long. All is as written, and text goes up to the next "<":
        what the last piece cuts off is not given.
        """
        for piece in pieces:
            text = self._join(piece)
            if not text:
                continue
            at = 0
            for match in self._next.finditer(text):
                if match.lastgroup == "begun":
                    at = match.start()
                    break
                at = match.end()
                yield match
            else:
                at = text.rfind("<", at)
            self.rest = text[at:] if at >= 0 else ""
            if len(self.rest) > _LONGEST:
                yield from self._give_up()

    def _join(self, piece: str) -> str:
        """Join a piece to the rest; "" as long as what is too long goes on."""
        text = self.rest + piece
        end = text.find(self._until)
        if end < 0:
            self.rest = text[-2:]
            return ""
        at = end if self._until == "<" else end + len(self._until)
        self._until = ""
        return text[at:]

    def _give_up(self) -> Iterator[re.Match[str] | None]:
        """Pass over a rest that is too long; a tag counts with as much of its text as there is."""
        self._until = _end_mark(self.rest)
        match = self._next.search(self.rest[:_LONGEST] + "<")
        if match is not None:
            yield None if match.lastgroup == "begun" else match
        self.rest = self.rest[-2:]

    def count(self, pieces: Iterable[str]) -> tuple[int, bool]:
        """Count the records in the rest and in more pieces, and tell whether the root ends there.

        This is quick, and does not see what is inside of a comment.
        """
        count, ended = 0, False
        for text in _undivided(chain((self.rest,), pieces)):
            found = self._count.findall(text)
            ends = len(found) - found.count("")
            count += len(found) - ends
            ended = bool(found[-1]) if found else ended
        return count, ended


def _undivided(pieces: Iterable[str]) -> Iterator[str]:
    """Join pieces where a tag's beginning is divided."""
    rest = ""
    for piece in pieces:
        text = rest + piece
        end = text.rfind("<", -_LONGEST_NAME)
        yield text if end < 0 else text[:end]
        rest = "" if end < 0 else text[end:]
    yield rest


def _plain(form: Form) -> str:
    """Build what finds a record without anything unusual, "changefreq" passed over."""

    def field(name: str, value: str) -> str:
        name = re.escape(name)
        return rf"<{name}>({value}[^<&]*+)</{name}>[{_W}]*+"

    record = re.escape(form.record)
    changes = re.escape(form.url.removesuffix("loc") + "changefreq")
    return (
        rf"(?P<plain>{record}>[{_W}]*+{field(form.url, '?P<url>')}"
        rf"(?:{field(form.date, '?P<date>')})?+(?:{field(changes, '?:')})?+"
        rf"(?:{field(form.priority, '?P<priority>')})?+</{record}>)"
    )


def _either(names: Iterable[str]) -> str:
    return f"(?:{'|'.join(map(re.escape, names))})"


def _end_mark(text: str) -> str:
    """Tell where the text goes on behind what is too long."""
    for start, end in _MARKS:
        if text.startswith(start) and end not in text[len(start) :]:
            return end
    return "<"
