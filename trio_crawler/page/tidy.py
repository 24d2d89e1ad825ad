"""The links of a tidy page: one in which no tag holds "<" or ">" but at its two ends.

Nearly every page is one. Each "<" of it begins something, so what matters is found by going from
"<" to "<", and the attributes of the other tags need not be followed. That the page is tidy is
shown afterwards, by a few steps that each pass over all of it in C. Together that takes 60 to 70 %
of the time of the scan, and less than lexbor needs for its tree.
"""

from __future__ import annotations

import re
from itertools import compress
from typing import NamedTuple

from trio_crawler.page.scan import ATTRIBUTES, COMMENT, HREF, W, nofollow, value_of

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
_FOUND = re.compile(
    f"<{_LIKELY}(?:"
    + "|".join(
        [
            _LINK_TAG,
            rf"((?i:a|area|base){_END})",
            rf"(?:meta|img){_EASY}{_END}",
            COMMENT,
            "[!?](?!--)[^>]*+",
            rf"(?i:title){_END}{_TAG_END}(?=([^<]*+(?:<(?!/(?i:title){_END})[^<]*+)*+))"
            + _until_end("title"),
            rf"(?i:script){_END}{_TAG_END}" + _until_end("script", "|!--"),
            rf"((?i:{_RAW})){_END}{_TAG_END}" + _until_end(r"\4"),
            # Without anything in it that tells, what other tags mean in it does not matter.
            rf"((?i:{_CONTEXTS})){_END}(?={_until_end(chr(92) + '5', '|' + _TELLING)})",
            rf"{_TELLING}(?s:.*)",
        ]
    )
    + ")",
    re.ASCII,
)
# The other ways to write a link that is not rel=nofollow.
_EASY_HREF = re.compile(
    rf"""[{W}]++href=(?:'([^'<>]*+)'|([^{W}"'<>][^{W}<>]*+))[^<>wW&]*+>"""
).match
_HREF, _LINK, _TITLE, _PARTS = 1, 2, 3, 6

_NO_MARKS = bytes(set(range(256)) - set(b"<>=\"'"))
_MAY_HOLD_TAGS = re.compile(rb"""=(?:"[^"<>]*+[<>]|'[^'<>]*+[<>])""").search
_HOLDS_TAGS = re.compile(rf"""=[{W}]*+(?:"[^"<>]*+[<>]|'[^'<>]*+[<>])""").search


class Sources(NamedTuple):
    """Hold the hrefs of `a` and `area`, the first of `base` and the first title, as written.

    The hrefs of links with rel=nofollow are the `unfollowed`.
    """

    hrefs: list[str]
    base: str | None
    title: str | None
    unfollowed: list[str]


def read(text: str) -> Sources | None:
    """Find what `scan.tags` finds in HTML; None when the page is not tidy, or very long."""
    if len(text) > _LONGEST:
        return None
    parts = _FOUND.split(text)
    if not _is_tidy("<".join(parts[::_PARTS])):
        return None
    hrefs, names = parts[_HREF::_PARTS], parts[_LINK::_PARTS]
    unfollowed: list[str] = []
    base = _read_the_rest(parts, hrefs, unfollowed) if any(names) else None
    title = next((title for title in parts[_TITLE::_PARTS] if title is not None), None)
    return Sources([href for href in hrefs if href is not None], base, title, unfollowed)


def _read_the_rest(parts: list[str], hrefs: list[str], unfollowed: list[str]) -> str | None:
    """Put the hrefs that are written in some other way into their places; return the base's."""
    base = None
    names = parts[_LINK::_PARTS]
    for place in compress(range(len(names)), names):
        # The attributes are at the beginning of the text that follows.
        name, rest = names[place], parts[(place + 1) * _PARTS]
        easy = _EASY_HREF(rest)
        if (match := easy or HREF(rest)) is None:
            continue
        href = value_of(match)
        if name not in "aA" and name[1] not in "rR":
            base = href if base is None else base
        elif easy is None and nofollow(rest, 0, rest.find(">")):
            unfollowed.append(href)
        else:
            hrefs[place] = href
    return base


def _is_tidy(text: str) -> bool:
    """Tell whether each "<" begins a tag that ends at the next ">", before any other "<".

    So it is when no quoted value holds one of the two, and no "<" follows another without a ">"
    between them. A value can only begin behind "=", and the marks alone tell nearly always that
    none goes as far as the next tag: almost all of them have come down to `=""`.
    """
    try:
        source = text.encode("latin-1")  # a mere copy, where it can be done
    except UnicodeEncodeError:
        source = text.encode("utf-8", "surrogatepass")
    marks = source.translate(None, _NO_MARKS).replace(b'=""', b"")
    if _MAY_HOLD_TAGS(marks) and _HOLDS_TAGS(text):
        return False
    ends = marks.translate(None, b"=\"'")
    return ends.count(b"<") == ends.count(b"<>")
