"""The terminal: one live line of figures, and other lines above it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import trio

from trio_crawler import Statistics
from trio_crawler.cli.exit import tell
from trio_crawler.cli.signals import SIGNALS
from trio_crawler.frontier import HostStatistics
from trio_crawler.report import progress_line

if TYPE_CHECKING:
    from trio_crawler.cli.live_line import LiveLine

EVERY, IDLE = 0.125, 1.0
"""Seconds between two drawings of the live line, and while nothing is in flight."""


class Screen:
    """Show a crawl on standard error; use it as a context manager.

    The live line is drawn only on a terminal, and removed at the end of the block.
    """

    def __init__(self, *, live: bool, color: bool) -> None:
        self._color = color
        # Checked here: Rich also takes a build server that sets FORCE_COLOR for a terminal.
        self._line = _live_line(color=color) if live and sys.stderr.isatty() else None

    def __enter__(self) -> Screen:
        if self._line:
            with self._written():
                self._line.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._line:
            with self._written():
                self._line.stop()

    @property
    def live(self) -> bool:
        """Whether there is a live line."""
        return self._line is not None

    def say(self, line: str, *, fault: bool = False) -> None:
        """Print one line, above the live line if there is one; that of a fault says so."""
        mark = "fault " if fault else ""
        if self._line:
            with self._written():
                self._line.print(line, mark=mark, style="red" if self._color else "")
        else:
            tell(mark + line)

    async def draw(
        self,
        statistics: Callable[[], Statistics],
        problems: Callable[[], int],
        hosts: Callable[[], Iterable[HostStatistics]],
    ) -> None:
        """Draw the live line again and again, until cancelled."""
        while self._line:
            now = statistics()
            figures = progress_line(now, problems(), hosts())
            with self._written():
                self._line.draw(figures)
            # At the start nothing is in flight yet.
            await trio.sleep(EVERY if now.in_flight or now.seconds < IDLE else IDLE)

    @contextmanager
    def _written(self) -> Iterator[None]:
        with SIGNALS.writing(2):
            try:
                yield
            except OSError:
                # The terminal was closed, which also sends SIGHUP: the crawl goes on until that.
                self._line = None


def _live_line(*, color: bool) -> LiveLine | None:
    # Rich is imported only for a terminal: it takes 20 ms.
    from trio_crawler.cli.live_line import LiveLine

    line = LiveLine(color=color)
    return line if line.is_possible else None
