"""Digest the text that a reader of a page sees, to compare the page with itself at another time.

Applications write another page at each request: tokens in hidden fields and scripts, addresses of
images with the time, counters of views. Between the tags only the counters are left, and those are
folded where the words around them are the usual ones.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from trio_crawler.expressions import lazy
from trio_crawler.page import accelerator, charset, entities, media
from trio_crawler.page.media import blank_doctype

# Comments, and elements whose text is not shown in the page. Each ends at the end of the text at
# the latest, so that the search takes linear time.
_UNSEEN = lazy(
    rb"<!--(?s:.*?)(?:-->|\Z)"
    rb"|<(?i:(?=[snt])(script|style|noscript|template|title)\b(?s:.*?)(?:</\1\b[^>]*+>?|\Z))"
)
# In XML such an element has no content.
_EMPTY = lazy(rb"<(?:script|style|noscript|template|title)\b[^<>]*+(?<=/)>")
# ▶ One that knew that a value may contain ">" would take twice the time.
_TAG = re.compile(rb"<[^ >][^>]*+>?")
_IS_H1 = re.compile(rb"<[hH]1(?![0-9A-Za-z_])").match
_NUMERIC = re.compile(rb"&#(?:[0-9]++|[xX][0-9a-fA-F]++);?")

_has_digit = re.compile(rb"[0-9]").search
_NUMBER = rb"[0-9]++(?:[.,' ]?[0-9]++)*+"
_UNIT = rb"(?:s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?|days?|weeks?|months?|years?)\b\.?"
_AGO = lazy(
    rb"(?:\b(?:about|over|almost|less than) )?"
    rb"(?<![0-9a-z])(?:[0-9]++|an?) %b(?:(?:,| and)? [0-9]++ %b)*+ ago\b" % (_UNIT, _UNIT),
    re.IGNORECASE,
)
_VIEWS = lazy(
    rb"%b(?= (?:(?:page ?)?views?|visits?|visitors?|hits?|quer(?:y|ies)"
    rb"|(?:users?|guests?|members?) (?:are |is )?online)\b)" % _NUMBER,
    re.IGNORECASE,
)
_COUNTED = lazy(
    rb"(\b(?:(?:views|visits|visitors|hits):|viewed|accessed) )%b" % _NUMBER, re.IGNORECASE
)
_DURATION = lazy(
    rb"%b ?(?:s|secs?|seconds?|ms|msecs?|milliseconds?|us|\xc2\xb5s|\xce\xbcs)\b" % _NUMBER,
    re.IGNORECASE,
)
_takes_time = lazy(
    rb"\b(?:generated|rendered|served|executed|loaded|parsed|processed|compiled|took|quer(?:y|ies)"
    rb"|(?:execution|generation|rendering|loading|load|processing|response) time)\b",
    re.IGNORECASE,
)
_MOMENT = lazy(
    rb"(\b(?:generated|rendered|served|retrieved|printed|exported|last (?:viewed|visit|activity)"
    rb"|(?:current|server|local) time|it is now|today is)\b)(.{0,60})",
    re.IGNORECASE,
)
_is_moment = re.compile(rb"[0-9]{1,2}:[0-9]{2}|\b20[0-9]{2}\b").search
_DATE = lazy(
    rb"[0-9]+(?:st|nd|rd|th)?\b"
    rb"|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)(?:[a-z]{2,6})?\b"
    rb"|\b(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b|\b[ap]m\b",
    re.IGNORECASE,
)


def _as_written(*words: str) -> frozenset[bytes]:
    """Return words as they may stand between two spaces."""
    cased = [form for word in words for form in (word, word.capitalize(), word.upper())]
    return frozenset(
        f"{before}{word}{after}".encode()
        for word in cased
        for before in ("", "(", "[")
        for after in ("", *".,:;!)]")
    )


# ▶ All expressions together take 5 times as long as the rest, so that they are tried only around
# these words. Each expression contains one of them.
_SIGNALS = _as_written(
    *(
        "ago",
        "views",
        "view",
        "visits",
        "visit",
        "visitors",
        "visitor",
        "hits",
        "hit",
        "pageviews",
    ),
    *("query", "queries", "online", "viewed", "accessed", "generated", "rendered", "served"),
    *("executed", "loaded", "parsed", "processed", "compiled", "took", "execution", "generation"),
    *("rendering", "loading", "load", "processing", "response", "retrieved", "printed"),
    *("exported", "activity", "current", "server", "local", "now", "today"),
)
# ▶ Each expression contains one of these, which are found in a tenth of its time.
_OF_COUNTS = b"view", b"visit", b"hit", b"quer", b"online", b"accessed"
_OF_MOMENTS = (
    *(b"generated", b"rendered", b"served", b"retrieved", b"printed", b"exported"),
    *(b"last ", b" time", b"it is now", b"today is"),
)
_OF_DURATIONS = (
    *(b"generated", b"rendered", b"served", b"executed", b"loaded", b"parsed", b"processed"),
    *(b"compiled", b"took", b"quer", b" time"),
)
_AROUND, _FAR = 10, 60
"""How many words belong to a signal on both sides; how many bytes lead from one to a duration."""


MOST_BLOCKS = 128
"""The most blocks of the text of one page."""

# A tag becomes this white space, so that the words and the texts between the tags can be had.
_BREAK = b"\x0b"
_HALF = 0xFFFF


class PageText(NamedTuple):
    """The digest of the text of a page, the number of its bytes in UTF-8, and its blocks.

    A block is the words between two tags. `blocks` has two bytes for each: a hash, with the low
    byte first. Of more than 128 such texts several are one block. The hashes of the texts decide
    which of them begin one, so an edit moves no block that is far from it.
    """

    digest: bytes
    size: int
    blocks: bytes


def page_text(body: bytes, content_type: str, encoding: str) -> PageText | None:
    """Return the digest of the stable text of a body with this media type and encoding.

    Comments, the title, attributes, and the text of scripts, styles, `noscript` and `template` are
    left out. Each number is replaced that counts views, visits, or queries of a database ("1,234
    views"), that measures how long the page took ("generated in 0.013 seconds") or how long ago
    something was ("5 minutes ago"), and the time at which the page was made ("generated at
    12:30").

    It is None for a body that is not HTML or XHTML, and for one without text: the content of such
    a page comes from its scripts.
    """
    if content_type not in media.MARKUP or not encoding:
        return None
    xml = content_type != media.HTML
    if xml or encoding != "utf-8":
        text = charset.decode(body, encoding)[0]
        if xml:
            text = blank_doctype(text)
        if content_type in media.XML and not media.has_html_root(text):
            return None
        body = text.encode("utf-8", "replace")
    written, around, blocks = _words(body, xml=xml)
    if not written:
        return None
    seen = _folded(written, around)
    return PageText(hashlib.sha1(seen, usedforsecurity=False).digest(), len(seen), blocks)


def outline(source: bytes, *, xml: bool) -> tuple[int, list[tuple[int, int]]]:
    """Return the number of words of the visible text, and where each tag of an h1 is."""
    if xml:
        source = _EMPTY.sub(_blank, source)
    if accelerator.text is not None:
        return accelerator.text.outline(source)
    source = _UNSEEN.sub(_blank, source)
    tags = [tag.span() for tag in _TAG.finditer(source) if _IS_H1(tag[0])]
    return len(_TAG.sub(_BREAK, source).split()), tags


def _blank(match: re.Match[bytes]) -> bytes:
    return b" " * len(match[0])


def _blocks(visible: bytes) -> bytes:
    """Return two bytes for each block of a visible text."""
    texts = filter(None, (b" ".join(part.split()) for part in visible.split(_BREAK)))
    sums = list(map(crc32, map(_without_signals, texts)))
    if len(sums) > MOST_BLOCKS:
        sums = _grouped(sums)
    return Struct(f"<{len(sums)}H").pack(*[each & _HALF for each in sums])


def _without_signals(text: bytes) -> bytes:
    words = text.split()
    return text if _SIGNALS.isdisjoint(words) else _folded(text, list(_spans(words)))


def _grouped(sums: list[int]) -> list[int]:
    """Return one hash for each group of hashes."""
    every, starts = 1, list(range(1, len(sums)))
    while len(starts) >= MOST_BLOCKS and every <= _HALF:
        every *= 2
        # The upper half decides: the lower one is what is kept.
        starts = [place for place in starts if not (sums[place] >> 16) % every]
    # One text that stands at very many places begins groups at the first of them only.
    ends = [0, *starts[: MOST_BLOCKS - 1], len(sums)]
    packed = Struct(f"<{len(sums)}I").pack(*sums)
    return [crc32(packed[4 * begin : 4 * end]) for begin, end in pairwise(ends)]


def _words(source: bytes, *, xml: bool) -> tuple[bytes, list[tuple[int, int]], bytes]:
    """Return the words with one space between them, the parts around signals, and the blocks.

    Each part is its first byte and its end. Those that no expression can change may be left out.
    """
    if xml:
        source = _EMPTY.sub(b" ", source)
    if accelerator.text is not None:
        return accelerator.text.words(source, _SIGNALS, _hints(), _AROUND, _without_signals)
    visible = _NUMERIC.sub(_numeric, _TAG.sub(_BREAK, _UNSEEN.sub(b" ", source)))
    words = visible.split()
    around = [] if _SIGNALS.isdisjoint(words) else list(_spans(words))
    return b" ".join(words), around, _blocks(visible)


def _numeric(match: re.Match[bytes]) -> bytes:
    return entities.in_text(match[0].decode()).encode()


@cache
def _hints() -> bytes:
    assert accelerator.text is not None  # noqa: S101 - it is asked for hints
    return accelerator.text.hints(_SIGNALS)


def _spans(words: list[bytes]) -> Iterator[tuple[int, int]]:
    """Yield the first byte and the end of each part of a text that is around signals."""
    at = done = begin = end = 0

    def span() -> tuple[int, int]:
        nonlocal at, done
        start = at + sum(map(len, words[done:begin])) + begin - done
        stop = start + len(b" ".join(words[begin:end]))
        at, done = stop + 1, end
        return start, stop

    for place in [place for place, word in enumerate(words) if word in _SIGNALS]:
        if place - _AROUND > end:
            if end:
                yield span()
            begin = place - _AROUND
        end = place + _AROUND
    yield span()


def _folded(text: bytes, around: list[tuple[int, int]]) -> bytes:
    """Return the text; its parts around signals are without volatile numbers."""
    if not around:
        return text
    parts: list[bytes] = []
    done = 0
    for begin, end in around:
        parts += text[done:begin], _without_numbers(text[begin:end])
        done = end
    return b"".join([*parts, text[done:]])


def _without_numbers(text: bytes) -> bytes:
    if not (_has_digit(text) or b" ago" in text):
        return text
    has = text.lower().__contains__
    if has(b"ago"):
        text = _AGO.sub(b"ago", text)
    if any(map(has, _OF_COUNTS)):
        text = _COUNTED.sub(rb"\g<1>0", _VIEWS.sub(b"0", text))
    if any(map(has, _OF_DURATIONS)):
        text = _DURATION.sub(_without_duration, text)
    if any(map(has, _OF_MOMENTS)):
        text = _MOMENT.sub(_without_moment, text)
    return text


def _without_duration(match: re.Match[bytes]) -> bytes:
    at = match.start()
    return b"0 s" if _takes_time.search(match.string, max(0, at - _FAR), at) else match[0]


def _without_moment(match: re.Match[bytes]) -> bytes:
    begin, after = match.groups()
    return begin + _DATE.sub(b"0", after) if _is_moment(after) else match[0]
