"""What the pages show is recorded in files; `pytest tests/docs --update` records it again."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
# tests/sites and docs/sites are one package of two directories: neither has an __init__.py.
# As in docs/run.py: the programs hear Ctrl-C, also if the tests run in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path += [str(DOCS), str(DOCS / "_ext"), str(DOCS / "reading")]


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker("docs")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # The pages are built from what the other tests may record.
    items.sort(key=lambda each: each.path.name == "test_built_site.py")
