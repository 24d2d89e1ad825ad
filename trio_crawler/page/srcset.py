"""Parse `srcset` and `imagesrcset` (HTML Standard, 4.8.4.3.10, "parse a srcset attribute")."""

from __future__ import annotations

import re
from collections.abc import Iterator

_SPACE = "\\t\\n\\f\\r "
# One candidate after the white space and commas before it: a URL, which may contain commas but not
# end in one, and its descriptors, in which a comma in parentheses ends nothing:
#
#   text                        url            descriptors
#   a.png 1x,                   a.png          1x
#   a.png,                      a.png
#   data:image/png;x,AA 2x      data:image…    2x
#   a.png (x, y) 2w,            a.png          (x, y) 2w
_CANDIDATE = re.compile(
    rf"""
    [{_SPACE},]*+
    (?P<url> [^{_SPACE}]++ )
    (?: (?<=,) | (?P<descriptors> (?: [^,(]++ | \( [^)]*+ (?: \) | \Z ) )*+ ) (?: , | \Z ) )
    """,
    re.VERBOSE,
).match
# A density that is not negative; a width, with or without a height, neither of them zero.
_DESCRIPTORS = re.compile(
    rf"""
    (?: (?: [0-9]++ (?: \.[0-9]++ )?+ | \.[0-9]++ ) (?: [eE][+-]?+[0-9]++ )?+ x
    |   0*+[1-9][0-9]*+w (?: [{_SPACE}]++ 0*+[1-9][0-9]*+h )?+
    |   0*+[1-9][0-9]*+h [{_SPACE}]++ 0*+[1-9][0-9]*+w
    )?+
    """,
    re.VERBOSE,
).fullmatch


def candidates(value: str) -> Iterator[str]:
    """Yield the URL of each candidate of a srcset, as it is written there.

    A candidate whose descriptors are not those of the standard is left out, as in a browser.
    """
    at = 0
    while (match := _CANDIDATE(value, at)) is not None:
        at = match.end()
        url, descriptors = match.group("url", "descriptors")
        if descriptors is None:
            yield url.rstrip(",")
        elif _DESCRIPTORS(descriptors.strip("\t\n\f\r ")):
            yield url
