"""The terminal: one live line of figures, drawn by Rich, and other lines above it."""

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
    from rich.live import Live

EVERY, IDLE = 0.125, 1.0
"""Seconds between two drawings of the live line, and while nothing is in flight."""


class Screen:
    """Show a crawl on standard error; use it as a context manager.

    The live line is drawn only on a terminal, and removed at the end of the block.
    """

    def __init__(self, *, live: bool, color: bool) -> None:
        self._color = color
        # Checked here: Rich also takes a build server that sets FORCE_COLOR for a terminal.
        self._live = _live(color=color) if live and sys.stderr.isatty() else None

    def __enter__(self) -> Screen:
        if self._live:
            with self._written():
                self._live.start()
                # Rich hides the cursor. Ctrl-Z and kill -9 would leave the shell without one.
                self._live.console.show_cursor(True)
        return self

    def __exit__(self, *error: object) -> None:
        if self._live:
            with self._written():
                self._live.stop()

    @property
    def live(self) -> bool:
        """Whether there is a live line."""
        return self._live is not None

    def say(self, line: str, *, fault: bool = False) -> None:
        """Print one line, above the live line if there is one; that of a fault says so."""
        mark = "fault " if fault else ""
        if self._live is None:
            tell(mark + line)
            return
        from rich.text import Text

        text = Text.assemble((mark, "red" if self._color else ""), line)
        with self._written():
            self._live.console.print(text, soft_wrap=True)

    async def draw(
        self,
        statistics: Callable[[], Statistics],
        problems: Callable[[], int],
        hosts: Callable[[], Iterable[HostStatistics]],
    ) -> None:
        """Draw the live line, cut to the width of the terminal, until cancelled."""
        while self._live:
            now = statistics()
            self.show(progress_line(now, problems(), hosts()))
            # At the start nothing is in flight yet.
            await trio.sleep(EVERY if now.in_flight or now.seconds < IDLE else IDLE)

    def show(self, figures: str) -> None:
        """Draw the live line, if there is one."""
        if self._live:
            from rich.text import Text

            with self._written():
                text = Text(figures, no_wrap=True, overflow="ellipsis")
                self._live.update(text, refresh=True)

    @contextmanager
    def _written(self) -> Iterator[None]:
        with SIGNALS.writing(2):
            try:
                yield
            except OSError:
                # The terminal was closed, which also sends SIGHUP: the crawl goes on until that.
                self._live = None


def _live(*, color: bool) -> Live | None:
    """Return the live line; None on a terminal that cannot move its cursor."""
    # Rich is imported only for a terminal: it takes 20 ms.
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True, highlight=False, markup=False, emoji=False, no_color=not color)
    if console.is_dumb_terminal:
        return None
    return Live(
        console=console,
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
