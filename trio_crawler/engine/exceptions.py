"""Noting: which URL a bug happened at."""

from __future__ import annotations

from types import TracebackType

from trio_crawler.model import Job, Outcome


class Noting:
    """Add the URL to whatever bug passes by, without catching it."""

    __slots__ = ("_at",)

    def __init__(self, at: Job | Outcome) -> None:
        self._at = at

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, Exception):
            via = f", linked from {self._at.referrer}" if self._at.referrer else ""
            error.add_note(f"while crawling {self._at.url}{via}")
