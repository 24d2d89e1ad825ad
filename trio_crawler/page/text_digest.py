"""Digest the text that a reader of a page sees, to compare the page with itself at another time.

Applications write another page at each request: tokens in hidden fields and scripts, addresses of
images with the time, counters of views. Between the tags only the counters are left, and those are
folded where the words around them are the usual ones.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from trio_crawler.page import charset, entities, media

# Comments, and elements whose text is not shown in the page. Each ends at the end of the text at
# the latest, so that the search takes linear time.
_UNSEEN = re.compile(
    rb"<(?:!--.*?(?:-->|\Z)|(script|style|noscript|template|title)\b.*?(?:</\1\b[^>]*+>?|\Z))",
    re.IGNORECASE | re.DOTALL,
)
# In XML such an element has no content.
_EMPTY = re.compile(rb"<(?:script|style|noscript|template|title)\b[^<>]*+(?<=/)>")

# ▶ To search for a word takes a tenth of the time of an expression, so that an expression is tried
# only on a page with one of its words, or only after these.
_NUMBER = rb"[0-9]++(?:[.,' ]?[0-9]++)*+"
_UNIT = rb"(?:s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?|days?|weeks?|months?|years?)\b\.?"
_AGO = re.compile(
    rb"(?<![0-9A-Za-z])(?i:[0-9]++|an?) (?i:%b(?:(?:,| and)? [0-9]++ %b)*+ ago)\b" % (_UNIT, _UNIT)
)
# An age in an element that says that it is one: <span class="age-hours">21 hours</span>.
_AGED = re.compile(
    rb"""(<(?:time\b|[a-z]++ [^<>]{0,200}?class=["']?[^"'<>]{0,100}?\bage\b)[^<>]*+>)"""
    rb" *+(?:[0-9]++|an?) %b *+(?=<)" % _UNIT,
    re.IGNORECASE,
)
_NEARLY = re.compile(rb"\b(?:about|over|almost|less than) ago\b", re.IGNORECASE)
_VIEWED = (b" view", b" page view", b" visit", b" hit", b" quer", b" online")
_VIEWS = re.compile(
    rb"%b(?i:(?= (?:(?:page ?)?views?|visits?|visitors?|hits?|quer(?:y|ies)"
    rb"|(?:users?|guests?|members?) (?:are |is )?online)\b))" % _NUMBER
)
_COUNTERS = (b"views: ", b"visits: ", b"visitors: ", b"hits: ", b" viewed ", b" accessed ")
_COUNTED = re.compile(rb"\A%b" % _NUMBER)
_WORKS = (
    *(b"generated", b"rendered", b" served", b"executed", b"loaded", b"parsed", b"processed"),
    *(b"compiled", b" took ", b" query", b" queries", b"execution time", b"generation time"),
    *(b"rendering time", b"loading time", b"load time", b"processing time", b"response time"),
)
_DURATION = re.compile(
    rb"%b ?(?i:s|secs?|seconds?|ms|msecs?|milliseconds?|us|\xc2\xb5s|\xce\xbcs)\b" % _NUMBER
)
_MOMENTS = (
    *(b"generated", b"rendered", b" served", b"retrieved", b"printed", b"exported"),
    *(b"last viewed", b"last visit", b"last activity", b"current time", b"server time"),
    *(b"local time", b"it is now", b"today is"),
)
_is_moment = re.compile(rb"[0-9]{1,2}:[0-9]{2}|\b20[0-9]{2}\b").search
_DATE = re.compile(
    rb"[0-9]+(?:st|nd|rd|th)?\b"
    rb"|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)(?:[a-z]{2,6})?\b"
    rb"|\b(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b|\b[ap]m\b",
    re.IGNORECASE,
)
_NEAR, _FAR = 16, 60
"""A number belongs to a word if it begins at most so many bytes behind it."""


class PageText(NamedTuple):
    """The digest of the text of a page, and the number of its bytes in UTF-8."""

    digest: bytes
    size: int


def page_text(body: bytes, content_type: str, encoding: str) -> PageText | None:
    """Return the digest of the stable text of a body with this media type and encoding.

    It is None for a body that is not HTML or XHTML, and for one without text: the content of such
    a page comes from its scripts.
    """
    if content_type not in media.MARKUP or not encoding:
        return None
    if content_type in media.XML and not media.has_html_root(charset.decode(body, encoding)[0]):
        return None
    if encoding != "utf-8":
        body = charset.decode(body, encoding)[0].encode("utf-8", "replace")
    seen = stable_text(body, xml=content_type != media.HTML)
    if not seen:
        return None
    return PageText(hashlib.sha1(seen, usedforsecurity=False).digest(), len(seen))


def stable_text(source: bytes, *, xml: bool = False) -> bytes:
    """Return the visible text of HTML in UTF-8, with one space between words.

    Comments, the title, attributes, and the text of scripts, styles, `noscript` and `template` are
    left out. Each number is replaced that counts views, visits, or queries of a database ("1,234
    views"), that measures how long the page took ("generated in 0.013 seconds") or how long ago
    something was ("5 minutes ago", or "5 min." in a `time` or an element of the class "age"), and
    the time at which the page was made ("generated at 12:30").
    """
    if xml:
        source = _EMPTY.sub(b" ", source)
    if b"<time" in source or b"age-" in source or b'"age"' in source:
        source = _AGED.sub(rb"\1", source)
    # ▶ Half the time of an expression for tags, which would know that a value of an attribute may
    # contain ">".
    pieces = _UNSEEN.sub(b" ", source).split(b"<")
    pieces[1:] = [piece[piece.find(b">") + 1 :] for piece in pieces[1:]]
    seen = b" ".join(b" ".join(pieces).split())
    if b"&" in seen:
        seen = entities.in_text(seen.decode("utf-8", "replace")).encode("utf-8", "replace")
    lower = seen.lower()
    if b" ago" in lower:
        seen = _NEARLY.sub(b"ago", _AGO.sub(b"ago", seen))
    if any(word in lower for word in _VIEWED):
        seen = _VIEWS.sub(b"0", seen)
    seen = _fold_after(_COUNTERS, _NEAR, _without_count, seen)
    seen = _fold_after(_WORKS, _FAR, _without_duration, seen)
    return _fold_after(_MOMENTS, _FAR, _without_moment, seen)


def _fold_after(
    words: tuple[bytes, ...], length: int, fold: Callable[[bytes], bytes], text: bytes
) -> bytes:
    """Return the text with the next bytes after each of some words folded."""
    lower = text.lower()
    ends = [end for word in words if word in lower for end in _ends(word, lower)]
    if not ends:
        return text
    pieces: list[bytes] = []
    done = 0
    for end in sorted(ends):
        if end >= done:
            pieces += (text[done:end], fold(text[end : end + length]))
            done = end + length
    return b"".join([*pieces, text[done:]])


def _ends(word: bytes, text: bytes) -> Iterator[int]:
    end = 0
    while (at := text.find(word, end)) >= 0:
        end = at + len(word)
        yield end


def _without_count(text: bytes) -> bytes:
    return _COUNTED.sub(b"0", text)


def _without_duration(text: bytes) -> bytes:
    return _DURATION.sub(b"0 s", text)


def _without_moment(text: bytes) -> bytes:
    return _DATE.sub(b"0", text) if _is_moment(text) else text
