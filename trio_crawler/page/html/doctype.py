"""Remove the document type declaration of XHTML (XML 1.0, 2.8).

In XML it may declare entities between "[" and "]", which ends it later than the first ">". In HTML
it ends there (13.2.5.53 to 68 of the HTML Standard), so this is for XML only.
"""

from __future__ import annotations

import re

_PROLOGUE = 65_536  # characters
_QUOTED = """ "[^"]*+" | '[^']*+' """
_COMMENT = r"<!-- (?s: .*? ) -->"
_INSTRUCTION = r"<\? (?s: .*? ) \?>"
# In the internal subset a ">" or "]" may be in a comment, an instruction or a quoted value.
_DOCTYPE = re.compile(
    rf"""
    (?: [\t\n\r ]++ | {_INSTRUCTION} | {_COMMENT} )*+
    (?P<doctype>
        <!DOCTYPE (?=[\t\n\r ])
        (?: [^"'\[>]++ | {_QUOTED} )*+
        (?: \[
            (?: [^\]<]++
            |   {_COMMENT}
            |   {_INSTRUCTION}
            |   <! (?!--) (?: [^"'>]++ | {_QUOTED} )*+ >
            )*+
            \] [\t\n\r ]*+
        )?+
        >
    )
    """,
    re.VERBOSE,
).match

_NOT_BLANK = re.compile("[^\n]").sub


def without_doctype(text: str) -> str:
    """Return a document of XML without its document type declaration.

    The declaration must end within the first 65,536 characters. One that is not well-formed is not
    removed.
    """
    match = _DOCTYPE(text, 0, _PROLOGUE)
    return text if match is None else text[: match.start("doctype")] + text[match.end() :]


def blank_doctype(text: str) -> str:
    """Return a document of XML with spaces for its document type declaration, lines unchanged.

    The rules are those of `without_doctype`.
    """
    match = _DOCTYPE(text, 0, _PROLOGUE)
    if match is None:
        return text
    return text[: match.start("doctype")] + _NOT_BLANK(" ", match["doctype"]) + text[match.end() :]
