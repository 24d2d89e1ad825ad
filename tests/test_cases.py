"""A test of a table tries every case, and names those that fail."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import trio
from cases import for_each

ODD = [(1, True), pytest.param(2, True, id="two"), (4, True), (5, True)]


def check(number: int, odd: bool) -> None:
    assert (number % 2 == 1) is odd


async def check_later(number: int, odd: bool) -> None:
    await trio.lowlevel.checkpoint()
    check(number, odd)


def tried(test: Any) -> str:
    """Return what a test of this table says."""
    one: Any = for_each("number, odd", ODD)(test)
    with pytest.raises(AssertionError) as failed:
        trio.run(one) if inspect.iscoroutinefunction(one) else one()
    return str(failed.value)


@pytest.mark.parametrize("test", [check, check_later])
def test_each_case_that_fails_is_named_and_the_others_are_tried(test: Any) -> None:
    first, *lines = [line for line in tried(test).splitlines() if "case" in line]
    assert first == "2 of 4 cases:"
    assert [line.split(":")[0] for line in lines] == ["case 2 [two]", "case 3 [4, True]"]


def test_an_exception_that_was_expected_and_did_not_come_is_a_failure() -> None:
    def raises(number: int, odd: bool) -> None:
        with pytest.raises(ZeroDivisionError):
            1 / (number - 2)

    assert tried(raises).startswith("3 of 4 cases:")


def test_a_case_may_be_named_by_a_function_or_a_list() -> None:
    for ids in (str.upper, ["A", "B"]):
        with pytest.raises(AssertionError, match=r"case 2 \[B\]"):
            for_each("text", ["a", "b"], ids=ids)(lambda text: int(text, 11))()


def test_what_is_no_argument_of_the_table_is_left_to_pytest() -> None:
    def test(number: int, odd: bool, request: object) -> None:
        """Take a fixture, too."""

    made: Any = for_each("number, odd", ODD)(test)
    assert list(inspect.signature(made).parameters) == ["request"]


@for_each("name", ["a", "b"])
@for_each("text", ["1", "2"])
def test_each_case_has_an_empty_directory(tmp_path: Path, name: str, text: str) -> None:
    assert list(tmp_path.iterdir()) == []
    (tmp_path / name).write_text(text)


def test_a_table_without_a_case_or_with_marks_is_refused() -> None:
    for cases in ([], [pytest.param(1, marks=pytest.mark.slow)]):
        with pytest.raises(ValueError, match="a case"):
            for_each("number", cases)
