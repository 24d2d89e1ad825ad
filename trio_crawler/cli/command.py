"""The class of the commands, with what they print at once; those about a shared crawl."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import click
from click.core import ParameterSource

from trio_crawler import __version__
from trio_crawler.cli.configuration import TABLE, configure, shown
from trio_crawler.cli.declaration import Group
from trio_crawler.cli.exit import CLOSED_PIPE, FAULT, complain, discard_output
from trio_crawler.cli.shared_options import Shared
from trio_crawler.page import has_accelerator

# As much of a help as says what the option does.
_BEGINNING = re.compile(r".{20,}?(?=[.;:] |\.?$)")
CONTEXT: dict[str, Any] = {
    "help_option_names": ["--help"],
    "max_content_width": 96,
    # The crawler of the chapter ("500 Lines or Less") spells its options with underscores: both
    # spellings are accepted.
    "token_normalize_func": lambda token: token.replace("_", "-"),
}
SHORT = CONTEXT | {"help_option_names": ["-h", "--help"]}
"""The settings of commands with few options, and of those with many."""


class Command(click.Command):
    """A command whose help shows its options in groups, the `first` ones before the others.

    `-h` shows the options named `often` alone, each in a line or two. A text that the command
    prints at once is printed as a report is.
    """

    def __init__(
        self, *args: Any, first: Sequence[Group] = (), often: Sequence[str] = (), **more: Any
    ) -> None:
        super().__init__(*args, **more)
        self._order = sorted(Group, key=lambda group: group not in first)
        self._often = often
        if often:
            told = "Show the options that are used most, and exit."
            flag = click.Option(["-h", "often"], is_flag=True, expose_value=False, help=told)
            self.params.append(flag)

    def parse_args(self, context: click.Context, words: list[str]) -> list[str]:
        """Parse the words; -h, --help, --version and --show-config print their text here."""
        try:
            given = configure(context, words)
            if given.get("often") and not context.resilient_parsing:
                click.echo(self.short_help_text(context))
                context.exit()
            if given.get("version") and not context.resilient_parsing:
                click.echo(f"trio_crawler {__version__}")
                if "verbose" in given.get("level", ()):
                    found = "yes" if has_accelerator() else "no"
                    click.echo(f"compiled readers of pages: {found}")
                context.exit()
            rest = super().parse_args(context, words)
            if given.get("show_config"):
                click.echo(shown(context))
                context.exit()
            return rest
        except click.BadParameter as error:
            name = "" if error.param is None else error.param.name or ""
            if context.get_parameter_source(name) is not ParameterSource.DEFAULT_MAP:
                raise
            # The value stands in the file.
            raise click.UsageError(f"{context.meta[TABLE]}: {error.format_message()}") from None
        except BrokenPipeError:
            discard_output()
            context.exit(CLOSED_PIPE)
        except OSError as error:
            complain(f"cannot write the text: {error.strerror}")
            discard_output()
            context.exit(FAULT)

    def groups(self, context: click.Context) -> dict[Group, list[click.Option]]:
        """Return the options by their groups, in the order of the help."""
        found: dict[Group, list[click.Option]] = {group: [] for group in self._order}
        for parameter in self.get_params(context):
            if isinstance(parameter, click.Option):
                # --version and --help are declared by click.
                found[getattr(parameter, "group", Group.SHOWN)].append(parameter)
        return {group: options for group, options in found.items() if options}

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under the headings of their groups, all in the same two columns."""
        groups = {
            group: [record for option in options if (record := option.get_help_record(context))]
            for group, options in self.groups(context).items()
        }
        width = max(len(names) for records in groups.values() for names, _ in records)
        for group, records in groups.items():
            with formatter.section(group):
                formatter.write_dl([(names.ljust(width), text) for names, text in records])

    def short_help_text(self, context: click.Context) -> str:
        """Return the text of -h: the options that people use, and how the help of each begins."""
        formatter = context.make_formatter()
        self.format_usage(context, formatter)
        self.format_help_text(context, formatter)
        flags = {flag: each for each in self.get_params(context) for flag in each.opts}
        records = filter(None, (flags[flag].get_help_record(context) for flag in self._often))
        with formatter.section("Options"):
            formatter.write_dl([(names, _BEGINNING.findall(text)[0]) for names, text in records])
        formatter.write_paragraph()
        count = sum(isinstance(each, click.Option) for each in self.get_params(context))
        formatter.write_text(f"--help shows all {count} options, with examples.")
        return formatter.getvalue().rstrip()


# The commands about a crawl that several processes share, but the worker itself.
_ABOUT = {
    "status": "Show how far a crawl is that workers share, and who they are.",
    "stop": "Let all workers of a shared crawl end, after the requests in flight.",
    "drop": "Remove a shared crawl from its store, when its workers have left.",
}


def parameters_of_store() -> list[click.Parameter]:
    """Return the parameters that name a shared crawl."""
    told = "The name of the crawl: workers with the same STORE and NAME share one."
    return [
        click.Argument(["store"], metavar="STORE"),
        click.Option(["--crawl"], metavar="NAME", required=True, help=told),
    ]


def _asking(name: str) -> Callable[..., int]:
    def run(store: str, crawl: str, *, as_json: bool = False) -> int:
        # Trio is imported only now.
        from trio_crawler.cli import worker

        return worker.asked(name, Shared(store, crawl), as_json=as_json)

    return run


def _merge(directories: tuple[str, ...], output: str) -> int:
    """Join the directories (-o) of the workers of a shared crawl in one, for its report.

    'report' then prints the report of the whole crawl, and writes its files.
    """
    from trio_crawler.cli.worker import merged

    return merged(directories, output)


COMMANDS: dict[str, click.Command] = {
    name: Command(
        name,
        params=parameters_of_store(),
        callback=_asking(name),
        help=told,
        context_settings=SHORT,
    )
    for name, told in _ABOUT.items()
}
COMMANDS["status"].params.append(
    click.Option(["--json", "as_json"], is_flag=True, help="Print one line of JSON, for programs.")
)
COMMANDS["merge"] = Command(
    "merge",
    params=[
        click.Argument(["directories"], metavar="DIR...", nargs=-1, required=True),
        click.Option(
            ["-o", "--output", "output"],
            metavar="DIR",
            required=True,
            help="Make the joined directory here; there must be no crawl yet.",
        ),
    ],
    callback=_merge,
    help=_merge.__doc__,
    context_settings=SHORT,
)
