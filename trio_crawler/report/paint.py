"""Paint: the colours of a report on a terminal."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TypeAlias


class Tone(Enum):
    """The part that a text has in a report; the value is how `click.style` shows it."""

    HEADING = ("bold", True)
    FAULT = ("fg", "red")
    NOTE = ("fg", "yellow")
    GOOD = ("fg", "green")


Paint: TypeAlias = Callable[[str, Tone], str]
"""A function that returns a text for people, with colours or without."""


def painting(color: bool) -> Paint:
    """Return the function that colours a text for a terminal, or leaves it as it is.

    The text must be escaped already (see `visible`): what it has of a page cannot end a colour.
    """
    return _colored if color else _plain


def _plain(text: str, tone: Tone) -> str:
    return text


def _colored(text: str, tone: Tone) -> str:
    # Imported only now: hardly any program that makes a report shows it in colours.
    from click import style

    name, value = tone.value
    return style(text, **{name: value})


def headed(lines: list[str], paint: Paint) -> list[str]:
    """Return a section with its heading painted; one line alone is no heading."""
    return [paint(lines[0], Tone.HEADING), *lines[1:]] if len(lines) > 1 else lines
