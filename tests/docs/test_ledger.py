"""The ledger of fairness is what the interpreters did, and is sorted by it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from cases import for_each
from ledger import behaviours
from ledger.behaviours import AHEAD, BEHAVIOURS, Behaviour
from ledger.differences import GENERATED, cells, differences
from ledger.differences import recorded as ledgers

PAGE = GENERATED.parent / "ledger.md"
VERSION = ".".join(map(str, sys.version_info[:2]))
ALL = [*BEHAVIOURS, *AHEAD]


@cache
def tried(question: str) -> tuple[str, ...]:
    (row,) = [each for each in ALL if question in each.question]
    return row.tried()


def test_the_ledger_is_what_this_interpreter_does(
    recorded: Callable[[Path, str], None], request: pytest.FixtureRequest
) -> None:
    path = GENERATED / f"ledger-{VERSION}.md"
    if not path.is_file() and not request.config.getoption("--update"):
        pytest.fail(
            f"nothing is recorded for Python {VERSION}: "
            f"{sys.executable} -m pytest tests/docs/test_ledger.py --update"
        )
    recorded(path, behaviours.ledger())


def test_the_page_shows_the_newest_ledger() -> None:
    assert f"generated/ledger-{[*ledgers()][-1]}.md" in PAGE.read_text()


def test_what_differs_is_taken_from_the_recorded_ledgers(
    recorded: Callable[[Path, str], None],
) -> None:
    said = {version: cells(path.read_text()) for version, path in ledgers().items()}
    recorded(GENERATED / "ledger-differences.md", differences(said))


def test_every_ledger_answers_every_question() -> None:
    for path in ledgers().values():
        assert cells(path.read_text()).keys() == {each.question for each in ALL}


def test_a_row_that_differs_is_found_on_its_side() -> None:
    old = {"a question": ("lost", "kept", "kept", "kept"), "another": ("x",) * 4}
    new = {"a question": ("kept",) * 4, "another": ("x",) * 4}
    lines = differences({"3.11": old, "3.13": new}).splitlines()
    assert lines[2:] == ["| a question | asyncio of the chapter's time | lost | kept |"]


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (("hangs", "ends", "ends", "ends"), behaviours.CAUGHT_UP),
        (("hangs", "hangs", "ends", "ends"), behaviours.REMAINS),
        (("ends", "ends", "hangs", "ends"), behaviours.SAME),
        (("ends", "hangs", "hangs", "ends"), behaviours.REMAINS),
    ],
)
def test_a_behaviour_is_sorted_by_what_was_seen(said: tuple[str, ...], kind: str) -> None:
    assert behaviours.kind(said) == kind


@for_each("row", AHEAD, ids=lambda row: row.question)
def test_trio_is_behind_or_costs_more(row: Behaviour) -> None:
    chapter, *_, trio = tried(row.question)
    assert trio != chapter


def test_a_task_group_hears_of_a_failure_as_a_nursery_does() -> None:
    assert tried("One of two workers raises") == (
        "waits for ever",
        *["ends with ValueError"] * 3,
    )


def test_of_two_sleepers_that_fail_a_nursery_hears_one_and_a_task_group_both() -> None:
    _, modern, anyio, trio = tried("Two tasks wake from a sleep")
    assert modern == anyio
    assert modern.startswith("both errors")
    assert trio.startswith("one error")


def test_the_lost_cancel_is_cured_by_a_timeout_block_on_every_interpreter() -> None:
    _, modern, anyio, trio = tried("A result and a cancellation")
    assert modern == anyio == trio == "cancelled"


def test_a_deadline_on_trio_holds_for_the_cleanup_too() -> None:
    _, modern, anyio, trio = tried("a cleanup that awaits")
    assert (modern, anyio, trio) == ("over after 3.5 s", "over after 0.5 s", "over after 0.5 s")


def test_the_best_way_to_end_a_loop_is_the_one_that_this_queue_has() -> None:
    import asyncio

    _, modern, *_ = tried("endless loop of a worker")
    closes = hasattr(asyncio.Queue, "shutdown")
    assert modern == ("by closing what they read from" if closes else "by being cancelled")


def test_no_program_of_the_ledger_looks_at_the_version() -> None:
    for path in (GENERATED.parent / "ledger").glob("*.py"):
        assert len(re.findall("version_info", path.read_text())) == (
            path.name == "behaviours.py"  # to say on what it was tried
        )
