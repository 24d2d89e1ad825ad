"""Checks of arguments; each error names the argument and the values that it accepts."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from types import UnionType
from typing import Any, TypeVar

_T = TypeVar("_T")


def public(module: str) -> Callable[[_T], _T]:
    """Return a decorator: a function or a class says that it is imported from `module`."""

    def named(found: _T) -> _T:
        found.__module__ = module
        return found

    return named


@public("trio_crawler")
class ArgumentError(ValueError):
    """An argument has an invalid value; the message says which values are valid.

    `argument` is the name of the argument. `named(name)` returns the message with another name:
    that of the option or the form field that the value came from, for example.

    >>> try:
    ...     Limits(max_depth=-1)
    ... except ArgumentError as error:
    ...     print(error.argument, "|", error, "|", error.named("--depth"))
    max_depth | max_depth must be 0 or more, not -1 | --depth must be 0 or more, not -1
    """

    def __init__(self, argument: str, rest: str, *, each: bool = False) -> None:
        super().__init__(argument, rest)
        self.argument = argument
        self._rest = rest
        self._each = each

    def __str__(self) -> str:
        return self.named(f"each of {self.argument}" if self._each else self.argument)

    def named(self, name: str) -> str:
        """Return the message with another name of the argument."""
        return name + self._rest


def check_whole(name: str, value: object, *, least: int = 0, most: float = math.inf) -> None:
    """Raise TypeError unless `value` is a whole number, ValueError unless it is in bounds."""
    # A bool is an int to Python, but True as a number of workers is a mistake.
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    if value < least:
        raise ArgumentError(name, f" must be {least} or more, not {value}")
    if value > most:
        raise ArgumentError(name, f" must be {most:,} or less, not {value:,}")


def check_number(
    name: str, value: object, *, least: float = 0, above: bool = False, finite: bool = False
) -> None:
    """Raise TypeError unless `value` is a number, ValueError if it is below `least`.

    With `above` it must be more than `least`; with `finite` it must not be infinite.
    """
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, not {value!r}")
    small = not value > least if above else not value >= least
    if small or (finite and value == math.inf):
        wanted = f"more than {least:g}" if above else f"{least:g} or more"
        finitely = ", and finite" if finite else ""
        raise ArgumentError(name, f" must be {wanted}{finitely}, not {value}")


def check_kind(
    name: str, value: object, kind: type | UnionType | tuple[type, ...], wanted: str
) -> None:
    """Raise TypeError unless `value` is of a kind; `wanted` describes the kind in the message."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {wanted}, not {value!r}")


def check_flag(name: str, value: object) -> None:
    """Raise TypeError unless `value` is True or False."""
    check_kind(name, value, bool, "True or False")


def check_path(name: str, value: object) -> None:
    """Raise TypeError unless `value` is a path as a str or Path."""
    check_kind(name, value, (str, os.PathLike), "a path as a str or Path")


def check_callable(name: str, value: object, wanted: str) -> None:
    """Raise TypeError unless `value` can be called."""
    if not callable(value):
        raise TypeError(f"{name} must be {wanted}, not {value!r}")


def check_methods(name: str, value: object, methods: Iterable[str], wanted: str) -> None:
    """Raise TypeError unless `value` is an object, not a class, that has all these methods."""
    refusal = f"{name} must be {wanted}, not {value!r}"
    if isinstance(value, type):
        raise TypeError(f"{refusal}: pass an instance, not the class")
    for method in methods:
        if not callable(getattr(value, method, None)):
            raise TypeError(f"{refusal}: it has no {method}()")


def check_json(name: str, value: object) -> None:
    """Raise TypeError or ValueError unless `value` is a mapping that JSON can represent."""
    import json

    check_kind(name, value, Mapping, "a mapping of what JSON can represent")
    try:
        json.dumps(dict(value))  # type: ignore[call-overload]
    except (TypeError, ValueError) as error:
        wanted = "a mapping of what JSON can represent"
        raise type(error)(f"{name} must be {wanted}, not {value!r}: {error}") from None


def check_function(name: str, value: object, wanted: str) -> None:
    """Raise TypeError unless `value` can be called and is not a class."""
    check_callable(name, value, wanted)
    if isinstance(value, type):
        raise TypeError(f"{name} must be {wanted}, not {value!r}")


def check_iterable(name: str, values: object, wanted: str) -> None:
    """Raise TypeError unless `values` is an iterable other than str and bytes.

    A single str would pass for an iterable of its characters. `wanted` describes the elements.
    """
    if isinstance(values, str | bytes):
        raise TypeError(f"{name} must be several {wanted}: write [{values!r}]")
    try:
        iter(values)  # type: ignore[call-overload]
    except TypeError:
        raise TypeError(f"{name} must be several {wanted}, not {values!r}") from None


def several(name: str, values: Iterable[_T], wanted: str) -> tuple[_T, ...]:
    """Return an iterable as a tuple; `wanted` describes the elements.

    Raises TypeError as `check_iterable` does.
    """
    check_iterable(name, values, wanted)
    return tuple(values)


def several_of(
    name: str, values: Iterable[_T], kind: type[_T], wanted: str = "", each: str = ""
) -> tuple[_T, ...]:
    """Return an iterable of instances of one class as a tuple.

    Raises TypeError as `several` does, and for an element of another class. The messages have the
    name of the class, unless `wanted` describes the elements, and `each` one of them.
    """
    found = several(name, values, wanted or kind.__name__)
    for value in found:
        check_kind(f"each of {name}", value, kind, each or f"a {kind.__name__}")
    return found


def several_strings(name: str, values: Iterable[Any]) -> tuple[str, ...]:
    """Return an iterable of strings as a tuple. Raises TypeError as `several_of` does."""
    return several_of(name, values, str, "strings", "a string")


def checked_pattern(name: str, value: object) -> re.Pattern[str]:
    """Return one of several regular expressions, compiled.

    Raises TypeError or ValueError if it is none, or empty.
    """
    check_kind(f"each of {name}", value, (str, re.Pattern), "a regular expression")
    pattern: str | re.Pattern[str] = value  # type: ignore[assignment]
    if not (pattern.pattern if isinstance(pattern, re.Pattern) else pattern):
        raise ArgumentError(name, ": an empty regular expression is found in every URL")
    try:
        return re.compile(pattern)
    except re.error as error:
        wrong = f": not a regular expression: {pattern!r} ({error})"
        raise ArgumentError(name, wrong) from None
