"""The pages name tests as proofs: each test is there, and each promise has one."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from cases import for_each

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs/guide"
FILE = re.compile(r"^- \[`(tests/[\w/.]+)`\]\(\.\./\.\./(tests/[\w/.]+)\): (.+)$", re.MULTILINE)
NAMED = re.compile(r"\[`(tests/[\w/.]+)::(\w+)`\]\(\.\./\.\./(tests/[\w/.]+)\)")


def proofs(text: str) -> list[tuple[str, str, str]]:
    """Return the file, the name and the target of each test that a page names."""
    names = [(path, name, target) for path, target, listed in FILE.findall(text)
             for name in listed.strip("`").split("`, `")]  # fmt: skip
    return [*names, *NAMED.findall(text)]


@cache
def named_in(path: str) -> frozenset[str]:
    """Name the tests of a file without running it."""
    nodes = ast.walk(ast.parse((ROOT / path).read_text()))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    names = {node.name for node in nodes if isinstance(node, functions)}
    return frozenset(name for name in names if name.startswith("test_"))


def sections(page: str, level: int) -> dict[str, str]:
    """Return the text below each heading of this level, by the heading."""
    pieces = re.split(rf"^{'#' * level} (.+)$", (GUIDE / page).read_text(), flags=re.MULTILINE)
    texts = (re.split(r"^#", text, flags=re.MULTILINE)[0] for text in pieces[2::2])
    return dict(zip(pieces[1::2], texts, strict=True))


PROMISES = sections("promises.md", 3)
LAWS = sections("architecture.md", 3)
NAMES = sorted({found for page in GUIDE.rglob("*.md") for found in proofs(page.read_text())})


@for_each("promise", [*PROMISES, *LAWS])
def test_every_promise_and_every_law_names_a_test(promise: str) -> None:
    assert proofs({**PROMISES, **LAWS}[promise])


def test_there_are_seven_laws_and_all_promises_are_read() -> None:
    assert len(LAWS) == 7
    assert len(PROMISES) == (GUIDE / "promises.md").read_text().count("\n### ")


@for_each("path, name, target", NAMES)
def test_every_test_that_is_named_is_there(path: str, name: str, target: str) -> None:
    assert path == target
    assert name in named_in(path)


@pytest.mark.parametrize("page", ["promises.md", "architecture.md"])
def test_no_test_is_named_in_another_form(page: str) -> None:
    text = NAMED.sub("", FILE.sub("", (GUIDE / page).read_text()))
    assert not re.search(r"`test_|::test_", text)
