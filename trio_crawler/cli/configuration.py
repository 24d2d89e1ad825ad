"""Configuration: options that a file in the current folder gives, and the text of --show-config.

The keys are the long options without their dashes. The command line comes first.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click
from click.core import ParameterSource

from trio_crawler.cli.declaration import declared, secret_flags
from trio_crawler.cli.options import CrawlOptions
from trio_crawler.cli.shared_options import OF_CHECKS, ReportOptions

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
