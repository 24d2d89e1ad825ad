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
    "policy/retry.py": "policy/test_retry.py policy/test_host_state.py",
    "net/chunks.py": "net/test_chunks.py net/test_behaviours_chunks.py",
    "policy/scope.py": "policy/test_scope.py",
    "arguments.py": "test_argument_error.py test_arguments.py net/test_arguments.py",
    "net/head.py": "net/test_head.py",
    "net/addresses.py": "net/test_addresses.py",
    "policy/side_effects.py": "policy/test_side_effects.py",
}
# Slow to import, and none of them is changed: each mutant is a fork that has them already.
PRELOADED = "pytest hypothesis trio httpx httptools tldextract selectolax.lexbor trustme"
COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
COMPUTED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Add, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
}  # fmt: skip


def changed(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield each name of a change of this node, and the node that stands in its place."""

    def made(name: str, text: str) -> tuple[str, ast.AST]:
        body = ast.parse(text).body[0]
        return name, body if isinstance(node, ast.stmt) or not isinstance(
            body, ast.Expr
        ) else body.value

    text = ast.unparse(node)
    match node:
        case ast.Compare(left, [operator], [right]) if type(operator) in COMPARED:
            other = COMPARED[type(operator)]()
            yield made(
                f"{text} -> {type(other).__name__}",
                ast.unparse(ast.Compare(left, [other], [right])),
            )
        case ast.BoolOp(operator, values):
            other = ast.Or() if isinstance(operator, ast.And) else ast.And()
            yield made(f"{text} -> {type(other).__name__}", ast.unparse(ast.BoolOp(other, values)))
            for at, value in enumerate(values):
                rest = [each for each in values if each is not value]
                short = ast.unparse(rest[0] if len(rest) == 1 else ast.BoolOp(operator, rest))
                yield made(f"{text} without part {at + 1}", f"({short})")
        case ast.UnaryOp(ast.Not(), operand):
            yield made(f"{text} without not", f"({ast.unparse(operand)})")
        case ast.BinOp(left, operator, right) if type(operator) in COMPUTED:
            other = COMPUTED[type(operator)]()
            yield made(
                f"{text} -> {type(other).__name__}", ast.unparse(ast.BinOp(left, other, right))
            )
        case ast.Constant(bool() as value):
            yield made(f"{value} -> {not value}", repr(not value))
        case ast.Constant(int() | float() as value):
            for other in (value + 1, value - 1):
                yield made(f"{value} -> {other}", f"({other})")
        case ast.IfExp(_, body, orelse):
            yield made(f"{text} -> always", f"({ast.unparse(body)})")
            yield made(f"{text} -> never", f"({ast.unparse(orelse)})")
        case ast.Return(value) if value is not None and text != "return None":
            yield made(f"{text} -> None", "return None")
        case ast.Raise() | ast.Expr(ast.Call() | ast.Await()) | ast.AugAssign():
            yield made(f"without {text}", "pass")
        case ast.Assign([ast.Attribute(attr=name)]) if name != "__module__":
            yield made(f"without {text}", "pass")


def mutants(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the change and the text of each mutant of a module."""
    tree = ast.parse(text)
    places = [
        (parent, field, at)
        for parent in ast.walk(tree)
        for field, value in ast.iter_fields(parent)
        # What is written only for the type checker has no effect.
        if field not in ("annotation", "returns", "slice")
        and not isinstance(parent, ast.JoinedStr)
        for at in (range(len(value)) if isinstance(value, list) else [None])
    ]
    for parent, field, at in places:
        value = getattr(parent, field)
        node = value if at is None else value[at]
        if not isinstance(node, ast.expr | ast.stmt):
            continue
        for change, other in changed(node):
            for there in (other, node):
                if at is None:
                    setattr(parent, field, there)
                else:
                    value[at] = there
                if there is other:
                    yield node.lineno, change, ast.unparse(tree)


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
    # Python caches the bytecode of what is not changed.
    sys.dont_write_bytecode = False
    for name in PRELOADED.split():
        importlib.import_module(name)
    all_found = {}
    print(f"{'module':<24} mutants  killed  seconds")
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        for part in ("trio_crawler", "tests"):
            shutil.copytree(ROOT / part, home / part)
        shutil.copy(ROOT / "pyproject.toml", home)
        for module in given.modules or TESTS:
            began = time.monotonic()
            found = all_found[module] = tried(home, module, given.most, given.seed)
            killed, survived = found["killed"], found["survived"]
            took = time.monotonic() - began
            print(f"{module:<24} {len(killed) + len(survived):7} {len(killed):7} {took:8.0f}")
            for line, change, at in survived:
                print(f"    {at}: {line}\n        {change}", flush=True)
    if given.json:
        given.json.write_text(json.dumps(all_found, indent=1))
    before = json.loads(given.compare.read_text()) if given.compare else {}
    worse = [
        f"{module}: {line}: {change}"
        for module, found in all_found.items()
        for line, change, _ in found["survived"]
        if [line, change] in [one[:2] for one in before.get(module, {"killed": []})["killed"]]
    ]
    print(*(f"was killed before: {one}" for one in worse), sep="\n", end="\n" if worse else "")
    return int(bool(worse))


if __name__ == "__main__":
    sys.exit(main())
