"""Encoding: what a locale that lacks a letter gets in its place."""

from __future__ import annotations

import codecs
import re
from urllib.parse import quote

ESCAPED = "trio_crawler.escaped"
"""The name of the error handler of text streams."""

# Letters of a URL are shown behind its host only.
_in_path = re.compile(r"https?://[^/]+/").match


def escaped(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return escapes for letters that cannot be encoded: in a URL, those of the URL itself."""
    if isinstance(error, UnicodeEncodeError):
        start, text = error.start, error.object
        word = text[max(text.rfind(end, 0, start) for end in " \n") + 1 : start]
        if _in_path(word):
            # The others of the run may be beyond the URL.
            return quote(text[start], errors="replace"), start + 1
    return codecs.backslashreplace_errors(error)


codecs.register_error(ESCAPED, escaped)
