"""Text that is safe to show in a terminal, in the layout and the form that people read.

In a URL percent-encoded letters are shown as letters where that misleads no reader. All reports
have colours on a terminal, and a first screen that says it all.
"""

from __future__ import annotations

import json
import re
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import cache
from typing import TypeAlias
from urllib.parse import unquote_to_bytes

from trio_crawler.arguments import check_function, check_kind, public
from trio_crawler.expressions import lazy
from trio_crawler.page.urls import WEB

# In this order: C0; DEL and C1; the soft hyphen; the Arabic letter mark; the Mongolian vowel
# separator; zero-width characters and direction marks; line and paragraph separators with the
# bidi embeddings; word joiner and invisible operators; bidi isolates; the byte order mark;
# interlinear annotation; lone surrogates, which no file can hold; the invisible tags.
_HIDDEN = lazy(
    r"[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f"
    r"\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
    # `##[error]` and `##vso[task...]` are commands to the runners of GitHub and Azure, anywhere in
    # a line of a log.
    r"|(?<=#)#(?=\w{0,99}\[)"
)


@public("trio_crawler.report")
def visible(text: str) -> str:
    r"""Escape characters that control a terminal or mislead a reader: ``\x1b``, ``\u202e``.

    Tabs and line ends are escaped too: the result is one line, and UTF-8 can encode it. So is the
    second ``#`` of what a CI runner takes for a command: ``##[error]`` becomes ``#\x23[error]``.
    Letters of every script and emoji stay. A backslash in `text` stays as it is, so the original
    text cannot always be recovered from the result.

    >>> visible("red: \x1b[31m")
    'red: \\x1b[31m'
    """
    check_kind("text", text, str, "a string")
    # `isprintable` is False for every hidden character: a test checks all of them.
    plain = text.isprintable() and "##" not in text
    return text if plain else _HIDDEN.sub(_escape, text)


def json_visible(encoded: bytes) -> bytes:
    r"""Escape the same characters in JSON text as `\uXXXX`, without a change of its meaning.

    The text is UTF-8 and compact: white space between its tokens would be escaped as well.
    """
    if encoded.isascii() and b"\x7f" not in encoded and b"##" not in encoded:
        return encoded
    # ▶ The title alone is seldom ASCII: the expression would take 70 us for a line of 6 KB.
    text = encoded.decode()
    plain = text.isprintable() and "##" not in text
    return encoded if plain else _HIDDEN.sub(_escape_json, text).encode()


def ascii_json(record: object) -> bytes:
    r"""Return a record as JSON in ASCII, in which `##` is no command for the runner of a CI."""
    encoded = json.dumps(record, separators=(",", ":"))
    # Only in strings is there a number sign.
    return encoded.replace("##", r"#\u0023").encode()


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _escape_json(match: re.Match[str]) -> str:
    # RFC 8259, section 7: a character beyond U+FFFF is written as its two UTF-16 surrogates.
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def count(number: int, noun: str = "") -> str:
    """Render a number with thousands separators, and a noun, plural if needed: `2 pages`."""
    if not noun:
        return f"{number:,}"
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def more(omitted: int, indent: str = "  ", what: str = "more") -> list[str]:
    """Return the line that says how many are left out, and how to see them; none for 0."""
    return [f"{indent}and {count(omitted)} {what}, use -v to list all"] if omitted > 0 else []


def size(octets: int) -> str:
    """Render a number of bytes in binary units: `532 B`, `12.3 KiB`."""
    if octets < 1024:
        return f"{octets} B"
    amount = octets / 1024
    for unit in ("KiB", "MiB", "GiB"):
        # Not 1,024: an amount that would be rounded up to 1024.0 belongs to the next unit.
        if amount < 1023.95:
            return f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:,.1f} TiB"


def duration(seconds: float) -> str:
    """Render seconds as `34 ms`, `1.23 s` or `1,234 s`."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.2f} s" if seconds < 99.995 else f"{seconds:,.0f} s"


_AFTER_SCHEME = len("https://")
# The parts of a path or query to look at: an escape of an ASCII character, or a word, which ends
# at every character that has a meaning in a URL. `normalise` spells escapes in capitals.
_PART = lazy("%[0-7][0-9A-Fa-f]|(?:[A-Za-z0-9]|%[89A-F][0-9A-F])++")

# The letters of the scripts that are shown. A right-to-left script is not among them, since a
# terminal would show the segments of a path in another order; neither are other digits than 0 to
# 9, which may look like them, the phonetic letters, and those that look like "i" or "k".
_LATIN = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u0130\u0134-\u0137\u0139-\u013e\u0141-\u0148\u014a-\u017e"
    "\u01a0\u01a1\u01af\u01b0\u0218-\u021b\u1ea0-\u1ef9"
)
_GREEK = "\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03ce"
_CYRILLIC = "\u0400-\u045f\u0490\u0491"
_GEORGIAN = "\u10d0-\u10f0"
_HANGUL = "\uac00-\ud7a3"
_HAN_AND_KANA = "\u3005\u3041-\u3096\u30a1-\u30fa\u30fc\u3400-\u4dbf\u4e00-\u9fff"
_THAI = "\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46", "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
_DEVANAGARI = (
    "\u0904-\u0939\u093d\u0950\u0960\u0961\u0972-\u097f",
    "\u0900-\u0903\u093a-\u093c\u093e-\u094f\u0955-\u0957\u0962\u0963",
)
# Letters that look like one of ASCII, with or without an accent, like a digit or like a slash or
# a dash: a word of nothing else is not shown. UTS 39 calls it a whole-script confusable.
_LIKE_ASCII = (
    "\u0391\u0392\u0395-\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03b1\u03b3"
    "\u03b5\u03b7\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7\u0386\u0388-\u038a\u038c\u038e"
    "\u0390\u03aa-\u03b0\u03ca-\u03cd"
    "\u0400\u0401\u0405-\u0408\u0410\u0412\u0415\u0417\u0419\u041a\u041c-\u041e\u0420-\u0423\u0425"
    "\u042a\u042c\u0430\u0431\u0433\u0435\u043a\u043e\u043f\u0440\u0441\u0443\u0445\u044a\u044c"
    "\u0450\u0451\u0455-\u0458\u045d\u045e"
    "\u30ce\u30fc\u4e00\u4e28\u4e36\u4e3f"
    "0-9"
)


def readable(url: str) -> str:
    """Return a normalised http(s) URL as people read it: `/%C3%BCn%C3%AF` as `/ünï`.

    A word of its path or query is decoded if all its letters are of one script and it looks like
    no other word. All else stays as it is: the host, escapes of ASCII characters, mixed scripts,
    look-alikes, right-to-left scripts, and what is not UTF-8. So `normalise` returns `url` for the
    result. Any other text is shown as by `visible`.
    """
    start = url.find("/", _AFTER_SCHEME)
    if "%" not in url or start < 0 or not url.isascii() or not url.startswith(WEB):
        return visible(url)
    return visible(url[:start] + _PART.sub(_decoded, url[start:]))


def _decoded(match: re.Match[str]) -> str:
    try:
        word = unquote_to_bytes(match[0]).decode()
    except UnicodeDecodeError:
        return match[0]
    shown = _is_of_one_script()(word) and unicodedata.is_normalized("NFC", word)
    return word if shown else match[0]


@cache
def _is_of_one_script() -> Callable[[str], object]:
    return re.compile(
        "|".join(
            [
                f"[0-9{_LATIN}]+",
                *(
                    f"(?![{_LIKE_ASCII}]+$)[0-9{letters}]+"
                    for letters in (_GREEK, _CYRILLIC, _GEORGIAN, _HANGUL, _HAN_AND_KANA)
                ),
                # Three marks on one letter could reach into other lines.
                *(
                    f"(?:[0-9]|[{letters}][{marks}]{{0,3}})+"
                    for letters, marks in (_THAI, _DEVANAGARI)
                ),
            ]
        )
    ).fullmatch


# The layout of all reports.

_SCREEN = 24
"""The lines of a terminal that has its usual size."""
_WIDTH = 79
_HARD = "\xa0"


class Tone(Enum):
    """The part that a text has in a report; the value is how `click.style` shows it."""

    HEADING = ("bold", True)
    FAULT = ("fg", "red")
    NOTE = ("fg", "yellow")
    GOOD = ("fg", "green")


Paint: TypeAlias = Callable[[str, Tone], str]
"""A function that returns a text for people, with colours or without."""


def painting(color: bool) -> Paint:
    """Return the function that colours a text for a terminal, or leaves it as it is.

    The text must be escaped already (see `visible`): what it has of a page cannot end a colour.
    """
    if not color:
        return lambda text, tone: text
    # Imported only now: hardly any program that makes a report shows it in colours.
    from click import style

    return lambda text, tone: style(text, **dict([tone.value]))


@public("trio_crawler.report")
def attempted(
    section: Callable[[], list[str]], errors: list[Exception] | None = None
) -> list[str]:
    """Return the lines of a `section`, or with `errors` a line that they cannot be made.

    The exception is added to `errors`: a bug in one part must not take the others away. Without
    `errors` it is raised.

    >>> def broken() -> list[str]:
    ...     raise KeyError("a bug")
    >>> errors: list[Exception] = []
    >>> attempted(broken, errors)
    ["A part of the report is missing, by a fault of trio_crawler: KeyError: 'a bug'"]
    >>> errors
    [KeyError('a bug')]
    """
    check_function("section", section, "a function that returns lines")
    check_kind("errors", errors, list | None, "a list or None")
    try:
        return section()
    except Exception as error:
        if errors is None:
            raise
        errors.append(error)
        what = f"{type(error).__name__}: {error}"
        return [f"A part of the report is missing, by a fault of trio_crawler: {visible(what)}"]


def laid_out(
    head: Sequence[str],
    lists: Sequence[Sequence[str]],
    sections: Iterable[Sequence[str]],
    end: Iterable[Sequence[str]],
    paint: Paint,
    *,
    account: str,
    worst: Sequence[str],
    name: str = "",
) -> str:
    """Return a report: its head, its lists, its sections and its end, with empty lines between.

    If it is longer than a screen of 24 lines, the head is such a screen: it has the `account`, the
    `worst` faults, and says what is below: the lists, which have one `name`, and the sections.
    """
    sections = [lines for lines in sections if lines]
    parts = [*lists, *(headed(lines, paint) for lines in sections), *(end for end in end if end)]
    first = [list(head)] if head else []
    if sum(len(lines) + 1 for lines in [*first, *parts]) > _SCREEN:
        first = [[*head, account]]
        if worst:
            first.append([paint("The worst", Tone.HEADING), *(f"  {line}" for line in worst)])
        names = [*([name] if lists else []), *(_name(lines[0]) for lines in sections)]
        if names:
            # A line ends between two names, never in one.
            below = ", ".join(each.replace(" ", _HARD) for each in names)
            rows = textwrap.wrap(
                f"Below: {below}", _WIDTH, subsequent_indent="  ", break_on_hyphens=False
            )
            first.append([row.replace(_HARD, " ") for row in rows])
    return "\n\n".join("\n".join(lines) for lines in [*first, *parts])


def headed(lines: Sequence[str], paint: Paint) -> list[str]:
    """Return a section with its heading painted; one line alone is no heading."""
    return [paint(lines[0], Tone.HEADING), *lines[1:]] if len(lines) > 1 else [*lines]


def _name(heading: str) -> str:
    """Return the name of a section, with its size in brackets if it has one."""
    before, bracket, _ = heading.partition(":")[0].partition(")")
    return before + bracket
