"""Tags, comments and raw text as the HTML Standard has them (13.2.5); `start_tags` reads by this.

No tree is built, since a tree makes HTML parsers quadratic: 24 KiB of `<b x=1><p>`, each with
another number, take lexbor 2.4 s and 1 GiB. To recognise such a page takes a pass over its tags,
which costs more than all other work of finding its links. A tree would only help to know where a
tag is not a tag of HTML: in raw text, in `template`, and in SVG or MathML. A short stack of open
elements is enough for that.

Every expression is possessive and every search goes forward, so the time is linear for every page.
"""

from __future__ import annotations

import re

from trio_crawler.expressions import lazy
from trio_crawler.page import entities

# Pieces of expressions, for re.VERBOSE. SPACE is the white space of the standard, for use in a
# character class.
SPACE = "\\t\\n\\f\\r "
NAME_END = rf"(?=[{SPACE}/>])"
NAME = rf"[^{SPACE}/>]*+"
# One attribute exactly as in the standard: "=" may begin a name, and a value without its end does
# not count.
ATTRIBUTE = rf"""
    [^{SPACE}/>] [^{SPACE}/>=]*+
    (?: [{SPACE}]*+ = [{SPACE}]*+
        (?: "[^"]*+" | '[^']*+' | [^{SPACE}>"'][^{SPACE}>]*+ | (?=>) )
    |   (?! [{SPACE}]*+ = )
    )
"""
_ATTRIBUTES = rf"(?: [{SPACE}/]*+ {ATTRIBUTE} )*+"
TAG_END = rf"{_ATTRIBUTES} [{SPACE}/]*+ >"
TAG_END_WITH_SLASH = rf"{_ATTRIBUTES} (?P<slash> [{SPACE}/]*+ ) >"


def either_case(words: str) -> str:
    """Return an expression for words in any case; IGNORECASE would take a third more time."""
    return "|".join("".join(f"[{c}{c.upper()}]" for c in word) for word in words.split())


# The rest of a tag, after the first letter of its name. Nearly every tag has no "=", or only
# attributes of the form name="value". The first two alternatives match these tags up to the same
# end as the exact expression, and faster.
ANY_TAG = rf"""
    (?: [^=>]*+ >
    |   {NAME} (?: [^=>"']*+ (?<![{SPACE}/"]) = "[^"]*+" )*+ [^=>"']*+ >
    |   {NAME} {TAG_END}
    )
"""
RAW = "script style textarea title xmp iframe noembed noframes"
STRAY = r"<*(?=<) | (?![a-zA-Z/!?])"  # a row of "<", or one that begins nothing
MARKUP = r"(?P<markup> [!?] | /(?![a-zA-Z]) )"

# The next tag inside template, SVG or MathML, where each tag is relevant: no tag is skipped. The
# name of an end tag begins with "/".
NEXT_TAG = lazy(
    rf"""
    [^<]*+ (?: < (?: {STRAY} ) [^<]*+ )*+
    <
    (?: (?P<name> /?+ [a-zA-Z] {NAME} ) {TAG_END_WITH_SLASH}
    |   {MARKUP}
    )
    """,
    re.ASCII | re.VERBOSE,
)
# A comment without its "<" and its ">". It ends at "-->" or "--!>"; "<!-->" and "<!--->" are
# complete comments.
COMMENT = r"""
    !-- (?: -?+ (?=>) | [^-]*+ (?: - (?!-!?>) [^-]*+ )*+ --!?+ (?=>) )
"""
# A comment, a doctype or a bogus comment, without its "<".
PASSED = rf"""
    {COMMENT} >
|   (?: ! (?!--) | \? | / (?![a-zA-Z]) ) [^>]*+ >
"""
# The rest of a tag, after its name; TAG_END alone finds the same, and takes longer.
TAG_REST = rf"""{NAME_END} (?: [{SPACE}]++ [a-z-]++ = "[^"]*+" )*+ {TAG_END}"""


def simple_raw(name: str) -> str:
    """Return an expression for an element of raw text, from after its "<" to its end tag.

    A script ends at the first end tag if there is no "<!--" or no "<script" before.
    """
    begin = rf"(?: {either_case(name)} ) {NAME_END}"
    contents = (
        rf"[^<]*+ (?: < (?! {odd} | / {begin} ) [^<]*+ )*+ (?= </ {begin} )"
        for odd in (("!--", begin) if name == "script" else ("(?!)",))
    )
    return rf"{begin} {TAG_END} (?: {' | '.join(contents)} )"


_COMMENT_END = lazy("--!?>")
RAW_END = {name: lazy(f"</(?:{either_case(name)}){NAME_END}") for name in RAW.split()}
_NOSCRIPT_END = lazy(f"</(?:{either_case('noscript')}){NAME_END}")
# The marks in a script that change where it ends:
#
#   text                captured
#   <!--  <!-->         empty_comment: the rest of a comment that is complete
#   -->                 comment_end
#   <script  </script   slash
_IN_SCRIPT = lazy(
    rf"""
    <!-- (?P<empty_comment> -*+ > )?
|   (?P<comment_end> --> )
|   < (?P<slash> /? ) (?:{either_case("script")}) {NAME_END}
    """,
    re.VERBOSE,
)


def attribute_matcher(name: str) -> re.Pattern[str]:
    """Return an expression that matches a tag up to the value of the first attribute of this name.

    It is matched where the name of the tag ends; the match is for `attribute_value`.
    """
    wanted = f"(?:{either_case(name)})"
    # All attributes before it, the name, and the value. No group matches a missing or empty value.
    return lazy(
        rf"""
        (?: [{SPACE}/]*+ (?! {wanted} [{SPACE}/>=] ) {ATTRIBUTE} )*+
        [{SPACE}/]*+ {wanted} (?=[{SPACE}/>=])
        (?: [{SPACE}]*+ = [{SPACE}]*+
            (?: "(?P<double> [^"]*+ )"
            |   '(?P<single> [^']*+ )'
            |   (?P<bare> [^{SPACE}>"'][^{SPACE}>]*+ )
            )?+
        )?+
        """,
        re.VERBOSE,
    )


def attribute_value(match: re.Match[str]) -> str:
    """Return the value, as written, of an attribute that `attribute_matcher` found."""
    return match[match.lastgroup] if match.lastgroup else ""


def decoded_value(find: re.Pattern[str], text: str, at: int) -> str:
    """Return the value of the attribute that an `attribute_matcher` finds; "" if there is none."""
    match = find.match(text, at)
    return "" if match is None else entities.in_attribute(attribute_value(match))


HREF = attribute_matcher("href")
REL = attribute_matcher("rel")
# A tag without these is not rel=nofollow: a reference may stand for any letter.
_MAY_BE_NOFOLLOW = re.compile("[wW&]").search
_NOFOLLOW_TOKEN = lazy(rf"(?<![^{SPACE}])nofollow(?![^{SPACE}])", re.IGNORECASE | re.ASCII)
CONTEXTS = frozenset({"template", "svg", "math"})
WITH_HREF = frozenset({"a", "area", "base"})
# The elements of SVG and MathML that contain HTML (13.2.6, integration points).
_INTEGRATION_POINTS = {
    "svg": frozenset({"foreignobject", "desc", "title"}),
    "math": frozenset({"mi", "mo", "mn", "ms", "mtext", "annotation-xml"}),
}
# A start tag with one of these names ends SVG and MathML, as do </p> and </br> (13.2.6.5).
IS_BREAKOUT = lazy(
    "b|big|blockquote|body|br|center|code|dd|div|dl|dt|em|embed|font|h[1-6]|head|hr|i|img|li"
    "|listing|menu|meta|nobr|ol|p|pre|ruby|s|small|span|strong|strike|sub|sup|table|tt|ul?|var"
)
MAX_TAGS = 500_000
_MAX_DEPTH = 32  # open elements; elements that are nested deeper are ignored


def has_nofollow(rel: str) -> bool:
    """Whether a decoded `rel` contains the token nofollow."""
    return _NOFOLLOW_TOKEN.search(rel) is not None


def is_nofollow(text: str, at: int, end: int) -> bool:
    """Whether a tag is rel=nofollow; its attributes are in `text` from `at` to `end`."""
    return bool(_MAY_BE_NOFOLLOW(text, at, end)) and has_nofollow(decoded_value(REL, text, at))


def template_end(text: str, at: int) -> int:
    """Return where a template ends, or else the end of the text; `at` is after its start tag."""
    elements = OpenElements()
    elements.process("template", empty=False, xml=False)
    while elements.names:
        match = NEXT_TAG.match(text, at)
        if match is None:
            return len(text)
        at = match.end()
        if match.lastgroup == "markup":
            at = markup_end(text, at, cdata=elements.foreign)
            continue
        name, foreign = match["name"].lower(), elements.foreign
        elements.process(name, empty=match["slash"].endswith("/"), xml=False)
        if name in RAW_END and not foreign:
            at = raw_text_end(name, text, at)
        elif name == "plaintext" and not foreign:
            return len(text)
    return at


class OpenElements:
    """The stack of open elements in which a tag may have another meaning than in HTML.

    `foreign` is whether the current element is SVG or MathML, `in_template` whether any element is
    a template.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.foreign = False
        self.in_template = False

    def process(self, name: str, *, empty: bool, xml: bool) -> None:
        """Push or pop elements for one tag; the name of an end tag begins with "/"."""
        if self.foreign and name in ("/p", "/br"):
            self._break_out()
        elif name[0] == "/":
            self._pop(name[1:])
        elif self.foreign:
            self._process_foreign(name, empty=empty)
        elif name in CONTEXTS and not (empty and (xml or name != "template")):
            self._push(name)

    def _process_foreign(self, name: str, *, empty: bool) -> None:
        if IS_BREAKOUT.fullmatch(name):
            self._break_out()
        elif not empty and (
            name in _INTEGRATION_POINTS or name in _INTEGRATION_POINTS[self.names[-1]]
        ):
            self._push(name)

    def _break_out(self) -> None:
        end = len(self.names)
        while end and self.names[end - 1] in _INTEGRATION_POINTS:
            end -= 1
        self._truncate(end)

    def _push(self, name: str) -> None:
        if len(self.names) < _MAX_DEPTH:
            self.names.append(name)
            self._truncate(len(self.names))

    def _pop(self, name: str) -> None:
        if name not in self.names:
            return
        end = len(self.names) - 1
        while self.names[end] not in (name, "template"):
            end -= 1
        # An end tag does not close elements outside of its template.
        if self.names[end] == name:
            self._truncate(end)

    def _truncate(self, length: int) -> None:
        del self.names[length:]
        self.foreign = bool(self.names) and self.names[-1] in _INTEGRATION_POINTS
        self.in_template = "template" in self.names


def markup_end(text: str, at: int, *, cdata: bool) -> int:
    """Return where a comment, a doctype or similar ends, or else the end of the text.

    `at` is the position after the character that follows "<".
    """
    if text.startswith("!--", at - 1):
        if text.startswith((">", "->"), at + 2):
            return text.index(">", at) + 1
        end = _COMMENT_END.search(text, at + 2)
        return len(text) if end is None else end.end()
    close = "]]>" if cdata and text.startswith("![CDATA[", at - 1) else ">"
    found = text.find(close, at)
    return len(text) if found < 0 else found + len(close)


def raw_text_end(name: str, text: str, at: int) -> int:
    """Return where the end tag of a raw text element or `noscript` begins, or the text's end."""
    match = (_NOSCRIPT_END if name == "noscript" else RAW_END[name]).search(text, at)
    if match is None:
        return len(text)
    if name == "script" and text.find("<!--", at, match.start()) >= 0:
        return _script_end(text, at)
    return match.start()


def _script_end(text: str, at: int) -> int:
    """Return where the end tag of a script begins if the script contains "<!--".

    After "<!--", a nested script has its own end tag: the script data escaped and double escaped
    states (13.2.5.20 and 27).
    """
    escaped = doubly = False
    for match in _IN_SCRIPT.finditer(text, at):
        if match["empty_comment"] or match["comment_end"]:
            escaped = doubly = False
        elif (slash := match["slash"]) is None:
            escaped = True
        elif slash and not doubly:
            return match.start()
        else:
            doubly = escaped and not slash
    return len(text)
