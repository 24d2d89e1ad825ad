"""Output: the options that say what is kept of a crawl, and what is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import click

NORMAL = 2
"""The level of talk between `-q` (0) and `-v` (3), as the chapter's crawler counts it."""

Command: TypeAlias = Callable[..., Any]
Option: TypeAlias = Callable[[Command], Command]


def _level(context: click.Context, parameter: click.Parameter, talk: Any) -> int:
    # As in the chapter's crawler the order counts: -q falls to 0, each -v adds one.
    level = NORMAL
    for word in talk or ():
        level = 0 if word == "quiet" else min(level + 1, 3)
    return level


DIRECTORY: tuple[Option, ...] = (
    click.option(
        "-o",
        "--output",
        metavar="DIR",
        help="Keep the crawl in DIR: the same command again goes on where it stopped.",
    ),
    click.option(
        "--refresh",
        is_flag=True,
        help="Walk through the site in DIR again, and tell what has changed.",
    ),
)

EXPORTS: tuple[Option, ...] = (
    click.option(
        "--jsonl",
        metavar="FILE",
        help="Write every outcome as a line of JSON to FILE; "
        "'-' is standard output, the report then goes to standard error.",
    ),
    click.option(
        "--csv",
        metavar="FILE",
        help="Write every outcome as a line of CSV, for spreadsheets; '-' as above.",
    ),
    click.option(
        "--links",
        metavar="FILE",
        help="Write every link of every page, with its text, as a line of CSV; '-' as above.",
    ),
    click.option(
        "--sitemap-xml",
        metavar="FILE",
        help="Write a sitemap of the pages that are well; an index, if more than 50,000 are.",
    ),
)

ARCHIVE: tuple[Option, ...] = (
    click.option(
        "--warc",
        metavar="FILE",
        help="Archive what was sent and received as a WARC file, compressed if it ends in .gz.",
    ),
)

WHY: tuple[Option, ...] = (
    click.option("--why", is_flag=True, help="List every URL that was refused, with the reason."),
)

TALK: tuple[Option, ...] = (
    click.option(
        "-v",
        "--verbose",
        "talk",
        flag_value="verbose",
        multiple=True,
        expose_value=False,
        help="Show each URL as it ends, and the whole lists in the report.",
    ),
    click.option(
        "-q",
        "--quiet",
        "talk",
        flag_value="quiet",
        multiple=True,
        callback=_level,
        help="Show no live line.",
    ),
)
