"""Private attributes of httpx, httpcore and h2: in one module, and only of versions tried."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpcore
import pytest
from cases import for_each

import trio_crawler

h2_connection = pytest.importorskip("h2.connection")

from httpcore._async import connection_pool  # noqa: E402
from httpcore._async.http2 import HTTP2ConnectionByteStream  # noqa: E402
from httpx._transports.default import AsyncResponseStream  # noqa: E402

from trio_crawler.net.httpx import private  # noqa: E402

PACKAGE = Path(trio_crawler.__file__).parent
HOME = Path(private.__file__)
# It has the second name up to httpcore 1.0.4.
_STREAMS = ("PoolByteStream", "ConnectionPoolByteStream")
USED = {
    "_httpcore_stream": AsyncResponseStream,
    "_stream": next(
        vars(connection_pool)[name] for name in _STREAMS if hasattr(connection_pool, name)
    ),
    "_stream_id": HTTP2ConnectionByteStream,
    "_connection": HTTP2ConnectionByteStream,
    "_request": HTTP2ConnectionByteStream,
    "_h11_state": httpcore.AsyncHTTP11Connection,
    "_h2_state": httpcore.AsyncHTTP2Connection,
    "_write_outgoing_data": httpcore.AsyncHTTP2Connection,
}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def attributes(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield each private attribute of the code, and the expression that it is one of."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            yield node.attr, ast.unparse(node.value)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("attr"):
            for value in node.args[1:2]:
                if isinstance(value, ast.Constant) and is_private(str(value.value)):
                    yield str(value.value), ast.unparse(node.args[0])


def defined(tree: ast.AST) -> set[str]:
    """Return the names that the classes of a module define, and those of their slots."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("self", "cls"):
            names.add(node.attr)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            # The name of a slot.
            names.add(node.value)
    return names


def names_of(package: str) -> set[str]:
    """Return every private name that the installed package has."""
    directory = Path(str(sys.modules[package].__file__)).parent
    trees = (ast.parse(path.read_text()) for path in directory.rglob("*.py"))
    return {name for tree in trees for name in {name for name, _ in attributes(tree)}}


@for_each(
    "package, version",
    [
        *(("httpx", "0.27.2"), ("httpx", "0.29.0"), ("httpx", "1.0.dev1")),
        *(("httpcore", "0.18.0"), ("httpcore", "1.1.0"), ("httpcore", "2.0")),
        *(("h2", "3.2.0"), ("h2", "5.0.0"), ("h2", "unknown")),
    ],
)
def test_a_version_that_was_not_tried_is_refused_with_a_remedy(package, version):
    with pytest.raises(ImportError) as caught:
        private.check_version(package, version)
    sentence = str(caught.value)
    (first, beyond) = (".".join(map(str, each)) for each in private.TRIED[package])
    assert f"internals of {package} {version}, which is installed, were not tried" in sentence
    assert f"pip install '{package}>={first},<{beyond}'" in sentence


@pytest.mark.parametrize("package", private.TRIED)
def test_the_installed_version_was_tried(package):
    private.check_version(package, sys.modules[package].__version__)


@pytest.mark.parametrize("package", ["httpx", "httpcore", "h2"])
def test_another_version_leaves_the_module_out_and_every_fetch_as_it_is(package):
    code = (
        f"import {package}\n"
        f"{package}.__version__ = '9.9.9'\n"
        "import httpcore, httpx\n"
        "from trio_crawler import HttpFetch, HttpxFetch\n"
        "from trio_crawler.net.httpx.body import _private\n"
        "HttpFetch(http2=True)\n"
        "HttpxFetch(httpx.AsyncClient(verify=False))\n"
        "print(_private())\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "None\n"


def test_the_installed_packages_have_every_private_name_that_is_used():
    used = {name for name, _ in attributes(ast.parse(HOME.read_text()))}
    assert used == set(USED)
    for name, home in USED.items():
        source = inspect.getsource(home.__init__)
        assert f"self.{name} = " in source or f"self.{name}: " in source or hasattr(home, name)


def test_no_other_module_touches_a_private_name_of_these_packages():
    theirs = names_of("httpx") | names_of("httpcore") | names_of("h2")
    assert set(USED) <= theirs
    touched = []
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        others = theirs - (defined(tree) - set(USED))
        for name, of in attributes(tree):
            if path != HOME and name in others and of not in ("self", "cls"):
                touched.append(f"{path.relative_to(PACKAGE)}: {of}.{name}")
    assert touched == []
