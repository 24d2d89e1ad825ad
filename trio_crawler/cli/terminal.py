"""The terminal: one live line of figures, and other lines above it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import trio
from rich.console import Console
from rich.live import Live
from rich.text import Text

from trio_crawler import Statistics
from trio_crawler.cli.exit import tell
from trio_crawler.cli.signals import SIGNALS
from trio_crawler.frontier import HostStatistics
from trio_crawler.report import progress_line

EVERY, IDLE = 0.125, 1.0
"""Seconds between two drawings of the live line, and while nothing is in flight."""


class Screen:
    """Show a crawl on standard error; use it as a context manager.

    The live line is drawn only on a terminal, and removed at the end of the block.
    """

    def __init__(self, *, live: bool, color: bool) -> None:
        self._color = color
        self._console = Console(
            stderr=True, highlight=False, markup=False, emoji=False, no_color=not color
        )
        # Checked here: Rich also takes a build server that sets FORCE_COLOR for a terminal.
        self._shown = live and sys.stderr.isatty() and not self._console.is_dumb_terminal
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> Screen:
        if self._shown:
            with self._written():
                self._live.start()
                # Rich hides the cursor. Ctrl-Z and kill -9 would leave the shell without one.
                self._console.show_cursor(True)
        return self

    def __exit__(self, *error: object) -> None:
        if self._shown:
            with self._written():
                self._live.stop()

    @property
    def live(self) -> bool:
        """Whether there is a live line."""
        return self._shown

    def say(self, line: str, *, fault: bool = False) -> None:
        """Print one line, above the live line if there is one; that of a fault says so."""
        text = Text()
        if fault:
            text.append("fault ", "red" if self._color else "")
        text.append(line)
        if self._shown:
            with self._written():
                self._console.print(text, soft_wrap=True)
        else:
            tell(text.plain)

    async def draw(
        self,
        statistics: Callable[[], Statistics],
        problems: Callable[[], int],
        hosts: Callable[[], Iterable[HostStatistics]],
    ) -> None:
        """Draw the live line again and again, until cancelled."""
        while self._shown:
            now = statistics()
            figures = progress_line(now, problems(), hosts())
            with self._written():
                self._live.update(Text(figures, no_wrap=True, overflow="ellipsis"), refresh=True)
            await trio.sleep(EVERY if now.in_flight else IDLE)

    @contextmanager
    def _written(self) -> Iterator[None]:
        with SIGNALS.writing(2):
            try:
                yield
            except OSError:
                # The terminal was closed, which also sends SIGHUP: the crawl goes on until that.
                self._shown = False
