"""The second command: the report of a crawl directory, without the network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from trio_crawler.cli.grouped import Grouped
from trio_crawler.cli.main import CONTEXT
from trio_crawler.cli.output import EXPORTS, WHY, Command, Option
from trio_crawler.cli.outputs import check_files, exported

_EPILOG = """\
\b
Example:
  python -m trio_crawler report docs --csv docs.csv --changes

The exit status is that of the crawl: 0, 1 or 3; 1 if DIR cannot be read; 2 for wrong usage.
"""


@dataclass(frozen=True, slots=True)
class Retold:
    """Hold what was said on the command line, checked."""

    directory: str
    jsonl: str | None
    csv: str | None
    links: str | None
    sitemap_xml: str | None
    why: bool
    full: bool
    changes: bool


_SHOWN: tuple[Option, ...] = (
    *WHY,
    click.option(
        "--changes", is_flag=True, help="Tell what has changed between the last two walks."
    ),
    click.option("-v", "--verbose", "full", is_flag=True, help="Show the whole lists."),
)


def _declared(command: Command) -> Command:
    for option in reversed((*EXPORTS, *_SHOWN)):
        command = option(command)
    return command


@click.command(
    name="report",
    cls=Grouped,
    headings={"jsonl": "What is written", "why": "What is shown"},
    epilog=_EPILOG,
    context_settings=CONTEXT,
)
@click.argument("directory", metavar="DIR")
@_declared
def retold(**said: Any) -> int:
    """Print the report of the crawl in DIR again, without a network.

    It may be called while the crawl runs.
    """
    options = Retold(**said)
    check_files(exported(options))
    # What reads the directory is imported only now.
    from trio_crawler.cli.report import retell

    return retell(options)
