"""Find the links of a tidy page: a page in which a tag has "<" and ">" only at its two ends.

Nearly every page is tidy. In a tidy page each "<" begins a tag or a comment, so one expression
that goes from "<" to "<" finds all relevant tags, and need not read the attributes of other tags.
Then a few passes over the page, all in C, prove that the page is tidy. Together this takes 60 to
70 % of the tokenizer's time, and less than lexbor needs for its tree.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import compress
from typing import Any, NamedTuple

from trio_crawler.model import Anchor
from trio_crawler.page.html import anchors
from trio_crawler.page.html.tokenizer import (
    COMMENT,
    HREF,
    MAX_TAGS,
    NAME_END,
    SPACE,
    TAG_END,
    attribute_value,
    is_nofollow,
)

# A longer page is read in slices of this many characters, some 5 ms each: the lock of the
# interpreter is kept meanwhile, and the parts of a slice take some ten times its memory.
_SLICE = 1 << 20

_VALUE = r'"[^"<>]*+"'
# Attributes that are left out of the proof, so that a value may contain "<" or ">".
_EASY = rf'(?: [{SPACE}]++ [a-z-]++ = "[^"]*+" )*+'
_RAW = "iframe|noembed|noframes|style|textarea|xmp"
_CONTEXTS = "math|select|svg|template"
_RELEVANT = rf"""
    (?: (?i: a|area|base|frameset|plaintext|script|title|{_RAW}|{_CONTEXTS} ) {NAME_END} | [!?] )
"""
# The first two letters of all relevant names, and of img and meta, whose values often contain "=".
# They exclude nearly every other tag, in a third of the time that it takes to try the names.
_LIKELY = rf"""
    (?= [!?aAbBfFiImMnNpPsStTxX] )
    (?= [!?]
    |   [aA][{SPACE}/>rR]   # a, area
    |   [sS][cCeEtTvV]      # script, select, style, svg
    |   [tT][eEiI]          # template, textarea, title
    |   [mM][aAeE]          # math, meta
    |   [iI][fFm]           # iframe, img
    |   [bB][aA]            # base
    |   [fF][rR]            # frameset
    |   [nN][oO]            # noembed, noframes
    |   [pP][lL]            # plaintext
    |   [xX][mM]            # xmp
    )
"""
# The usual link, which is not rel=nofollow: that contains a "w" or a reference, as few other links
# do. Nearly all attributes beside a href begin neither with "h" nor with "r".
_FAR = rf"(?: [{SPACE}]++ (?![hr]) [a-z-]++ = {_VALUE} )*+"
_BESIDE = rf"""
    (?: [{SPACE}]++ (?: (?! href= | rel= ) [a-z-]++ = {_VALUE} | rel="[^"<>wW&]*+" ) )*+
"""
_USUAL_LINK = rf"""
    a {_FAR}
    (?: [{SPACE}]++ href=" | {_BESIDE} [{SPACE}]++ href=" ) (?P<href> [^"<>]*+ ) "
    (?: (?=>) | {_BESIDE} (?= [^<>wW&]*+ > ) )
"""
_LINK_TEXT = r"(?: > (?P<text> [^<]*+ ) </a (?=>) )?+"  # of a link that contains only text


def _end_tag(name: str) -> str:
    return rf"/ (?i: {name} ) {NAME_END}"


def _before(end: str, but: str = "") -> str:
    """Return an expression for a content up to the "<" of its end tag, without "<" and `but`."""
    return rf"[^<]*+ (?: < (?! {end} {but} ) [^<]*+ )*+"


# A script ends at its first end tag, unless it contains "<!--": then up to "-->" a nested script
# has its own end tag (the script data escaped and double escaped states, 13.2.5.20 and 27). The
# "--" of "<!--" may belong to the "-->", as in "<!-->".
_SCRIPT_END = _end_tag("script")
_NESTED_SCRIPT = rf"""
    (?i: script ) {NAME_END} [^<-]*+ (?: (?: - (?! -> ) | < (?! {_SCRIPT_END} ) ) [^<-]*+ )*+
    (?: < {_SCRIPT_END} | (?= --> ) )
"""
_SCRIPT_COMMENT = rf"""
    ! (?= -- ) [^<-]*+
    (?:
        (?: - (?! -> ) | < (?: {_NESTED_SCRIPT} | (?! /?+ (?i: script ) {NAME_END} ) ) ) [^<-]*+
    )*+
    (?: --> | (?= < {_SCRIPT_END} ) )
"""
_SCRIPT_TEXT = rf"""
    [^<]*+ (?: < (?: (?! {_SCRIPT_END} | !-- ) | {_SCRIPT_COMMENT} ) [^<]*+ )*+
"""


# The expression that splits a tidy page at all relevant tags. The matches are left out of the
# proof that the page is tidy. So each alternative matches exactly like the tokenizer of the HTML
# Standard, and stops before a ">", which remains for the "<" of the match. The alternatives, in
# this order; each stops at "|":
#
#   text                           captured    what it is
#   <a id="i" href="x"|>           href        the usual link
#   <a href="x">text</a|>          href, text  with `texts`: the usual link with nothing but text
#   <a| …>  <area| …>  <base| …>   tag         any other; the text after the match begins with its
#                                              attributes, which other expressions read
#   <img src="?a=b"| …>            tag         with `texts`: its alt may be the text of a link
#   <img src="?a=b"| …>                        img and meta: each "=" would cost the proof time,
#                                              and an alt="<-" is nothing unusual
#   <!--…--|>  <!…|>  <?…|>                    a comment or similar
#   <title …>T</title| >           title       a title
#   <script …>…</script| >                     a script
#   <style …>…</style| >           raw         raw text
#   <svg| …>…</svg>                context     an element in which tags may have another meaning,
#                                              but which contains nothing relevant
#   <svg …  <plaintext …|                      any other relevant tag: the page is not tidy
#
# The last alternative matches the rest of the page. So no ">" remains, and the proof fails; and no
# other alternative can search the rest of the page again, which would make the time quadratic.
def _compile(*, texts: bool) -> re.Pattern[str]:
    image = rf"| img {_EASY} {NAME_END}" if texts else ""
    title = _end_tag("title")
    raw, context = _end_tag("(?P=raw)"), _end_tag("(?P=context)")
    return re.compile(
        rf"""
        < {_LIKELY}
        (?: {_USUAL_LINK} {_LINK_TEXT if texts else ""}
        |   (?P<tag> (?i: a|area|base ) {NAME_END} {image} )
        |   (?: meta|img ) {_EASY} {NAME_END}
        |   {COMMENT}
        |   [!?] (?!--) [^>]*+
        |   (?i: title ) {NAME_END} {TAG_END} (?P<title> {_before(title)} ) < {title}
        |   (?i: script ) {NAME_END} {TAG_END} {_SCRIPT_TEXT} < {_SCRIPT_END}
        |   (?P<raw> (?i: {_RAW} ) ) {NAME_END} {TAG_END} {_before(raw)} < {raw}
        |   (?P<context> (?i: {_CONTEXTS} ) ) {NAME_END}
            (?= {_before(context, f"| {_RELEVANT}")} < {context} )
        |   {_RELEVANT} (?s: .* )
        )
        """,
        re.ASCII | re.VERBOSE,
    )


_LINKS = _compile(texts=False)


@lru_cache(1)
def _links_with_texts() -> re.Pattern[str]:
    return _compile(texts=True)


# The attributes of a link whose href is not in double quotes; it is not rel=nofollow.
_EASY_HREF = re.compile(
    rf"""
    [{SPACE}]++ href=
    (?: '(?P<single> [^'<>]*+ )' | (?P<bare> [^{SPACE}"'<>] [^{SPACE}<>]*+ ) )
    [^<>wW&]*+ >
    """,
    re.VERBOSE,
).match

_NO_MARKS = bytes(set(range(256)) - set(b"<>=\"'"))
# A quoted value with "<" or ">" in it: in the marks alone, and in a tag.
_MAY_CONTAIN_TAGS = re.compile(rb"""= (?: "[^"<>]*+[<>] | '[^'<>]*+[<>] )""", re.VERBOSE).search
_LONG_VALUE = rf"""[{SPACE}]*+ (?: "[^"<>]*+[<>] | '[^'<>]*+[<>] )"""
_CONTAINS_TAGS = re.compile(
    rf"< [^<>=]*+ (?: = (?! {_LONG_VALUE} ) [^<>=]*+ )*+ = {_LONG_VALUE}", re.VERBOSE
).search


class FastLinks(NamedTuple):
    """The hrefs of `a` and `area`, the first href of `base` and the first title, as written.

    `nofollow_hrefs` are the hrefs of links with rel=nofollow, `hrefs` all others. `reader` is None
    if no anchors were requested. `tags` is the number of relevant tags.
    """

    hrefs: list[str]
    base: str | None
    title: str | None
    nofollow_hrefs: list[str]
    reader: AnchorReader | None
    tags: int


def find_links(text: str, *, anchors: bool = False, max_links: int = 100_000) -> FastLinks | None:
    """Return the links that `tokenizer.tags` would find in HTML.

    None if the page is not tidy. For a page with more than 1,048,576 characters each href is
    returned once; None if it has more than `max_links` of them or 500,000 relevant tags, or if its
    anchors are requested.
    """
    if len(text) > _SLICE:
        return None if anchors else _find_in_slices(text, max_links)
    pattern = _links_with_texts() if anchors else _LINKS
    # A table in one list: each row is the text before a match, and the groups of the match.
    parts = pattern.split(text)
    column, width = pattern.groupindex, pattern.groups + 1
    texts = parts[::width]
    if not _is_tidy("<".join(texts)):
        return None
    hrefs, tags = parts[column["href"] :: width], parts[column["tag"] :: width]
    nofollow_hrefs: dict[int, str] = {}
    base = _read_other_tags(texts, tags, hrefs, nofollow_hrefs) if any(tags) else None
    title = None
    for title in parts[column["title"] :: width]:
        if title is not None:
            break
    reader = AnchorReader(parts, hrefs, list(nofollow_hrefs)) if anchors else None
    followed = [href for href in hrefs if href is not None]
    nofollow = list(nofollow_hrefs.values())
    return FastLinks(followed, base, title, nofollow, reader, len(texts) - 1)


def _find_in_slices(text: str, max_links: int) -> FastLinks | None:
    """Return the links of a long page, in which nothing is open where a slice ends.

    After a tidy slice that is so: each tag, comment and script of it ends in it.
    """
    hrefs: dict[str, None] = {}
    nofollow_hrefs: dict[str, None] = {}
    base = title = None
    at = tags = 0
    while at < len(text):
        end = _slice_end(text, at)
        found = find_links(text[at:end])
        if found is None:
            return None
        hrefs.update(dict.fromkeys(found.hrefs))
        nofollow_hrefs.update(dict.fromkeys(found.nofollow_hrefs))
        tags += found.tags
        if len(hrefs) + len(nofollow_hrefs) > max_links or tags >= MAX_TAGS:
            return None
        base = found.base if base is None else base
        title = found.title if title is None else title
        at = end
    return FastLinks(list(hrefs), base, title, list(nofollow_hrefs), None, tags)


def _slice_end(text: str, at: int) -> int:
    """Return where a slice ends: if possible before a link, as few are in a script or SVG."""
    most = at + _SLICE
    if most >= len(text):
        return len(text)
    ends = (text.rfind(start, at + 1, most) for start in ("<a ", "<"))
    return next((end for end in ends if end > 0), most)


def _read_other_tags(
    texts: list[str],
    tags: list[Any],
    hrefs: list[str | None],
    nofollow_hrefs: dict[int, str],
) -> str | None:
    """Add the hrefs of all unusual links by their rows; return the href of the first base."""
    base = None
    for row, name in compress(enumerate(tags), tags):
        # The text after a match begins with the attributes. The href of an image is ignored.
        rest = texts[row + 1]
        easy = _EASY_HREF(rest)
        if (match := easy or HREF(rest)) is None or name[0] == "i":
            continue
        href = attribute_value(match)
        if name not in "aA" and name[1] not in "rR":
            base = href if base is None else base
        elif easy is None and is_nofollow(rest, 0, rest.find(">")):
            nofollow_hrefs[row] = href
        else:
            hrefs[row] = href
    return base


class AnchorReader:
    """A reader of the anchors of a tidy page, which keeps the parts of the page."""

    def __init__(
        self, parts: list[Any], hrefs: list[str | None], nofollow_rows: list[int]
    ) -> None:
        pattern = _links_with_texts()
        self._parts = parts
        self._column, self._width = pattern.groupindex, pattern.groups + 1
        self._is_link = [href is not None for href in hrefs]
        self._nofollow_rows = nofollow_rows

    def read_all(self, hrefs: Sequence[str], nofollow_hrefs: Sequence[str]) -> dict[str, Anchor]:
        """Return an anchor for each href; the hrefs must be in the order of `find_links`.

        An anchor of a link without rel=nofollow is preferred.
        """
        texts = list(compress(self._parts[self._column["text"] :: self._width], self._is_link))
        rows: list[int] = []

        def read(number: int) -> Anchor:
            if not rows:
                rows.extend(compress(range(len(self._is_link)), self._is_link))
            return self._read(rows[number])

        found = anchors.choose_first(hrefs, texts, read)
        if not nofollow_hrefs:
            return found
        nofollow = zip(nofollow_hrefs, map(self._read, self._nofollow_rows), strict=True)
        return anchors.prefer_text(nofollow, found)

    def _read(self, row: int) -> Anchor:
        parts, start = self._parts, row * self._width
        at = start + self._width
        name, rest = parts[start + self._column["tag"]], parts[at]
        if name and name[1:2] in ("r", "R"):
            return anchors.read_area(rest)
        source = rest[rest.find(">") + 1 :]
        end = source.find("</a>", 0, anchors.WINDOW)
        if end >= 0:
            return anchors.read_source(source[: end + 4])
        return anchors.read_source(source + self._source_after(at))

    def _source_after(self, at: int) -> str:
        """Return the source up to the next link, joined from the parts from a position on."""
        parts, column = self._parts, self._column
        source, length = [], 0
        while at + 1 < len(parts) and length < anchors.WINDOW:
            name, context = parts[at + column["tag"]], parts[at + column["context"]]
            if parts[at + column["href"]] is not None or (name and name in "aA"):
                break
            at += self._width
            # Comments and scripts are left out, since a reader does not see them.
            source += ["<", name if name and name[0] == "i" else context or "!", parts[at]]
            length += len(parts[at])
        return "".join(source)


def _is_tidy(text: str) -> bool:
    """Whether each "<" begins a tag that ends at the next ">", before any other "<".

    This is true if no quoted value contains "<" or ">", and if there is a ">" between any two "<".
    A value can only begin after "=", and in a tag. Nearly always the marks (the characters <>="'
    alone) show that no value contains a tag: almost every value becomes `=""` in them.
    """
    # Only characters that are not marks are lost here.
    source = text.encode("latin-1", "ignore")
    marks = source.translate(None, _NO_MARKS).replace(b'=""', b"")
    if _MAY_CONTAIN_TAGS(marks) and _CONTAINS_TAGS(text):
        return False
    ends = marks.translate(None, b"=\"'")
    return ends.count(b"<") == ends.count(b"<>")
