"""The class of the commands, what they print at once, and the options that a file gives them.

The keys of such a file are the long options without their dashes. The command line comes first.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import click
from click.core import ParameterSource

from trio_crawler import __version__
from trio_crawler.cli.exit import CLOSED_PIPE, FAULT, complain, discard_output
from trio_crawler.cli.options import CrawlOptions
from trio_crawler.cli.parsing import Group, declared, secret_flags
from trio_crawler.cli.shared_options import OF_CHECKS, ReportOptions, Shared

FILE, PROJECT, TABLE = "trio-crawler.toml", "pyproject.toml", "trio-crawler"
OF_FOLDERS = {
    "base_url": "--base-url",
    "clean_urls": "--clean-urls",
    "linked_only": "--linked-only",
}
"""The options that only the check of a folder obeys, by the names of their fields."""

_OF_HOSTS = ("accept", "delay", "header", "per-host")
_SOURCES = {
    ParameterSource.COMMANDLINE: "from the command line",
    ParameterSource.DEFAULT_MAP: "from the file",
}
_KNOWN = {
    flag.removeprefix("--")
    for options in (CrawlOptions, ReportOptions)
    for _, each in declared(options)
    for flags in each.flags
    for flag in flags.split("/")
    if flag.startswith("--")
}
PARAMETERS = (
    click.Option(
        ["--config"],
        metavar="FILE",
        expose_value=False,
        help=f"Read options from FILE, in place of {FILE} or the table [tool.{TABLE}] of "
        f"{PROJECT} in the current folder. Its keys are the long options without dashes.",
    ),
    click.Option(
        ["--show-config"],
        is_flag=True,
        expose_value=False,
        help="Show the options that count, in the form of such a file, and exit.",
    ),
)


def configure(context: click.Context, line: Sequence[str]) -> dict[str, Any]:
    """Let the options of a file be the defaults of a command; return its words as parsed.

    A key that another command has, and this one has not, is left out; so is what only a check, or
    only a folder, obeys, if nothing is checked, or no folder. Raises click.UsageError, with the
    name of the file, for any other key and for a value of the wrong kind.
    """
    command = context.command
    # The file may be named there, and its options are the defaults of what is parsed next.
    given, _, _ = command.make_parser(context).parse_args([*line])
    # A shell that asks what may follow wants no error of a file.
    if context.resilient_parsing or not any(each in PARAMETERS for each in command.params):
        return given
    path, table = _read(given.get("config"))
    context.params["hosts"] = _hosts(context, dict(table).get("hosts", {}), path)
    found = dict(_defaults(command, table, path))
    if command.name in ("trio-crawler", "worker") and not (
        given.get("checks") or found.get("checks")
    ):
        found = {name: value for name, value in found.items() if name not in OF_CHECKS}
    words = given.get("seeds")
    named = words if command.name == "check" and isinstance(words, (list, tuple)) else ()
    if not any(map(os.path.exists, named)):
        found = {name: value for name, value in found.items() if name not in OF_FOLDERS}
    context.default_map, context.meta[TABLE] = found, path
    return given


def _read(named: str | None) -> tuple[str, Mapping[str, Any]]:
    """Return the path of the file and its options; "" and none if there is no such file."""
    for path in (FILE, PROJECT) if named is None else (named,):
        # A project that does not name us has a file that is not ours to judge.
        ours = path != PROJECT or named is not None
        try:
            with open(path, "rb") as file:
                text = file.read()
        except OSError as error:
            if named is None and (isinstance(error, FileNotFoundError) or not ours):
                continue
            raise click.UsageError(f"cannot read {path}: {error.strerror}") from None
        if not ours and TABLE.encode() not in text:
            continue
        import tomllib

        try:
            table = tomllib.loads(text.decode())
        except ValueError as error:
            raise click.UsageError(f"{path} is no TOML: {error}") from None
        if os.path.basename(path) != PROJECT:
            return path, table
        tools = table.get("tool")
        if isinstance(tools, dict) and isinstance(tools.get(TABLE), dict):
            return path, tools[TABLE]
        if named is not None:
            raise click.UsageError(f"{path} has no table [tool.{TABLE}]")
    return "", {}


def _defaults(
    command: click.Command, table: Mapping[str, Any], path: str
) -> Iterator[tuple[str, Any]]:
    """Yield the name of each parameter that a file sets, with its value."""
    flags = {flag: each for each in _options(command) for flag in each.opts}
    negative = {flag: each for each in _options(command) for flag in each.secondary_opts}
    for written, value in table.items():
        key = written.replace("_", "-")
        if key == "hosts":
            continue
        if key not in _KNOWN:
            from difflib import get_close_matches

            meant = get_close_matches(key, sorted(_KNOWN), n=1)
            hint = f": did you mean {meant[0]}?" if meant else ""
            raise click.UsageError(f"{path}: there is no option {written}{hint}")
        option = flags.get(f"--{key}") or negative.get(f"--{key}")
        if option is None or option.name is None:
            continue
        wanted, fits = _kind(option)
        values = value if option.multiple and isinstance(value, list) else [value]
        if not all(fits(each) for each in values):
            raise click.UsageError(f"{path}: {written} must be {wanted}, not {_toml(value)}")
        if option.name == "level":
            # The two options -v and -q share it.
            if value:
                yield option.name, [key]
        elif option.is_flag:
            yield option.name, value if f"--{key}" in flags else not value
        else:
            yield option.name, values if option.multiple else value


def _hosts(context: click.Context, tables: object, path: str) -> dict[str, dict[str, Any]]:
    """Return the options of each host that has a table of its own, by its name."""
    if not isinstance(tables, dict) or not all(isinstance(each, dict) for each in tables.values()):
        raise click.UsageError(f'{path}: hosts must be tables, such as [hosts."example.org"]')
    found: dict[str, dict[str, Any]] = {}
    for name, table in tables.items():
        where = f"{path}, [hosts.{_toml(name)}]"
        for key in table:
            if key.replace("_", "-") not in _OF_HOSTS:
                raise click.UsageError(
                    f"{where}: a host has {', '.join(_OF_HOSTS)}, and not {key}"
                )
        found[name] = dict(_defaults(context.command, table, where))
        for option in _options(context.command):
            if option.name in found[name]:
                try:
                    given = found[name][option.name]
                    found[name][option.name] = option.process_value(context, given)
                except click.BadParameter as error:
                    key = option.opts[-1].removeprefix("--")
                    raise click.UsageError(f"{where}: {key}: {error.message}") from None
    return found


def _kind(option: click.Option) -> tuple[str, Any]:
    """Return what the value of an option must be, in words, and a function that says if it is."""
    if option.is_flag:
        return "true or false", lambda value: isinstance(value, bool)
    if isinstance(option.type, click.types.IntParamType):
        return "a whole number", lambda value: type(value) is int
    numbers = () if option.multiple or option.metavar != "TIME" else (int, float)
    wanted = "a text or a list of texts" if option.multiple else "a text"
    wanted = "a time, such as 30 or '2m'" if numbers else wanted
    return wanted, lambda value: isinstance(value, (str, *numbers)) and not isinstance(value, bool)


def _options(command: click.Command) -> list[click.Option]:
    return [each for each in command.params if isinstance(each, click.Option)]


def shown(context: click.Context) -> str:
    """Return the options that count, as a file of TOML: defaults are comments, secrets `***`."""
    path = context.meta[TABLE]
    lines = [f"# The file is {path}." if path else f"# There is no {FILE} and no [tool.{TABLE}]."]
    secret, done = {*secret_flags(CrawlOptions)}, set[str]()
    for option in _options(context.command):
        name, flag = option.name or "", option.opts[-1]
        if name not in context.params or flag.removeprefix("--") not in _KNOWN or name in done:
            continue
        done.add(name)
        value, source = context.params[name], context.get_parameter_source(name)
        if name == "level":
            flag, value = ("--quiet", True) if value == 0 else ("--verbose", value > 2)
        elif option.secondary_opts and not value:
            flag, value = option.secondary_opts[0], True
        elif name == "checks":
            value = ",".join(value)
        if source in _SOURCES:
            told = '"***"' if flag in secret else _toml(value)
            lines.append(f"{flag.removeprefix('--')} = {told}  # {_SOURCES[source]}")
        elif value not in (None, (), ""):
            lines.append(f"# {flag.removeprefix('--')} = {_toml(value)}")
    for host, own in context.params["hosts"].items():
        lines += ["", f"[hosts.{_toml(host)}]  # from the file"]
        for key, value in own.items():
            name = "header" if key == "headers" else key.replace("_", "-")
            lines.append(f"{name} = {_toml('***' if key == 'headers' else value)}")
    return "\n".join(lines)


def _toml(value: Any) -> str:
    """Return a value as TOML has it: JSON, but for a table or a date of a wrong file."""
    import json

    return json.dumps(value, ensure_ascii=False, default=str)


# As much of a help as says what the option does.
_BEGINNING = r".{20,}?(?=[.;:] |\.?$)"
CONTEXT: dict[str, Any] = {
    "help_option_names": ["--help"],
    "max_content_width": 96,
    # The crawler of the chapter ("500 Lines or Less") spells its options with underscores: both
    # spellings are accepted.
    "token_normalize_func": lambda token: token.replace("_", "-"),
}
SHORT = CONTEXT | {"help_option_names": ["-h", "--help"]}
"""The settings of commands with many options, and of those with few."""


class Command(click.Command):
    """A command whose help shows its options in groups, the `first` ones before the others.

    `-h` shows the options named `often` alone, each in a line or two. A text that the command
    prints at once is printed as a report is.
    """

    def __init__(
        self,
        name: str,
        made: Callable[[], list[click.Parameter]],
        run: Callable[..., int],
        *,
        first: Sequence[Group] = (),
        often: Sequence[str] = (),
        **more: Any,
    ) -> None:
        about: dict[str, Any] = {"callback": run, "help": run.__doc__} | more
        super().__init__(name, context_settings=CONTEXT if often else SHORT, **about)
        # ▶ Those of all commands take 2 ms to make, and one command runs.
        del self.params
        self._made = made
        self._order = sorted(Group, key=lambda group: group not in first)
        self._often = often

    @cached_property
    def params(self) -> list[click.Parameter]:  # type: ignore[override]
        """The parameters, which `made` returns."""
        told = "Show the options that are used most, and exit."
        flag = click.Option(["-h", "often"], is_flag=True, expose_value=False, help=told)
        return [*self._made(), *([flag] if self._often else [])]

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
                    from trio_crawler.page import has_accelerator

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
            formatter.write_dl(
                [(names, re.findall(_BEGINNING, text)[0]) for names, text in records]
            )
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


def parameters_of_store(*more: click.Parameter) -> list[click.Parameter]:
    """Return the parameters that name a shared crawl, and `more`."""
    told = "The name of the crawl: workers with the same STORE and NAME share one."
    return [
        click.Argument(["store"], metavar="STORE"),
        click.Option(["--crawl"], metavar="NAME", required=True, help=told),
        *more,
    ]


def _ask(name: str, store: str, crawl: str, *, as_json: bool = False) -> int:
    # Trio is imported only now.
    from trio_crawler.cli import worker

    return worker.asked(name, Shared(store, crawl), as_json=as_json)


def _merge(directories: tuple[str, ...], output: str) -> int:
    """Join the directories (-o) of the workers of a shared crawl in one, for its report.

    'report' then prints the report of the whole crawl, and writes its files.
    """
    from trio_crawler.cli.worker import merged

    return merged(directories, output)


def _parameters_of_status() -> list[click.Parameter]:
    told = "Print one line of JSON, for programs."
    return parameters_of_store(click.Option(["--json", "as_json"], is_flag=True, help=told))


def _parameters_of_merge() -> list[click.Parameter]:
    told = "Make the joined directory here; there must be no crawl yet."
    return [
        click.Argument(["directories"], metavar="DIR...", nargs=-1, required=True),
        click.Option(["-o", "--output", "output"], metavar="DIR", required=True, help=told),
    ]


COMMANDS = {
    name: Command(
        name,
        _parameters_of_status if name == "status" else parameters_of_store,
        partial(_ask, name),
        help=told,
    )
    for name, told in _ABOUT.items()
} | {"merge": Command("merge", _parameters_of_merge, _merge)}
