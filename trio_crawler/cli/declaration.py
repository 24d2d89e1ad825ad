"""Declaration: all that defines one option, and the parameters and the help made from it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any

import click

from trio_crawler.cli.parsing import seconds

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# As much of a help as says what the option does.
_BEGINNING = re.compile(r".{20,}?(?=[.;:] |\.?$)")


class Group(StrEnum):
    """The headings of the help, in their order."""

    CRAWLED = "What to crawl"
    BOUNDS = "How far to go"
    CHECKED = "What to check"
    JUDGED = "What counts as a fault of a check"
    SPEED = "How fast, and how often to retry"
    SENT = "What to send"
    CONNECTIONS = "How to connect"
    DIRECTORY = "Crawl directory"
    FILES = "Files to write"
    SHOWN = "What to show"


class Output(Enum):
    """The output that an option names: none, a file or "-" (standard output), or only a file."""

    NONE = 0
    STREAM = 1
    FILE = 2


@dataclass(frozen=True, slots=True, eq=False)
class Declaration:
    """One option, or an argument if it has no `flags`.

    With `same_crawl` a crawl directory is continued only with the same value. With `recorded` the
    directory stores the value of each run, for its readers. `stored` is the name of the value
    there, if it is not that of the flag. With `of_check` only a check obeys it. `attributes` are
    those of `click.Option`.
    """

    flags: tuple[str, ...]
    group: Group
    same_crawl: bool
    recorded: bool
    stored: str
    output: Output
    of_check: bool
    attributes: Mapping[str, Any]

    @property
    def flag(self) -> str:
        """The option as messages name it."""
        if not self.flags:
            return str(self.attributes["metavar"]).rstrip(".")
        return self.flags[-1].partition("/")[0]

    @property
    def key(self) -> str:
        """The name under which a crawl directory stores the value."""
        return self.stored or self.flag.lstrip("-").replace("-", "_")

    def parameter(self, name: str) -> click.Parameter:
        """Return the parameter of a command that sets the field `name`."""
        if not self.flags:
            return click.Argument([name], **self.attributes)
        return GroupedOption([*self.flags, name], group=self.group, **self.attributes)


class GroupedOption(click.Option):
    """An option with the group that it belongs to."""

    def __init__(self, *args: Any, group: Group, **more: Any) -> None:
        super().__init__(*args, **more)
        self.group = group

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Let the shell complete a path where the option takes one."""
        kind = {"FILE": "file", "DIR": "dir"}.get(self.metavar or "")
        if kind is None:
            return super().shell_complete(ctx, incomplete)
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type=kind)]


class GroupedCommand(click.Command):
    """A command whose help shows its options in groups, the `first` ones before the others.

    `-h` shows the options named `often` alone, each in a line or two.
    """

    def __init__(
        self, *args: Any, first: Sequence[Group] = (), often: Sequence[str] = (), **more: Any
    ) -> None:
        super().__init__(*args, **more)
        self._order = sorted(Group, key=lambda group: group not in first)
        self._often = often
        if often:
            told = "Show the options that are used most, and exit."
            flag = click.Option(["-h"], is_flag=True, is_eager=True, expose_value=False, help=told)
            flag.callback = _show_short_help
            self.params.append(flag)

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


def _show_short_help(context: click.Context, parameter: click.Parameter, given: bool) -> None:
    if given and isinstance(context.command, GroupedCommand):
        click.echo(context.command.short_help_text(context))
        context.exit()


def declaration(
    group: Group,
    *flags: str,
    same_crawl: bool = False,
    recorded: bool = False,
    stored: str = "",
    output: Output = Output.NONE,
    of_check: bool = False,
    **attributes: Any,
) -> Declaration:
    """Declare one option, or an argument if it has no flags."""
    how = (group, same_crawl, recorded, stored, output, of_check)
    return Declaration(flags, *how, attributes)


def option(
    group: Group, *flags: str, secret: bool = False, beside: Declaration | None = None, **more: Any
) -> Any:
    """Declare a field; a `secret` is not in the repr, and the option `beside` sets it too."""
    declared = [declaration(group, *flags, **more), *([beside] if beside else [])]
    return field(repr=not secret, metadata={"declared": tuple(declared)})


def undeclared(default: Any, *, secret: bool = False) -> Any:
    """Declare a field that no option sets by itself; the default is not changed."""
    return field(default_factory=lambda: default, repr=not secret, metadata={"declared": ()})


def switch(group: Group, *flags: str, **more: Any) -> Any:
    """Declare a field that is True if the option is given."""
    return option(group, *flags, is_flag=True, **more)


def stream(group: Group, flag: str, **more: Any) -> Any:
    """Declare a field that names a file, or "-" for standard output."""
    return option(group, flag, metavar="FILE", output=Output.STREAM, **more)


def time(group: Group, flag: str, **more: Any) -> Any:
    """Declare a field with a number of seconds, which the option may give in another unit."""
    return option(group, flag, metavar="TIME", type=str, callback=seconds, **more)


def declared(options: type) -> Iterator[tuple[str, Declaration]]:
    """Yield the name of each field with its declaration; a field may have two."""
    for each in fields(options):
        for declaration in each.metadata["declared"]:
            yield each.name, declaration


def secret_flags(options: type) -> list[str]:
    """Return the options whose values may be secrets."""
    secret = {each.name for each in fields(options) if not each.repr}
    return [each.flag for name, each in declared(options) if name in secret]


def parameters(options: type) -> list[click.Parameter]:
    """Return the parameters of a command that has these options."""
    return [declaration.parameter(name) for name, declaration in declared(options)]


def requested(options: object) -> dict[str, tuple[str, Output]]:
    """Return the paths to write to, each with the kind of its output, by their options."""
    return {
        each.flag: (path, each.output)
        for name, each in declared(type(options))
        if each.output is not Output.NONE and (path := getattr(options, name)) is not None
    }
