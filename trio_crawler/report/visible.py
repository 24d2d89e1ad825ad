"""Text that is safe to show in a terminal, and numbers in the form that people read."""

from __future__ import annotations

import json
import re

from trio_crawler.arguments import check_kind

# In this order: C0; DEL and C1; the soft hyphen; the Arabic letter mark; the Mongolian vowel
# separator; zero-width characters and direction marks; line and paragraph separators with the
# bidi embeddings; word joiner and invisible operators; bidi isolates; the byte order mark;
# interlinear annotation; lone surrogates, which no file can hold; the invisible tags.
_HIDDEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f"
    r"\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
    # `##[error]` and `##vso[task...]` are commands to the runners of GitHub and Azure, anywhere in
    # a line of a log.
    r"|(?<=#)#(?=\w{0,99}\[)"
)


def visible(text: str) -> str:
    r"""Escape characters that control a terminal or mislead a reader: ``\x1b``, ``\u202e``.

    Tabs and line ends are escaped too: the result is one line, and UTF-8 can encode it. So is the
    second ``#`` of what a CI runner takes for a command: ``##[error]`` becomes ``#\x23[error]``.
    Letters of every script and emoji stay. A backslash in `text` stays as it is, so the original
    text cannot always be recovered from the result.
    """
    check_kind("text", text, str, "a string")
    # `isprintable` is False for every hidden character: a test checks all of them.
    plain = text.isprintable() and "##" not in text
    return text if plain else _HIDDEN.sub(_escape, text)


visible.__module__ = "trio_crawler.report"


def json_visible(encoded: bytes) -> bytes:
    r"""Escape the same characters in JSON text as `\uXXXX`, without a change of its meaning.

    The text is UTF-8 and compact: white space between its tokens would be escaped as well.
    """
    if encoded.isascii() and b"\x7f" not in encoded and b"##" not in encoded:
        return encoded
    return _HIDDEN.sub(_escape_json, encoded.decode()).encode()


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
