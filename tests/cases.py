"""Tables of cases as one test: each case is tried, and those that fail are named."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Self, TypeVar

import pytest
from hypothesis import settings

Test = TypeVar("Test", bound=Callable[..., Any])
MOST_SHOWN = 100


def examples(number: int) -> settings:
    """Let a property have so many examples with `--all`; before a merge a part, at least ten."""
    return settings(max_examples=max(10, number * settings().max_examples // 100))


def for_each(
    names: str, cases: Iterable[Any], *, ids: Callable[[Any], str] | Iterable[str] | None = None
) -> Callable[[Test], Test]:
    """Let a test try each case of a table; it fails with the name of each case that fails.

    The arguments are those of `pytest.mark.parametrize`. A case is not an item, so it costs
    nothing to collect. It has a `tmp_path` of its own, but shares all other fixtures, and the time
    of a clock: this is for cases that leave nothing behind, and that together take less than half
    a second.
    """
    arguments = [name.strip() for name in names.split(",")]
    table = list(cases)
    given_ids = list(ids) if isinstance(ids, Iterable) else [None] * len(table)
    known = []
    for case, given in zip(table, given_ids, strict=True):
        values, name = _values(case, len(arguments))
        told = ", ".join(map(ids, values)) if callable(ids) else given or name
        known.append((told or _shown(values), dict(zip(arguments, values, strict=True))))
    if not known:
        raise ValueError("a table without a case proves nothing")

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)
        others = [each for each in signature.parameters.values() if each.name not in arguments]

        @wraps(test)
        def one_by_one(**fixtures: Any) -> None:
            with _Failures(len(known)) as failures:
                for number, (name, values) in enumerate(known, 1):
                    with failures.told(number, name):
                        test(**values, **_own(fixtures, number))

        @wraps(test)
        async def one_after_the_other(**fixtures: Any) -> None:
            with _Failures(len(known)) as failures:
                for number, (name, values) in enumerate(known, 1):
                    with failures.told(number, name):
                        await test(**values, **_own(fixtures, number))

        made: Any = one_after_the_other if inspect.iscoroutinefunction(test) else one_by_one
        # What is left in the signature are the fixtures that pytest gives.
        made.__signature__ = signature.replace(parameters=others)
        return made  # type: ignore[no-any-return]

    return decorate


class _Failures:
    """What failed; `with` it, an error that names all of that."""

    def __init__(self, cases: int) -> None:
        self._cases = cases
        self._found: dict[str, BaseException] = {}

    @contextmanager
    def told(self, number: int, name: str) -> Iterator[None]:
        try:
            yield
        except (Exception, pytest.fail.Exception) as error:
            self._found[f"case {number} [{name}]: {type(error).__name__}: {error}"] = error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        if not self._found or ended[0]:
            return
        lines = list(self._found)
        if len(lines) > MOST_SHOWN:
            lines[MOST_SHOWN:] = [f"and {len(lines) - MOST_SHOWN} more"]
        told = "\n".join((f"{len(self._found)} of {self._cases} cases:", *lines))
        # The first failure is shown with its place and its values.
        raise AssertionError(told) from next(iter(self._found.values()))


def _own(fixtures: dict[str, Any], number: int) -> dict[str, Any]:
    """Return the fixtures of a case: it has a directory of its own."""
    if "tmp_path" not in fixtures:
        return fixtures
    (own := fixtures["tmp_path"] / str(number)).mkdir()
    return {**fixtures, "tmp_path": own}


def _values(case: Any, wanted: int) -> tuple[tuple[Any, ...], str | None]:
    """Return the values of a case, and its name if it has one."""
    # `pytest.param` makes a tuple of values, marks and name.
    if hasattr(case, "marks"):
        if case.marks:
            raise ValueError("a case has no marks of its own")
        return case.values, case.id
    return (case,) if wanted == 1 else tuple(case), None


def _shown(values: tuple[Any, ...]) -> str:
    return ", ".join(getattr(each, "__qualname__", None) or ascii(each)[:80] for each in values)
