"""The links of a tidy page: one in which no tag holds "<" or ">" but at its two ends.

Nearly every page is one. Each "<" of it begins something, so what matters is found by going from
"<" to "<", and the attributes of the other tags need not be followed. That the page is tidy is
shown afterwards, by a few steps that each pass over all of it in C. Together that takes 60 to 70 %
of the time of the scan, and less than lexbor needs for its tree.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import compress
from typing import Any, NamedTuple

from trio_crawler.model import Anchor
from trio_crawler.page.html import anchors
from trio_crawler.page.html.tokenizer import ATTRIBUTES, COMMENT, HREF, W, nofollow, value_of

_LONGEST = 1 << 20  # characters; the parts of a page take some ten times its size

_END = rf"(?=[{W}/>])"
_VALUE = r'"[^"<>]*+"'
_EASY = rf"(?:[{W}]++[a-z-]++={_VALUE})*+"
# A link that is not rel=nofollow: that holds a "w", or a reference for it, and few others do. Of
# what stands beside a href, nearly all begins neither like that nor like rel.
_PLAIN = rf"(?:[{W}]++(?![hr])[a-z-]++={_VALUE})*+"
_BESIDE = rf"""(?:[{W}]++(?:(?!href=|rel=)[a-z-]++={_VALUE}|rel="[^"<>wW&]*+"))*+"""
_LINK_TAG = (
    rf'a{_PLAIN}(?:[{W}]++href="|{_BESIDE}[{W}]++href=")([^"<>]*+)"'
    rf"(?:(?=>)|{_BESIDE}(?=[^<>wW&]*+>))"
)
_LINK_TEXT = r"(?:>([^<]*+)</a(?=>))?+"  # of a link with nothing but text in it
_RAW = "iframe|noembed|noframes|style|textarea|xmp"
_CONTEXTS = "math|select|svg|template"
_TELLING = rf"(?:(?i:a|area|base|frameset|plaintext|script|title|{_RAW}|{_CONTEXTS}){_END}|[!?])"
# The first two letters of all these names, and of two more whose attributes often hold a "=".
# They rule out nearly every other tag, at a third of what trying the names would cost.
_LIKELY = (
    rf"(?=[!?aAbBfFiImMnNpPsStTxX])(?=[!?]|[aA][{W}/>rR]|[sS][cCeEtTvV]|[tT][eEiI]|[mM][aAeE]"
    "|[iI][fFm]|[bB][aA]|[fF][rR]|[nN][oO]|[pP][lL]|[xX][mM])"
)


def _until_end(name: str, not_inside: str = "") -> str:
    end = rf"/(?i:{name}){_END}"
    return rf"[^<]*+(?:<(?!{end}{not_inside})[^<]*+)*+<{end}"


_TAG_END = rf"{ATTRIBUTES}[{W}/]*+>"


# What is found stays out of the proof, so each alternative takes exactly what the tokenizer of
# the HTML Standard takes, and stops before the last ">". The last alternative finds what needs
# another reader, and takes all the rest, so that nothing goes to the end of the page in vain more
# than once, and no ">" is left: the page will not be found tidy.
def _expression(*, anchors: bool) -> re.Pattern[str]:
    """Make the expression: 1 a href, 2 the name of what needs reading, 3 the title, 5 a context.

    With `anchors` 2 is the source in a link if that is text, 3 the name, which may be an image
    with its attributes, and so on.
    """
    image = rf"|img{_EASY}{_END}" if anchors else ""
    found = [
        _LINK_TAG + (_LINK_TEXT if anchors else ""),
        rf"((?i:a|area|base){_END}{image})",
        rf"(?:meta|img){_EASY}{_END}",
        COMMENT,
        "[!?](?!--)[^>]*+",
        rf"(?i:title){_END}{_TAG_END}(?=([^<]*+(?:<(?!/(?i:title){_END})[^<]*+)*+))"
        + _until_end("title"),
        rf"(?i:script){_END}{_TAG_END}" + _until_end("script", "|!--"),
        rf"(?P<raw>(?i:{_RAW})){_END}{_TAG_END}" + _until_end("(?P=raw)"),
        # Without anything in it that tells, what other tags mean in it does not matter.
        rf"(?P<of>(?i:{_CONTEXTS})){_END}(?={_until_end('(?P=of)', '|' + _TELLING)})",
        rf"{_TELLING}(?s:.*)",
    ]
    return re.compile(f"<{_LIKELY}(?:{'|'.join(found)})", re.ASCII)


_FOUND = _expression(anchors=False)
_HREF, _TEXT, _LINK, _TITLE, _PARTS = 1, 2, 2, 3, 6


@lru_cache(1)
def _found_with_text() -> re.Pattern[str]:
    return _expression(anchors=True)


# The other ways to write a link that is not rel=nofollow.
_EASY_HREF = re.compile(
    rf"""[{W}]++href=(?:'([^'<>]*+)'|([^{W}"'<>][^{W}<>]*+))[^<>wW&]*+>"""
).match

_NO_MARKS = bytes(set(range(256)) - set(b"<>=\"'"))
_MAY_HOLD_TAGS = re.compile(rb"""=(?:"[^"<>]*+[<>]|'[^'<>]*+[<>])""").search
_HOLDS_TAGS = re.compile(rf"""=[{W}]*+(?:"[^"<>]*+[<>]|'[^'<>]*+[<>])""").search


class Sources(NamedTuple):
    """Hold the hrefs of `a` and `area`, the first of `base` and the first title, as written.

    The hrefs of links with rel=nofollow are the `unfollowed`. What stands `behind` the links is
    there if it was asked for.
    """

    hrefs: list[str]
    base: str | None
    title: str | None
    unfollowed: list[str]
    behind: Behind | None


def read(text: str, *, anchors: bool = False) -> Sources | None:
    """Find what `scan.tags` finds in HTML; None when the page is not tidy, or very long."""
    if len(text) > _LONGEST:
        return None
    parts = (_found_with_text() if anchors else _FOUND).split(text)
    size = _PARTS + anchors
    if not _is_tidy("<".join(parts[::size])):
        return None
    hrefs, names = parts[_HREF::size], parts[_LINK + anchors :: size]
    unfollowed: dict[int, str] = {}
    base = _read_the_rest(parts, size, names, hrefs, unfollowed) if any(names) else None
    title = next((title for title in parts[_TITLE + anchors :: size] if title is not None), None)
    behind = Behind(parts, hrefs, list(unfollowed)) if anchors else None
    followed = [href for href in hrefs if href is not None]
    return Sources(followed, base, title, list(unfollowed.values()), behind)


def _read_the_rest(
    parts: list[str],
    size: int,
    names: list[Any],
    hrefs: list[str | None],
    unfollowed: dict[int, str],
) -> str | None:
    """Put the hrefs that are written in some other way into their places; return the base's."""
    base = None
    for place, name in compress(enumerate(names), names):
        # The attributes are at the beginning of the text that follows; an image has no href here.
        rest = parts[(place + 1) * size]
        easy = _EASY_HREF(rest)
        if (match := easy or HREF(rest)) is None or name[0] == "i":
            continue
        href = value_of(match)
        if name not in "aA" and name[1] not in "rR":
            base = href if base is None else base
        elif easy is None and nofollow(rest, 0, rest.find(">")):
            unfollowed[place] = href
        else:
            hrefs[place] = href
    return base


class Behind:
    """Hold what stands behind the links of a tidy page, to read their anchors from it."""

    def __init__(self, parts: list[Any], hrefs: list[str | None], unfollowed: list[int]) -> None:
        self._parts = parts
        self._size = _PARTS + 1
        self._followed = [href is not None for href in hrefs]
        self._unfollowed = unfollowed

    def anchors(self, hrefs: Sequence[str], unfollowed: Sequence[str]) -> dict[str, Anchor]:
        """Give the anchors of all links; their hrefs must be in the order in which they were read.

        An anchor of a link that is not nofollow is preferred.
        """
        texts = list(compress(self._parts[_TEXT :: self._size], self._followed))
        places: list[int] = []

        def read(number: int) -> Anchor:
            if not places:
                places.extend(compress(range(len(self._followed)), self._followed))
            return self._read(places[number])

        found = anchors.first(hrefs, texts, read)
        if not unfollowed:
            return found
        marked = zip(unfollowed, map(self._read, self._unfollowed), strict=True)
        return anchors.better(marked, found)

    def _read(self, place: int) -> Anchor:
        parts, at = self._parts, (place + 1) * self._size
        name, rest = parts[at - self._size + _LINK + 1], parts[at]
        if name and name[1:2] in ("r", "R"):
            return anchors.of_area(rest)
        source = rest[rest.find(">") + 1 :]
        end = source.find("</a>", 0, anchors.WINDOW)
        if end >= 0:
            return anchors.of_source(source[: end + 4])
        return anchors.of_source(source + self._beyond(at))

    def _beyond(self, at: int) -> str:
        """Put the source together again, as far as the next link."""
        source, length = [], 0
        while at + 1 < len(self._parts) and length < anchors.WINDOW:
            href, _, name, _, _, context, rest = self._parts[at + 1 : at + 1 + self._size]
            if href is not None or (name and name in "aA"):
                break
            # What is nothing to a reader, a comment or a script, is left out.
            source += ["<", name if name and name[0] == "i" else context or "!", rest]
            length += len(rest)
            at += self._size
        return "".join(source)


def _is_tidy(text: str) -> bool:
    """Tell whether each "<" begins a tag that ends at the next ">", before any other "<".

    So it is when no quoted value holds one of the two, and no "<" follows another without a ">"
    between them. A value can only begin behind "=", and the marks alone tell nearly always that
    none goes as far as the next tag: almost all of them have come down to `=""`.
    """
    # What is left out is none of the marks.
    source = text.encode("latin-1", "ignore")
    marks = source.translate(None, _NO_MARKS).replace(b'=""', b"")
    if _MAY_HOLD_TAGS(marks) and _HOLDS_TAGS(text):
        return False
    ends = marks.translate(None, b"=\"'")
    return ends.count(b"<") == ends.count(b"<>")
