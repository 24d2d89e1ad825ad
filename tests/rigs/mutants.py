"""Change modules a line at a time and see which of the changes their own tests notice.

`python tests/rigs/mutants.py` prints how many mutants of each module its tests kill, and which
survive. `--json FILE` keeps that; `--compare FILE` ends with status 1 if a mutant survives now
that was killed then. A mutant is the same if its module, the text of its line and its change are.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import cache_from_source
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = {
    "policy/answers.py": "policy/test_retry.py schedule/test_host_state.py",
    "policy/scope.py": "policy/test_scope.py",
    "arguments.py": "test_argument_error.py test_arguments.py net/test_arguments.py",
    "net/http1/message.py": "net/test_head.py net/test_chunks.py net/test_behaviours_chunks.py",
    "net/dial/addresses.py": "net/test_addresses.py",
    "policy/url_shapes.py": "policy/test_side_effects.py policy/test_patterns.py",
}
# Slow to import, and none of them is changed: each mutant is a fork that has them already.
PRELOADED = "pytest hypothesis trio httpx httptools publicsuffixlist selectolax.lexbor trustme"
COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
COMPUTED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Add, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
}  # fmt: skip


def changed(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield each name of a change of this node, and what stands in its place."""
    text = ast.unparse(node)

    def other(kind: type[ast.AST], new: ast.AST) -> tuple[str, str]:
        return f"{text} -> {kind.__name__}", f"({ast.unparse(new)})"

    match node:
        case ast.Compare(left, [operator], [right]) if kind := COMPARED.get(type(operator)):
            yield other(kind, ast.Compare(left, [kind()], [right]))
        case ast.BinOp(left, operator, right) if kind := COMPUTED.get(type(operator)):
            yield other(kind, ast.BinOp(left, kind(), right))
        case ast.BoolOp(operator, values):
            kind = ast.Or if isinstance(operator, ast.And) else ast.And
            yield other(kind, ast.BoolOp(kind(), values))
            for at in range(len(values)):
                rest = ast.BoolOp(operator, values[:at] + values[at + 1 :])
                yield f"{text} without part {at + 1}", f"({ast.unparse(rest)})"
        case ast.UnaryOp(ast.Not(), operand):
            yield f"{text} without not", f"({ast.unparse(operand)})"
        case ast.Constant(bool() as value):
            yield f"{value} -> {not value}", f"{not value}"
        case ast.Constant(int() | float() as value):
            yield from ((f"{value} -> {new}", f"({new})") for new in (value + 1, value - 1))
        case ast.IfExp(_, body, orelse):
            yield f"{text} -> always", f"({ast.unparse(body)})"
            yield f"{text} -> never", f"({ast.unparse(orelse)})"
        case ast.Return(value) if value and text != "return None":
            yield f"{text} -> None", "return None"
        case ast.Raise() | ast.Expr(ast.Call() | ast.Await()) | ast.AugAssign():
            yield f"without {text}", "pass"
        case ast.Assign([ast.Attribute(attr=name)]) if name != "__module__":
            yield f"without {text}", "pass"


def mutants(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the change and the text of each mutant of a module."""
    lines = text.splitlines(keepends=True)
    places = [ast.parse(text)]
    for node in places:
        # Annotations have no effect, and the parts of an f-string no place of their own.
        if isinstance(node, ast.JoinedStr):
            continue
        for field, value in ast.iter_fields(node):
            if field not in ("annotation", "returns"):
                parts = value if isinstance(value, list) else [value]
                places.extend(part for part in parts if isinstance(part, ast.AST))
        for change, new in changed(node):
            first, last = node.lineno - 1, node.end_lineno
            before = lines[first].encode()[: node.col_offset].decode()
            after = lines[last - 1].encode()[node.end_col_offset :].decode()
            yield node.lineno, change, "".join((*lines[:first], before, new, after, *lines[last:]))


def status(home: Path, module: str, seconds: int) -> int:
    """Return the status of the tests of a module in the copy, in a fork; 14 if they took long."""
    if not (child := os.fork()):
        signal.alarm(seconds)
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        os.chdir(home)
        sys.path.insert(0, str(home))
        import pytest

        tests = [f"tests/{name}" for name in TESTS[module].split()]
        quiet = ["-x", "-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestWarning"]
        code = pytest.main([*quiet, *tests])
        theirs = Path(sys.modules["trio_crawler"].__file__ or "").is_relative_to(home)
        os._exit(code if theirs else 99)
    return abs(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def tried(home: Path, module: str, most: int, seed: int) -> dict[str, list[list[object]]]:
    """Return the mutants of a module that its tests killed, and those that survived."""
    path = home / "trio_crawler" / module
    text = path.read_text()
    lines = text.splitlines()
    began = time.monotonic()
    if code := status(home, module, 300):
        sys.exit(f"{module}: its tests end with status {code} before anything is changed")
    seconds = int(10 + 5 * (time.monotonic() - began))
    # Drawn by what it is, a mutant stays when other lines come or go.
    known = {(lines[at - 1].strip(), change): (at, new) for at, change, new in mutants(text)}
    drawn = sorted(known, key=lambda one: random.Random(f"{seed} {one}").random())[:most]
    found: dict[str, list[list[object]]] = {"killed": [], "survived": []}
    for line, change in drawn:
        at, new = known[line, change]
        path.write_text(new)
        # Its time may be that of the one before, and so may its size.
        Path(cache_from_source(str(path))).unlink(missing_ok=True)
        code = status(home, module, seconds)
        if code == 99:
            sys.exit(f"{module}: the tests import another trio_crawler than the copy")
        found["killed" if code else "survived"].append([line, change, at])
    path.write_text(text)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="default: all of the table")
    parser.add_argument("--most", type=int, default=30, help="mutants of a module (default: 30)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--compare", type=Path, metavar="FILE")
    given = parser.parse_args()
    # Without bytecode each fork compiles all that is not changed.
    sys.dont_write_bytecode = False
    for name in PRELOADED.split():
        importlib.import_module(name)
    before = json.loads(given.compare.read_text()) if given.compare else {}
    all_found, worse = {}, 0
    print(f"{'module':<24} mutants  killed  seconds")
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        for part in ("trio_crawler", "tests"):
            shutil.copytree(ROOT / part, home / part)
        shutil.copy(ROOT / "pyproject.toml", home)
        for module in given.modules or TESTS:
            began = time.monotonic()
            found = all_found[module] = tried(home, module, given.most, given.seed)
            killed, survived, took = *map(len, found.values()), time.monotonic() - began
            print(f"{module:<24} {killed + survived:7} {killed:7} {took:8.0f}")
            known = [one[:2] for one in before.get(module, {"killed": []})["killed"]]
            for line, change, at in found["survived"]:
                worse += (new := [line, change] in known)
                told = "    KILLED BEFORE" if new else "   "
                print(f"{told} {at}: {line}\n        {change}")
            sys.stdout.flush()
    if given.json:
        given.json.write_text(json.dumps(all_found, indent=1))
    return int(worse > 0)


if __name__ == "__main__":
    sys.exit(main())
