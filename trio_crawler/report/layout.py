"""The layout that all reports have: colours on a terminal, and a first screen that says it all."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import TypeAlias

from trio_crawler.arguments import check_function, check_kind, public
from trio_crawler.report.visible import visible

_SCREEN = 24
"""The lines of a terminal that has its usual size."""
_WIDTH = 79
_HARD = "\xa0"


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
    if not color:
        return lambda text, tone: text
    # Imported only now: hardly any program that makes a report shows it in colours.
    from click import style

    return lambda text, tone: style(text, **dict([tone.value]))


@public("trio_crawler.report")
def attempted(
    section: Callable[[], list[str]], errors: list[Exception] | None = None
) -> list[str]:
    """Return the lines of a `section`, or with `errors` a line that they cannot be made.

    The exception is added to `errors`: a bug in one part must not take the others away. Without
    `errors` it is raised.

    >>> def broken() -> list[str]:
    ...     raise KeyError("a bug")
    >>> errors: list[Exception] = []
    >>> attempted(broken, errors)
    ["A part of the report is missing, by a fault of trio_crawler: KeyError: 'a bug'"]
    >>> errors
    [KeyError('a bug')]
    """
    check_function("section", section, "a function that returns lines")
    check_kind("errors", errors, list | None, "a list or None")
    try:
        return section()
    except Exception as error:
        if errors is None:
            raise
        errors.append(error)
        what = f"{type(error).__name__}: {error}"
        return [f"A part of the report is missing, by a fault of trio_crawler: {visible(what)}"]


def laid_out(
    head: Sequence[str],
    lists: Sequence[Sequence[str]],
    sections: Iterable[Sequence[str]],
    end: Iterable[Sequence[str]],
    paint: Paint,
    *,
    account: str,
    worst: Sequence[str],
    name: str = "",
) -> str:
    """Return a report: its head, its lists, its sections and its end, with empty lines between.

    If it is longer than a screen of 24 lines, the head is such a screen: it has the `account`, the
    `worst` faults, and says what is below: the lists, which have one `name`, and the sections.
    """
    sections = [lines for lines in sections if lines]
    parts = [*lists, *(headed(lines, paint) for lines in sections), *(end for end in end if end)]
    first = [list(head)] if head else []
    if sum(len(lines) + 1 for lines in [*first, *parts]) > _SCREEN:
        first = [[*head, account]]
        if worst:
            first.append([paint("The worst", Tone.HEADING), *(f"  {line}" for line in worst)])
        names = [*([name] if lists else []), *(_name(lines[0]) for lines in sections)]
        if names:
            # A line ends between two names, never in one.
            below = ", ".join(each.replace(" ", _HARD) for each in names)
            rows = textwrap.wrap(
                f"Below: {below}", _WIDTH, subsequent_indent="  ", break_on_hyphens=False
            )
            first.append([row.replace(_HARD, " ") for row in rows])
    return "\n\n".join("\n".join(lines) for lines in [*first, *parts])


def headed(lines: Sequence[str], paint: Paint) -> list[str]:
    """Return a section with its heading painted; one line alone is no heading."""
    return [paint(lines[0], Tone.HEADING), *lines[1:]] if len(lines) > 1 else [*lines]


def _name(heading: str) -> str:
    """Return the name of a section, with its size in brackets if it has one."""
    before, bracket, _ = heading.partition(":")[0].partition(")")
    return before + bracket
