"""Told: a line on standard error."""

from __future__ import annotations

import sys


def tell(line: str) -> None:
    """Write a line to standard error; on a full disk it is lost, and the crawl is not.

    Raises BrokenPipeError when the reader has left.
    """
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
