"""The class of the commands: a text that they print at once is printed as a report is."""

from __future__ import annotations

from typing import Any

import click

from trio_crawler.cli.configuration import blame, configure, shown
from trio_crawler.cli.declaration import GroupedCommand
from trio_crawler.cli.exit import CLOSED_PIPE, FAULT, complain, discard_output

CONTEXT: dict[str, Any] = {
    "help_option_names": ["--help"],
    "max_content_width": 96,
    # The crawler of the chapter ("500 Lines or Less") spells its options with underscores: both
    # spellings are accepted.
    "token_normalize_func": lambda token: token.replace("_", "-"),
}
SHORT = CONTEXT | {"help_option_names": ["-h", "--help"]}
"""The settings of commands with few options, and of those with many."""


class Command(GroupedCommand):
    """A command that prints its help and its version as it prints a report."""

    def parse_args(self, context: click.Context, words: list[str]) -> list[str]:
        """Parse the words; --help, --version and --show-config print their text here."""
        try:
            given = configure(context, words)
            rest = super().parse_args(context, words)
            if given.get("show_config"):
                click.echo(shown(context))
                context.exit()
            return rest
        except click.BadParameter as error:
            raise blame(context, error) from None
        except BrokenPipeError:
            discard_output()
            context.exit(CLOSED_PIPE)
        except OSError as error:
            complain(f"cannot write the text: {error.strerror}")
            discard_output()
            context.exit(FAULT)
