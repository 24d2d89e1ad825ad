"""Colour: whether what goes to a stream is shown in colours."""

from __future__ import annotations

import os
from typing import TextIO


def colored(when: str, stream: TextIO) -> bool:
    """Whether to use colours on a stream, by the value of --color.

    "auto" stands for a terminal that is not dumb, unless NO_COLOR is set and not empty
    (https://no-color.org). Variables that force colours, which build servers set, do not count.
    """
    if when != "auto":
        return when == "always"
    refused = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not refused and stream.isatty()
