"""What the package is from outside: its names, its start-up, its floors."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import trio_crawler

PACKAGE = Path(trio_crawler.__file__).parent
FLOORS = ("eager", "reasons", "model", "page", "policy", "net", "store", "frontier", "engine")
FLOORS += ("recall", "crawler")
FLOORS += ("testing", "report", "cli")


def test_every_public_name_can_be_imported_and_is_listed():
    for name in trio_crawler.__all__:
        assert getattr(trio_crawler, name) is not None
        assert name in dir(trio_crawler)
    assert "Crawler" in trio_crawler.__all__


def test_a_name_that_is_not_public_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Spider'"):
        trio_crawler.Spider  # noqa: B018


def test_classes_show_their_public_name():
    assert trio_crawler.Crawler.__module__ == "trio_crawler"


def test_help_needs_neither_trio_nor_httpx():
    code = (
        "import sys\n"
        "from trio_crawler.cli import main\n"
        "sys.argv = ['trio-crawler', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print([name for name in ('trio', 'httpx', 'rich') if name in sys.modules])\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("start", ["trio_crawler.Crawler", "trio_crawler.cli.crawl"])
def test_a_crawl_that_is_not_kept_needs_neither_sqlite_nor_warcio(start):
    module = start.removesuffix(".Crawler")
    code = (
        f"import sys, {module}\n"
        f"{start}\n"
        "print([name for name in ('sqlite3', 'warcio') if name in sys.modules])\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def imports(path: Path) -> set[str]:
    """Name the rooms of this package that a module imports."""
    tree = ast.parse(path.read_text())
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {module.split(".")[1] for module in modules if module.startswith("trio_crawler.")}


@pytest.mark.parametrize("floor", FLOORS)
def test_a_room_uses_only_rooms_below_it(floor):
    allowed = {*FLOORS[: FLOORS.index(floor) + 1], "_version"}
    modules = [*PACKAGE.glob(f"{floor}.py"), *PACKAGE.glob(f"{floor}/**/*.py")]
    assert modules
    for module in modules:
        assert imports(module) <= allowed, module


def test_the_command_uses_only_what_the_package_exports():
    for path in (PACKAGE / "cli").glob("*.py"):
        assert imports(path) <= {"cli", "_version"}


def test_no_module_is_a_crowded_room():
    for path in PACKAGE.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 300, path


def test_only_the_rooms_that_wait_contain_await():
    waiting = {"net", "frontier", "engine", "cli", "crawler.py", "eager.py", "testing.py"}
    for path in PACKAGE.rglob("*.py"):
        if path.relative_to(PACKAGE).parts[0] not in waiting:
            nodes = {type(node) for node in ast.walk(ast.parse(path.read_text()))}
            assert not nodes & {ast.Await, ast.AsyncFor, ast.AsyncWith}, path
