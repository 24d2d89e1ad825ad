"""Cells: lines of a CSV file that a spreadsheet can open without harm."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from io import StringIO
from typing import TypeAlias

from trio_crawler.report.visible import visible

Cell: TypeAlias = "str | int | float | None"

# What a spreadsheet takes for the beginning of a formula, in the wide forms of East Asia too.
_FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")


def records(lines: Iterable[Iterable[Cell]]) -> bytes:
    r"""Write lines as RFC 4180 has them, in UTF-8, without a byte order mark; None is empty.

    A text that a spreadsheet would calculate gets a single quote before it: it begins with `=`,
    `+`, `-` or `@`. Control characters, line ends among them, are escaped (see `visible`), so
    that each record is one line. JSON Lines have every text as it was.
    """
    text = StringIO()
    # RFC 4180, section 2: CRLF, commas, quotes only where they are needed, and then doubled.
    csv.writer(text).writerows(
        [_safe(cell) if isinstance(cell, str) else cell for cell in line] for line in lines
    )
    return text.getvalue().encode()


def record(line: Iterable[Cell]) -> bytes:
    """Write one line, as `records` does."""
    return records([line])


def _safe(text: str) -> str:
    shown = visible(text)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown
