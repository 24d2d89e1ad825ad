"""What the pages show is recorded in files; `pytest tests/docs --update` records it again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
# tests/sites and docs/sites are one package of two directories: neither has an __init__.py.
sys.path += [str(DOCS), str(DOCS / "_ext"), str(DOCS / "reading")]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="record again what the pages show")


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker("docs")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # The pages are built from what the other tests may record.
    items.sort(key=lambda each: each.path.name == "test_built_site.py")


@pytest.fixture
def recorded(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compare a text with the file of docs/ that shows it, or write that file with --update."""
    update = request.config.getoption("--update", default=False)

    def compare(path: Path, text: str) -> None:
        if update and (not path.exists() or path.read_text() != text):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.is_file(), f"{path} is not there: pytest tests/docs --update"
        assert text == path.read_text()

    return compare
