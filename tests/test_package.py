"""What the package is from outside: its names, its start-up, its floors."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import typing
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from cases import for_each

import trio_crawler
from trio_crawler import (
    check,
    frontier,
    ledger,
    model,
    net,
    page,
    report,
    shared,
    store,
    testing,
)

PACKAGE = Path(trio_crawler.__file__).parent
FLOORS = (
    "arguments",
    "expressions",
    "in_trio",
    "reason",
    "facts",
    "link",
    "model",
    "page",
    "policy",
    "settlement",
    "net",
    "store",
    "schedule",
    "frontier",
    "shared",
    "engine",
    "crawler",
    "bridge",
)
FLOORS += ("testing", "ledger", "report", "check", "cli")


ROOMS = (trio_crawler, check, frontier, ledger, model, net, page, report, shared, store, testing)
PUBLIC = {
    f"{room.__name__}.{name}": getattr(room, name)
    for room in reversed(ROOMS)
    for name in room.__all__
}


def test_the_names_of_the_package_fit_in_one_head():
    assert len(trio_crawler.__all__) <= 48
    assert dir(trio_crawler) == trio_crawler.__all__


def test_a_name_that_is_not_public_is_an_attribute_error():
    with pytest.raises(AttributeError, match="Spider"):
        trio_crawler.Spider  # noqa: B018


@for_each("name", sorted(PUBLIC))
def test_a_public_class_or_function_says_where_to_import_it_from(name):
    found = PUBLIC[name]
    if inspect.isclass(found) or inspect.isfunction(found):
        assert found is PUBLIC[f"{found.__module__}.{found.__name__}"]
        own = name.startswith("trio_crawler.") and name.count(".") == 1
        assert not own or found.__module__ == "trio_crawler"


def test_a_class_says_so_before_anybody_has_asked_for_its_name():
    code = "import trio_crawler.store.errors as e; print(e.StoreError.__module__)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "trio_crawler\n"


@for_each("name", sorted(PUBLIC))
def test_the_annotations_of_a_public_class_can_be_read(name):
    if inspect.isclass(PUBLIC[name]):
        assert typing.get_type_hints(PUBLIC[name]) is not None


def test_help_needs_neither_trio_nor_httpx():
    code = (
        "import sys\n"
        "from trio_crawler.cli import main\n"
        "sys.argv = ['trio-crawler', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print([name for name in ('trio', 'httpx') if name in sys.modules])\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"


def test_a_crawl_without_a_terminal_does_not_import_the_link_check_nor_the_report_in_html():
    needless = (
        "jinja2",
        "trio_crawler.report.html",
        "trio_crawler.check.link_check",
        "trio_crawler.check.files",
    )
    code = (
        "import sys\n"
        "from trio_crawler.cli import main\n"
        "sys.argv = ['trio-crawler', '--quiet', '--max-tries', '1', 'http://127.0.0.1:1/']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {needless!r} if name in sys.modules])\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("start", ["trio_crawler.Crawler", "trio_crawler.cli.crawl"])
def test_a_crawl_that_is_not_kept_needs_no_sqlite(start):
    module = start.removesuffix(".Crawler")
    code = (
        f"import sys, {module}\n"
        f"{start}\n"
        "print([name for name in ('sqlite3',) if name in sys.modules])\n"
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


def names_imported(path: Path) -> set[str]:
    """Name what a module imports from this package."""
    nodes = ast.walk(ast.parse(path.read_text()))
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    return {
        f"{node.module}.{alias.name}"
        for node in froms
        for alias in node.names
        if str(node.module).startswith("trio_crawler")
    }


def names_in_rooms(path: Path) -> set[str]:
    """Name what a module uses of the rooms that it imports as a whole: `report.Warc`."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    rooms = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in nodes
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if f"{node.module}.{alias.name}" in {room.__name__ for room in ROOMS}
    }
    return {
        f"{rooms[node.value.id]}.{node.attr}"
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if node.value.id in rooms
    }


def test_the_command_uses_only_what_the_package_exports():
    rooms = {room.__name__ for room in ROOMS[1:]}
    for path in (PACKAGE / "cli").rglob("*.py"):
        used = {name for name in names_imported(path) if not name.startswith("trio_crawler.cli.")}
        assert (used - rooms) | names_in_rooms(path) <= set(PUBLIC), path
        whole = [
            node for node in ast.walk(ast.parse(path.read_text())) if type(node) is ast.Import
        ]
        names = [alias.name for node in whole for alias in node.names]
        assert not any(name.startswith("trio_crawler") for name in names), path


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def at_import(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield the imports that run when a module is imported, and those for type checkers only."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from at_import(child)


def import_graph() -> dict[str, set[str]]:
    """Return which modules each module imports, all names of this package."""
    paths = {module_name(path): path for path in PACKAGE.rglob("*.py")}
    graph: dict[str, set[str]] = {name: set() for name in paths}
    for name, path in paths.items():
        for node in at_import(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found = {alias.name for alias in node.names}
            else:
                found = {f"{node.module}.{alias.name}" for alias in node.names}
                found = {each if each in paths else str(node.module) for each in found}
            graph[name] |= found & set(paths)
    return graph


def test_no_module_imports_itself_by_way_of_others():
    graph = import_graph()
    assert sum(map(len, graph.values())) > len(graph)
    # CycleError names the modules of a circle.
    order = list(TopologicalSorter(graph).static_order())
    assert sorted(order) == sorted(graph)


def test_no_module_is_a_crowded_room():
    for path in PACKAGE.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 500, path


def test_only_the_rooms_that_wait_contain_await():
    waiting = {"net", "schedule", "frontier", "shared", "engine", "cli"}
    waiting |= {"crawler.py", "bridge.py", "testing.py"}
    for path in PACKAGE.rglob("*.py"):
        if path.relative_to(PACKAGE).parts[0] not in waiting:
            nodes = {type(node) for node in ast.walk(ast.parse(path.read_text()))}
            assert not nodes & {ast.Await, ast.AsyncFor, ast.AsyncWith}, path
