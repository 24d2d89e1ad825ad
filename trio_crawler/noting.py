"""Noting: which URL a bug happened at."""

from __future__ import annotations

from types import TracebackType

from trio_crawler.model import Job


class Noting:
    """Add the URL to whatever bug passes by, without catching it."""

    __slots__ = ("_job",)

    def __init__(self, job: Job) -> None:
        self._job = job

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, Exception):
            via = f", linked from {self._job.referrer}" if self._job.referrer else ""
            error.add_note(f"while crawling {self._job.url}{via}")
