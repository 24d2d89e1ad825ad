"""Find the URLs of a style sheet: url(), @import and the strings of image-set().

The tokens are those of CSS Syntax Level 3 (4.3): comments, strings, escapes, bad URLs. The URL of
@namespace and of @document names nothing to be fetched, and a URL that is only a fragment is a
place in the document itself (CSS Values Level 4, 4.5.1); they are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from trio_crawler.expressions import lazy
from trio_crawler.page import entities

_LINE_END = "\\n\\r\\f"
_SPACE = f"{_LINE_END}\\t "
# A code point of a name. ▶ All others are named, since a range beyond ASCII takes 4 ms to compile.
_LETTER = r"[^\x01-,./:-@\[-\^`{-\x7f]"
_ESCAPE = rf"""
    \\ (?: [0-9a-fA-F]{{1,6}}+ (?: \r\n | [{_SPACE}] )?+ | [^{_LINE_END}0-9a-fA-F] )
"""
_COMMENT = r"/\* [^*]*+ (?: \* (?!/) [^*]*+ )*+ (?: \*/ | \Z )"


def _string(quote: str) -> str:
    """Return an expression for a string without its end; a line end makes it a bad string."""
    return rf"""
        {quote}
        (?: [^{quote}\\{_LINE_END}]++ | {_ESCAPE} | \\ (?: \r\n | [{_LINE_END}] | \Z ) )*+
    """


_DOUBLE, _SINGLE = _string('"'), _string("'")
_AT_RULES = "import | namespace | (?: -[a-z]++- )?+ document"
_URL = "[uU][rR][lL]"
_SET = "(?i: image-set )"
# A "(" that begins neither url() nor image-set(): another name may end in "url".
_OTHER_PARENTHESIS = rf"""
    (?: (?<! {_URL} ) | (?<= (?: {_LETTER} | [\#@] ) {_URL} ) (?<! <!-- {_URL} ) )
    (?<! {_SET} ) \(
"""


@cache
def _next(stops: str) -> Callable[..., re.Match[str] | None]:
    """Return a function that matches everything up to the next place that matters, and that place.

    `stops` are the characters that matter besides. The places are:

        text          captured
        @import       at
        url(          parenthesis   and the end of image-set(
        u\\72 l(       name          a name with an escape
        {  ;  )  "    stop
    """
    strings = "" if '"' in stops else rf"{_DOUBLE} \"?+ | {_SINGLE} '?+ |"
    other = "" if "(" in stops else rf"{_OTHER_PARENTHESIS} |"
    # Compiled when first used: it takes as long as all other expressions of a crawl.
    return re.compile(
        rf"""
        (?: [^"'/@(\\{re.escape(stops)}]++
        |   {strings} {other}
            {_COMMENT} | /(?!\*)
        |   @ (?! \\ | (?i: {_AT_RULES} ) (?!{_LETTER}) | {_LETTER}++ \\ )
        |   {_ESCAPE} (?: {_LETTER}++ | {_ESCAPE} )*+ (?!\()
        |   \\ (?= [{_LINE_END}] | \Z )
        )*+
        (?: @ (?P<at> (?: {_LETTER}++ | {_ESCAPE} )++ )
        |   (?P<name> {_ESCAPE} (?: {_LETTER}++ | {_ESCAPE} )*+ ) \(
        |   (?P<stop> [{re.escape(stops) or "("}] )
        |   (?P<parenthesis> \( )
        )
        """,
        re.VERBOSE,
    ).match


_IN_PRELUDE, _IN_BODY, _IN_SET = "{;", "", "\"'(){};"
# A name at the end of a text, and the mark before it, if that makes it no name of a function.
_LAST_NAME = f"(?P<mark>[#@]|(?<!\\\\)<!--)?(?P<name>{_LETTER}*)\\Z"
_LONGEST_FUNCTION = len("-webkit-image-set")
# The argument of url(), after the parenthesis:
#
#   text             captured
#   "a.png"          double       not if a line ends in it
#   'a.png'          single
#   a.png )          bare         not if a quote, a parenthesis or a control is in it
_ARGUMENT = lazy(
    rf"""
    [{_SPACE}]*+
    (?: " (?P<double> {_DOUBLE.lstrip()[1:]} ) (?: " | \Z )
    |   ' (?P<single> {_SINGLE.lstrip()[1:]} ) (?: ' | \Z )
    |   (?P<bare>
            (?: [^"'()\\\x01-\x20\x7f]++ | {_ESCAPE} )*+
        ) [{_SPACE}]*+ (?: \) | \Z )
    )
    """,
    re.VERBOSE,
)
_BAD_URL = lazy(r"(?: [^)\\]++ | \\ (?s: . ) | \\ \Z )*+ \)?+", re.VERBOSE)
_BAD_STRING = lazy(rf"[{_SPACE}]*+ (?: {_DOUBLE} | {_SINGLE} )", re.VERBOSE)
_BLANKS = lazy(rf"(?: [{_SPACE}]++ | {_COMMENT} )*+", re.VERBOSE)
_URL_BEGIN = lazy(rf"{_URL}\(")
_UNESCAPE = lazy(
    rf"""
    \\ (?: (?P<number> [0-9a-fA-F]{{1,6}}+ ) (?: \r\n | [{_SPACE}] )?+
       |   \r\n | [{_LINE_END}] | \Z | (?P<literal> . )
       )
    """,
    re.DOTALL | re.VERBOSE,
)

MAX_PLACES = 500_000
"""The most places of a style sheet that are looked at: url(), at-rules, names with escapes."""


class StyleUrl(NamedTuple):
    """A URL of a style sheet: its text without escapes, its source, and where that begins.

    `imported` is whether it is the URL of an @import that counts: one before all rules with a
    block (CSS Cascading 5, 2).
    """

    url: str
    written: str
    at: int
    imported: bool


def style_urls(
    text: str, at: int = 0, end: int | None = None, *, attribute: bool = False
) -> Iterator[StyleUrl]:
    """Yield the URLs of a style sheet, or of a `style` attribute, in order; empty ones are not.

    After 500,000 places the rest of the sheet is not read, so that no sheet takes two seconds.

    ▶ tinycss2 makes an object of each name and each space: 10 MiB of a usual sheet take it 10.6 s
    and 440 MB, and this 0.6 s and 10 MB. The tests compare what both find.
    """
    end = len(text) if end is None else end
    prelude, ignored, depth = not attribute, False, 0
    for _ in range(MAX_PLACES):
        find = _next(_IN_SET if depth else _IN_PRELUDE if prelude or ignored else _IN_BODY)
        if (match := find(text, at, end)) is None:
            return
        at, kind, imported = match.end(), match.lastgroup, False
        if kind == "at":
            rule = _unescape(match["at"]).lower()
            if text.startswith("(", at) and not depth:
                # The name belongs to the rule, even if it ends in "url" behind an escape.
                at += 1
                continue
            ignored |= rule.endswith(("namespace", "document"))
            after = _BLANKS.match(text, at, end)
            if rule != "import" or ignored or not prelude or after is None:
                continue
            at, imported = after.end(), True
            function = "url" if _URL_BEGIN.match(text, at, end) else ""
            at += len("url(") if function else 0
        elif kind == "stop" and (stop := match["stop"]) not in "\"'(":
            depth = depth - 1 if stop == ")" else 0
            ignored &= stop == ")"
            prelude &= stop in ");"
            continue
        elif kind == "stop" and stop != "(":
            at, function = at - 1, ""
        else:
            function = _function(text, match)
            if function != "url":
                depth += depth > 0 or function.endswith("image-set")
                continue
        argument = _ARGUMENT.match(text, at, end)
        if argument is None or not (function or argument["bare"] is None):
            at = _after_bad(text, at, end, is_url=bool(function))
            continue
        at = argument.end()
        written = argument[argument.lastgroup or 0]
        wanted = function or imported or depth == 1
        if function and depth and argument["bare"] is None:
            depth += 1
        url = _unescape(written)
        if wanted and not ignored and url and url[0] != "#":
            yield StyleUrl(url, written, argument.start(argument.lastgroup or 0), imported)


def _function(text: str, match: re.Match[str]) -> str:
    """Return the name, in lower case, of the function that a match ends in; "" if it is none."""
    escaped = match["name"] or ""
    start = match.end() - len("(") - len(escaped)
    before = re.compile(_LAST_NAME).search(
        text, max(0, start - _LONGEST_FUNCTION - len("<!--")), start
    )
    if before is None or before["mark"] in ("#", "@"):
        return ""
    return (before["name"] + _unescape(escaped)).lower()


def _after_bad(text: str, at: int, end: int, *, is_url: bool) -> int:
    """Return where a bad string, or a bad URL without quotes, ends."""
    found = _BAD_STRING.match(text, at, end) or (_BAD_URL.match(text, at, end) if is_url else None)
    return at if found is None else found.end()


def _unescape(source: str) -> str:
    if "\\" in source:
        source = _UNESCAPE.sub(_unescape_one, source)
    return source.replace("\0", "\ufffd")


def _unescape_one(match: re.Match[str]) -> str:
    if (number := match["number"]) is not None:
        return entities.character(number, None)
    return match["literal"] or ""
