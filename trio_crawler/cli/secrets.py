"""Secrets: values that need not stand on the command line, which all users of a machine can read.

An option for a secret takes `@FILE`, `@-` or `@env:NAME` instead of the value. No message shows a
text that may be a secret.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import TypeAlias

import click

from trio_crawler.cli.signals import SIGNALS

Login: TypeAlias = tuple[str, str | None]
"""A user and a password; None if the password is to be asked for."""

_WAYS = "@FILE, @- (standard input) or @env:NAME"

READ = f"{__name__}.read"
"""The key in the context of the command that is set if a secret was read from standard input."""

_MAX_BYTES = 64 * 1024
# A name with one of these may be a secret after a stray "@".
_DOUBTFUL = r"[:=\s]"


def lines(word: str, parameter: click.Parameter) -> list[str]:
    """Return the word itself, or the lines of the place that it names after an "@".

    Blank lines are left out. Raises BadParameter if the place cannot be read or is empty.
    """
    if not word.startswith("@"):
        return [word]
    place = word[1:]
    if place == "-" and sys.stdin is not None and sys.stdin.isatty():
        option = parameter.opts[-1]
        return [ask(f"Value of {option}: ", f"{option} @-", use(option))]
    name, text = _read(place)
    found = [each.removesuffix("\r") for each in text.split("\n")]
    found = [each for each in found if each.strip()]
    if not found:
        raise click.BadParameter(f"{name} is empty")
    return found


def line(word: str, parameter: click.Parameter) -> str:
    """Return the word itself, or the only line of the place that it names after an "@"."""
    found = lines(word, parameter)
    if len(found) > 1:
        raise click.BadParameter("it must be one line, and there are several")
    return found[0]


def use(option: str) -> str:
    """Return how an option for a secret does without the terminal."""
    return f"use {option} {_WAYS}"


def ask(prompt: str, named: str, remedy: str) -> str:
    """Ask the terminal for a secret, which is not shown. Raises click.UsageError without one.

    Messages say that `named` asks, and what to do instead.
    """
    # Imported only now: hardly any crawl needs them.
    import warnings
    from getpass import GetPassWarning, getpass

    if sys.stdin is None or not sys.stdin.isatty():
        why = "asks for a password, and standard input is no terminal"
        raise click.UsageError(f"{named} {why}: {remedy}")
    try:
        with warnings.catch_warnings(), SIGNALS.asking():
            # The terminal would show what is typed.
            warnings.simplefilter("error", GetPassWarning)
            return getpass(prompt)
    except (EOFError, GetPassWarning):
        raise click.UsageError(f"no password was typed: {remedy}") from None


def _read(place: str) -> tuple[str, str]:
    """Return the name of a place for messages, and its text."""
    if place.startswith("env:"):
        variable = place.removeprefix("env:")
        name = _name(f"the environment variable {variable}", variable)
        if variable not in os.environ:
            raise click.BadParameter(f"{name} is not set")
        return name, os.environ[variable]
    name = "standard input" if place == "-" else _name(place, place)
    if not place:
        raise click.BadParameter(f"after @ comes the name of a file: write {_WAYS}")
    try:
        if place != "-":
            # A shell expands a "~" only at the beginning of a word.
            with open(os.path.expanduser(place), "rb") as file:
                octets = file.read(_MAX_BYTES + 1)
        elif sys.stdin is None:
            raise click.BadParameter("standard input is closed")
        else:
            click.get_current_context().meta[READ] = True
            octets = sys.stdin.buffer.read(_MAX_BYTES + 1)
    except OSError as error:
        raise click.BadParameter(f"cannot read {name}: {error.strerror}") from None
    if len(octets) > _MAX_BYTES:
        raise click.BadParameter(f"{name} has more than 64 KiB")
    try:
        # Some editors begin a file with a byte order mark.
        return name, octets.decode("utf-8-sig")
    except UnicodeError:
        raise click.BadParameter(f"{name} is not UTF-8 text") from None


def _name(shown: str, word: str) -> str:
    return "what is named after @" if re.search(_DOUBTFUL, word) else shown


_USERINFO = rb"(?is)((?:[a-z]{4,7}:)?[/\\]*)([^/?#\\@]*:[^/?#\\]*)(@.*)"
_START, _END = 45, 46
"""The places of arg_start and arg_end in /proc/self/stat behind the name (proc(5))."""


def hide_arguments(flags: Collection[str]) -> None:
    """Overwrite the values of these options, and users and passwords in URLs, in what `ps` shows.

    That is possible on Linux only, and not at once: until then every user of the machine can read
    them. `@FILE` and its like are never there.
    """
    with suppress(OSError):
        with open("/proc/self/cmdline", "rb") as file:
            shown = file.read()
        hidden = b"\0".join(_hidden(shown.split(b"\0"), {flag.encode() for flag in flags}))
        if hidden == shown:
            return
        with open("/proc/self/stat", "rb") as file:
            numbers = file.read().rpartition(b")")[2].split()
        start, end = int(numbers[_START]), int(numbers[_END])
        # The system may not tell.
        if start and end - start == len(shown) == len(hidden):
            import ctypes

            if ctypes.string_at(start, len(shown)) == shown:
                # The memory that the system reads the arguments from.
                ctypes.memmove(start, hidden, len(hidden))


def _hidden(words: list[bytes], flags: Collection[bytes]) -> Iterator[bytes]:
    """Yield the words, each of the same length as before."""
    follows = False
    for word in words:
        flag, equals, value = word.partition(b"=")
        if follows:
            yield _masked(word)
        elif flag in flags and equals:
            yield flag + equals + _masked(value)
        elif b"@" in word and (found := re.fullmatch(_USERINFO, word)):
            yield found[1] + _masked(found[2]) + found[3]
        else:
            yield word
        follows = not follows and word in flags


def _masked(value: bytes) -> bytes:
    return value if value.startswith(b"@") else b"*" * len(value)
