"""The screen: one live line of numbers on a terminal, lines of talk above it."""

from __future__ import annotations

import sys
from collections.abc import Callable

import trio
from rich.console import Console
from rich.live import Live
from rich.text import Text

from trio_crawler import Statistics
from trio_crawler.cli.told import tell

EVERY = 0.125
"""Seconds between two drawings of the live line."""


class Screen:
    """Show a crawl on standard error; use it as a context manager.

    The live line is drawn only on a terminal, and is gone when the block is left.
    """

    def __init__(self, *, live: bool) -> None:
        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        # Rich alone would take FORCE_COLOR, as build servers set it, for a terminal.
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
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._shown:
            self._live.stop()

    def say(self, line: str) -> None:
        """Print one line, above the live line if there is one."""
        if self._shown:
            self._console.print(Text(line), soft_wrap=True)
        else:
            tell(line)

    async def draw(self, statistics: Callable[[], Statistics], broken: Callable[[], int]) -> None:
        """Draw the live line again and again, until cancelled."""
        while self._shown:
            line = Text(numbers(statistics(), broken()), no_wrap=True, overflow="ellipsis")
            self._live.update(line, refresh=True)
            await trio.sleep(EVERY)


def numbers(totals: Statistics, broken: int) -> str:
    """Write a crawl's numbers in one line."""
    ended = totals.pages + totals.redirects + totals.failures + totals.skipped
    rate = ended / totals.seconds if totals.seconds else 0.0
    minutes, seconds = divmod(int(totals.seconds), 60)
    return (
        f"{_count(totals.pages, 'page')}  {rate:,.0f}/s  {totals.waiting:,} in queue  "
        f"{totals.in_flight} in flight  {_count(broken, 'error')}  {minutes}:{seconds:02}"
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
