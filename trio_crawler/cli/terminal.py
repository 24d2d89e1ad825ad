"""The terminal: one live line of figures, and other lines above it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable

import click
import trio

from trio_crawler import Statistics, report
from trio_crawler.cli.exit import tell
from trio_crawler.cli.signals import SIGNALS
from trio_crawler.frontier import HostStatistics

EVERY, IDLE = 0.125, 1.0
"""Seconds between two drawings of the live line, and while nothing is in flight."""

# Begin the line anew, and erase what stands there.
_ANEW = "\r\x1b[2K"


class Screen:
    """Show a crawl on standard error; use it as a context manager.

    There is a `live` line only on a terminal; it is removed at the end of the block.
    """

    def __init__(self, *, live: bool, color: bool) -> None:
        # A dumb terminal cannot erase.
        able = live and sys.stderr.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
        self.live, self._color, self._figures = able, color, ""

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, *error: object) -> None:
        self.show("")

    def say(self, line: str, *, fault: bool = False) -> None:
        """Print one line, above the live line if there is one; that of a fault says so."""
        mark = "fault " if fault else ""
        if not self.live:
            tell(mark + line)
            return
        if fault and self._color:
            mark = click.style(mark, fg="red")
        self._draw(f"{mark}{line}\n")

    async def draw(
        self,
        statistics: Callable[[], Statistics],
        problems: Callable[[], int],
        hosts: Callable[[], Iterable[HostStatistics]],
    ) -> None:
        """Draw the live line, cut to the width of the terminal, until cancelled."""
        while self.live:
            now = statistics()
            self.show(report.progress_line(now, problems(), hosts()))
            # At the start nothing is in flight yet.
            await trio.sleep(EVERY if now.in_flight or now.seconds < IDLE else IDLE)

    def show(self, figures: str) -> None:
        """Draw the live line, if there is one."""
        self._figures = figures
        self._draw()

    def _draw(self, above: str = "") -> None:
        """Write a line above the live line, which is drawn anew."""
        if not self.live:
            return
        with SIGNALS.writing(2):
            try:
                # One that is as long as a line would begin the next one.
                columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
                shown = self._figures[: columns - 1]
                click.echo(_ANEW + above + shown, nl=False, err=True, color=True)
            except OSError:
                # The terminal was closed, which also sends SIGHUP: the crawl goes on until that.
                self.live = False
