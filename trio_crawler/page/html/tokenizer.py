"""The tags of a page, found in one pass by the tokenizer of the HTML Standard (13.2.5).

There is no tree. Building one is what makes HTML parsers quadratic: 24 KiB of `<b x=1><p>`, each
with another number, cost lexbor 2.4 s and 1 GiB, and telling such a page from an honest one
takes a pass over its tags that costs more than what is found here. What links need of a tree is
where HTML ends: raw text, `template`, and SVG or MathML. That is kept on a short stack.

Every expression is possessive and every search goes forward, so the time is linear whatever a
page holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from trio_crawler.page import entities

W = "\\t\\n\\f\\r "
_NAME = rf"[^{W}/>]*+"
# One attribute, exactly: "=" may begin a name, and a value that never ends is no value.
_ATTRIBUTE = (
    rf"[^{W}/>][^{W}/>=]*+"
    rf"""(?:[{W}]*+=[{W}]*+(?:"[^"]*+"|'[^']*+'|[^{W}>"'][^{W}>]*+|(?=>))|(?![{W}]*+=))"""
)
ATTRIBUTES = rf"(?:[{W}/]*+{_ATTRIBUTE})*+"
_REST = rf"{ATTRIBUTES}([{W}/]*+)>"
# Nearly every tag has no "=" at all, or only attributes of the form name="value". These two take
# such tags, faster than the exact expression and never to another end.
_BARE = r"[^=>]*+>"
_EASY = rf"""(?:[^=>"']*+(?<![{W}/"])="[^"]*+")*+[^=>"']*+>"""
_TAG = rf"(?:{_BARE}|{_NAME}{_EASY}|{_NAME}{ATTRIBUTES}[{W}/]*+>)"
# What may stand beside the href of a link, and never is rel=nofollow: that holds a "w", or a
# reference for it.
_BESIDES = rf"""(?:[{W}]++[a-z-]++(?<!href)(?<!rel)="[^"]*+")*+"""
_NO_W = rf"""(?:[^=>"'wW&]*+(?<![{W}/"])="[^"wW&]*+")*+[^=>"'wW&]*+>"""
_EASY_LINK = rf"""[aA]{_BESIDES}[{W}]++href="([^"]*+)"{_BESIDES}{_NO_W}"""


def either_case(words: str) -> str:
    """Spell a choice of words for both cases; IGNORECASE would cost a third more time."""
    return "|".join("".join(f"[{c}{c.upper()}]" for c in word) for word in words.split())


_RAW = "script style textarea title xmp iframe noembed noframes"
_TELLING = either_case(f"a area base template svg math plaintext {_RAW}")
# The first two letters rule out nearly every other name before the list is tried.
_OTHER = (
    rf"(?:[^\W\d_abimnpstxABIMNPSTX]|[bBmM](?![aA])|[aA](?![{W}/>rR])"
    rf"|[inpstxINPSTX](?![cefilmotvCEFILMOTV])|(?!(?:{_TELLING})[{W}/>])[a-zA-Z])"
)
_MARKUP = r"([!?]|/(?![a-zA-Z]))"
_STRAY = r"<*(?=<)|(?![a-zA-Z/!?])"  # what follows a "<" that is text; a row of them at once
# Both expressions stop behind a link (1: its href), behind a tag (2: its name, 3: what follows its
# attributes), or behind the first character of a comment and the like (4).
_NEXT_TELLING = re.compile(
    rf"[^<]*+(?:<(?:/[^>=]*+>|{_OTHER}{_TAG}|/[a-zA-Z]{_TAG}|{_STRAY})[^<]*+)*+"
    rf"<(?:{_EASY_LINK}|([a-zA-Z]{_NAME}){_REST}|{_MARKUP})",
    re.ASCII,
).match
_NEXT_OF_ALL = re.compile(
    rf"[^<]*+(?:<(?:{_STRAY})[^<]*+)*+<(?:(?!)()|(/?+[a-zA-Z]{_NAME}){_REST}|{_MARKUP})",
    re.ASCII,
).match
_LINK, _TAG_END, _OTHER_MARKUP = 1, 3, 4
COMMENT = "!--(?:-?+(?=>)|[^-]*+(?:-(?!-!?>)[^-]*+)*+--!?+(?=>))"  # all but its ">"
_COMMENT_END = re.compile("--!?>")
_RAW_END = {name: re.compile(f"</(?:{either_case(name)})(?=[{W}/>])") for name in _RAW.split()}
_NOSCRIPT_END = re.compile(f"</(?:{either_case('noscript')})(?=[{W}/>])")
_IN_SCRIPT = re.compile(f"<!--(-*+>)?|(-->)|<(/?)(?:{either_case('script')})(?=[{W}/>])")
Find: TypeAlias = Callable[..., re.Match[str] | None]


def attribute(name: str) -> Find:
    """Make an expression that finds an attribute in those of a tag; the first of a name counts.

    It wants a text and where the tag's name ends in it. The value, as written, is what
    `value_of` gives of its match.
    """
    # The value in group 1 to 3; no group for a value that is missing or empty.
    return re.compile(
        rf"(?:[{W}/]*+(?!(?:{either_case(name)})[{W}/>=]){_ATTRIBUTE})*+"
        rf"[{W}/]*+(?:{either_case(name)})(?=[{W}/>=])"
        rf"""(?:[{W}]*+=[{W}]*+(?:"([^"]*+)"|'([^']*+)'|([^{W}>"'][^{W}>]*+))?+)?+"""
    ).match


def value_of(match: re.Match[str]) -> str:
    """Give the value that an expression of `attribute` found."""
    return match[match.lastindex] if match.lastindex else ""


HREF = attribute("href")
REL = attribute("rel")
# No other tag needs to be asked: a reference may stand for any letter.
_MAY_BE_NOFOLLOW = re.compile("[wW&]").search
_HOLDS_NOFOLLOW = re.compile(rf"(?<![^{W}])nofollow(?![^{W}])", re.IGNORECASE | re.ASCII).search
_CONTEXTS = frozenset({"template", "svg", "math"})
_WITH_HREF = frozenset({"a", "area", "base"})
# Where SVG and MathML hold HTML again (13.2.6, the integration points).
_HOLDS_HTML = {
    "svg": frozenset({"foreignobject", "desc", "title"}),
    "math": frozenset({"mi", "mo", "mn", "ms", "mtext", "annotation-xml"}),
}
# A start tag of one of these ends SVG and MathML, as does </p> or </br> (13.2.6.5).
_BREAKS_OUT = re.compile(
    "b|big|blockquote|body|br|center|code|dd|div|dl|dt|em|embed|font|h[1-6]|head|hr|i|img|li"
    "|listing|menu|meta|nobr|ol|p|pre|ruby|s|small|span|strong|strike|sub|sup|table|tt|ul?|var"
).fullmatch
MOST_TAGS = 500_000
_DEEPEST = 32  # contexts; a nesting beyond that is nobody's page


def holds_nofollow(rel: str) -> bool:
    """Tell whether a decoded `rel` has the token nofollow."""
    return _HOLDS_NOFOLLOW(rel) is not None


def nofollow(text: str, at: int, end: int) -> bool:
    """Tell whether a tag is rel=nofollow; its attributes stand in `text` from `at` to `end`."""
    if not _MAY_BE_NOFOLLOW(text, at, end) or (match := REL(text, at)) is None:
        return False
    return holds_nofollow(entities.in_attribute(value_of(match)))


def tags(text: str, *, xml: bool = False) -> Iterator[tuple[str, str, bool, int]]:
    """Find what links, base and title are read from, in document order, outside templates.

    Yields the name `a`, `area`, `base` or `title`, the source of the first `href` attribute
    (tags without one are left out) or of the title's content, whether a link is nofollow, and
    where an `a` begins to have a content, or an `area` to have attributes; entities are not
    decoded. With `xml`, a tag that ends in "/>" has no content, as in XHTML.
    After 500,000 tags that could tell something the name is "": the rest is not read, so that
    no page takes two seconds.
    """
    contexts = _Contexts()
    at = 0
    for _ in range(MOST_TAGS):
        match = (_NEXT_OF_ALL if contexts.open else _NEXT_TELLING)(text, at)
        if match is None:
            return
        at = match.end()
        if match.lastindex == _LINK:
            yield "a", match[_LINK], False, at
        elif match.lastindex == _OTHER_MARKUP:
            at = _behind_markup(text, at, cdata=xml or contexts.foreign)
        else:
            name = match[2].lower()
            empty = match[3].endswith("/")
            foreign = contexts.foreign  # before this tag: the title of a picture is not the page's
            contexts.pass_tag(name, empty=empty, xml=xml)
            if name in _WITH_HREF and not (foreign and name != "a"):
                href = HREF(text, match.end(2))
                if href is not None and not contexts.hidden:
                    start, end = match.end(2), match.start(_TAG_END)
                    place = at if name == "a" else start
                    yield name, value_of(href), nofollow(text, start, end), place
            elif name in _RAW_END and not (foreign or (xml and empty)):
                start, at = at, raw_end(name, text, at)
                if name == "title" and not contexts.hidden:
                    yield name, text[start:at], False, at
            elif name == "plaintext" and not foreign:
                return
    yield "", "", False, at


def behind_template(text: str, at: int) -> int:
    """Find the end of a template whose start tag ends at a place; without one, the text's end."""
    contexts = _Contexts()
    contexts.pass_tag("template", empty=False, xml=False)
    while contexts.open:
        match = _NEXT_OF_ALL(text, at)
        if match is None:
            return len(text)
        at = match.end()
        if match.lastindex == _OTHER_MARKUP:
            at = _behind_markup(text, at, cdata=contexts.foreign)
            continue
        name, foreign = match[2].lower(), contexts.foreign
        contexts.pass_tag(name, empty=match[3].endswith("/"), xml=False)
        if name in _RAW_END and not foreign:
            at = raw_end(name, text, at)
        elif name == "plaintext" and not foreign:
            return len(text)
    return at


class _Contexts:
    """The open elements inside which a tag means something else than in HTML."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.foreign = False
        self.hidden = False

    def pass_tag(self, name: str, *, empty: bool, xml: bool) -> None:
        """Follow the nesting over one tag; the name of an end tag begins with "/"."""
        if self.foreign and name in ("/p", "/br"):
            self._break_out()
        elif name[0] == "/":
            self._close(name[1:])
        elif self.foreign:
            self._pass_foreign(name, empty=empty)
        elif name in _CONTEXTS and not (empty and (xml or name != "template")):
            self._enter(name)

    def _pass_foreign(self, name: str, *, empty: bool) -> None:
        if _BREAKS_OUT(name):
            self._break_out()
        elif not empty and (name in _HOLDS_HTML or name in _HOLDS_HTML[self.open[-1]]):
            self._enter(name)

    def _break_out(self) -> None:
        end = len(self.open)
        while end and self.open[end - 1] in _HOLDS_HTML:
            end -= 1
        self._cut(end)

    def _enter(self, name: str) -> None:
        if len(self.open) < _DEEPEST:
            self.open.append(name)
            self._cut(len(self.open))

    def _close(self, name: str) -> None:
        if name not in self.open:
            return
        end = len(self.open) - 1
        while self.open[end] not in (name, "template"):
            end -= 1
        # An end tag reaches no further than the template it stands in.
        if self.open[end] == name:
            self._cut(end)

    def _cut(self, length: int) -> None:
        del self.open[length:]
        self.foreign = bool(self.open) and self.open[-1] in _HOLDS_HTML
        self.hidden = "template" in self.open


def _behind_markup(text: str, at: int, *, cdata: bool) -> int:
    """Find the end of a comment, a doctype or the like; without one it takes all the rest.

    `at` is behind the character that follows "<".
    """
    if text.startswith("!--", at - 1):
        if text.startswith((">", "->"), at + 2):
            return text.index(">", at) + 1
        end = _COMMENT_END.search(text, at + 2)
        return len(text) if end is None else end.end()
    close = "]]>" if cdata and text.startswith("![CDATA[", at - 1) else ">"
    found = text.find(close, at)
    return len(text) if found < 0 else found + len(close)


def raw_end(name: str, text: str, at: int) -> int:
    """Find the end tag of a raw text element, or of `noscript`; if missing, the text's end."""
    match = (_NOSCRIPT_END if name == "noscript" else _RAW_END[name]).search(text, at)
    if match is None:
        return len(text)
    if name == "script" and text.find("<!--", at, match.start()) >= 0:
        return _script_end(text, at)
    return match.start()


def _script_end(text: str, at: int) -> int:
    """Find the end of a script that holds "<!--": a script inside of that has its own end tag.

    The script data escaped and double escaped states (13.2.5.20 and 27).
    """
    escaped = doubly = False
    for match in _IN_SCRIPT.finditer(text, at):
        if match[1] or match[2]:
            escaped = doubly = False
        elif match[3] is None:
            escaped = True
        elif match[3] and not doubly:
            return match.start()
        else:
            doubly = escaped and not match[3]
    return len(text)
