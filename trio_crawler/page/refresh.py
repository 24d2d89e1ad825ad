"""Parse a refresh: the value of a Refresh header or of `<meta http-equiv=refresh>`.

The rules are the shared declarative refresh steps of the HTML Standard (4.2.5.3).
"""

from __future__ import annotations

import re

_SPACE = "\\t\\n\\f\\r "
# The time, and then the URL behind a separator:
#
#   5   5.7   5; x   5, url=x   5 URL = 'x' y   .5;x
_REFRESH = re.compile(
    rf"""
    [{_SPACE}]*+
    (?: [0-9]++ | (?=\.) ) [0-9.]*+
    (?: (?= [;,{_SPACE}] ) [{_SPACE}]*+ [;,]?+ [{_SPACE}]*+ (?P<rest> .* ) )?+
    \Z
    """,
    re.DOTALL | re.VERBOSE,
).match
_URL = re.compile(rf"[uU][rR][lL][{_SPACE}]*+=[{_SPACE}]*+").match


def target(value: str) -> str | None:
    """Return the URL of a refresh as written; "" if it reloads the page, None if it is invalid.

    The URL is everything up to the end of the value, or in quotes up to the next such quote.
    """
    found = _REFRESH(value)
    if found is None:
        return None
    rest = found["rest"] or ""
    if (prefix := _URL(rest)) is not None:
        rest = rest[prefix.end() :]
    if rest[:1] in ("'", '"'):
        return rest[1:].partition(rest[0])[0]
    return rest
