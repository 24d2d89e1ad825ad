"""Declaration: all that defines one option, and the parameters and the help made from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any

import click

from trio_crawler.cli.parsing import seconds

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


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
