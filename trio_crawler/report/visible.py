"""Make hidden characters visible, so that no page can steer a terminal or forge a line."""

from __future__ import annotations

import re

# In this order: C0; DEL and C1; the soft hyphen; the Arabic letter mark; the Mongolian vowel
# separator; zero-width characters and direction marks; line and paragraph separators with the
# bidi embeddings; word joiner and invisible operators; bidi isolates; the byte order mark;
# interlinear annotation; lone surrogates, which no file can hold; the invisible tags.
_HIDDEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f"
    r"\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    r"""Escape what a terminal could obey or a reader be fooled by, as ``\x1b`` or ``\u202e``.

    Tabs and line ends are escaped too: what comes out is one line, and can be encoded as UTF-8.
    Letters of every script and emoji stay. It is made for eyes: a backslash that was there
    before stays as it is, so the way back is not unique.
    """
    # Every hidden character is one that Python calls unprintable: a test goes through them all.
    return text if text.isprintable() else _HIDDEN.sub(_escape, text)


def json_visible(encoded: bytes) -> bytes:
    r"""Write the same characters as `\uXXXX` in one JSON text, which then means what it meant.

    The text is UTF-8 and compact (white space between its tokens would be escaped as well).
    """
    if encoded.isascii() and b"\x7f" not in encoded:
        return encoded
    return _HIDDEN.sub(_escape_json, encoded.decode()).encode()


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _escape_json(match: re.Match[str]) -> str:
    # RFC 8259, section 7: what lies beyond U+FFFF is written as its two UTF-16 surrogates.
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
