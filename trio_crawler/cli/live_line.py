"""The live line of a terminal, drawn by Rich."""

from __future__ import annotations

from rich.console import Console
from rich.live import Live
from rich.text import Text


class LiveLine:
    """Draw one line at the end of standard error again and again, and print others above it."""

    def __init__(self, *, color: bool) -> None:
        self._console = Console(
            stderr=True, highlight=False, markup=False, emoji=False, no_color=not color
        )
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    @property
    def is_possible(self) -> bool:
        """Whether the terminal can move its cursor."""
        return not self._console.is_dumb_terminal

    def start(self) -> None:
        """Begin to draw."""
        self._live.start()
        # Rich hides the cursor. Ctrl-Z and kill -9 would leave the shell without one.
        self._console.show_cursor(True)

    def stop(self) -> None:
        """Remove the line."""
        self._live.stop()

    def draw(self, figures: str) -> None:
        """Draw the line anew, cut to the width of the terminal."""
        self._live.update(Text(figures, no_wrap=True, overflow="ellipsis"), refresh=True)

    def print(self, line: str, *, mark: str, style: str) -> None:
        """Print a line above, after a mark in a style."""
        text = Text()
        text.append(mark, style)
        text.append(line)
        self._console.print(text, soft_wrap=True)
