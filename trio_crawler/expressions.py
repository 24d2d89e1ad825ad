"""Expressions that are compiled when they are first used.

▶ All two hundred expressions of the package take 30 ms. A crawl of python3-doc needs a fifth of
them, which take 10 ms.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class _Lazy:
    """A pattern whose methods are those of the compiled one, from the first use of each on."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(self.pattern, self._flags), name)
        setattr(self, name, value)
        return value


def lazy(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return what `re.compile` returns, but compile nothing yet."""
    return cast("re.Pattern[AnyStr]", _Lazy(pattern, flags))
