"""Change a line in copies of the package, and let the probes say what each copy does.

`python docs/mutations/trial.py` prints a line of JSON for each. All copies are imported into
one process, one after the other, so that Trio and the parsers are imported once.
"""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "trio_crawler"
sys.path.insert(0, str(HERE))

from table import MUTATIONS, Mutation  # noqa: E402 - it is no package


def copied(to: Path) -> Path:
    """Copy the package into a folder, and return the folder."""
    ignored = shutil.ignore_patterns("__pycache__", "cli", "*.pyc")
    shutil.copytree(PACKAGE, to / "trio_crawler", ignore=ignored)
    return to


def changed(folder: Path, mutation: Mutation) -> Path:
    """Change the line; raise ValueError if it is not there exactly once."""
    path = folder / "trio_crawler" / mutation.file
    lines = path.read_text().splitlines(keepends=True)
    places = [n for n, line in enumerate(lines) if line.strip() == mutation.line]
    if len(places) != 1:
        raise ValueError(
            f"{mutation.file} has {len(places)} lines {mutation.line!r}"
        )
    line = lines[places[0]]
    lines[places[0]] = line.replace(mutation.line, mutation.becomes)
    path.write_text("".join(lines))
    return folder


def said(folder: Path, probes: Iterable[str]) -> dict[str, str]:
    """Run probes on the package in this folder, each module of it imported anew."""
    for name in [
        each for each in sys.modules if each.split(".")[0] == "trio_crawler"
    ]:
        del sys.modules[name]
    sys.modules.pop("probes", None)
    sys.path.insert(0, str(folder))
    try:
        return {name: output(name) for name in probes}
    finally:
        sys.path.remove(str(folder))


def output(probe: str) -> str:
    out = io.StringIO()
    with redirect_stdout(out):
        getattr(import_module("probes"), probe)()
    return out.getvalue()


def trials() -> Iterator[tuple[str, str]]:
    """Yield for each mutation what its probe says of the package, and of the changed one."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        sound = said(copied(folder / "sound"), {each.probe for each in MUTATIONS})
        for number, mutation in enumerate(MUTATIONS):
            copy = changed(copied(folder / str(number)), mutation)
            yield (
                sound[mutation.probe],
                said(copy, [mutation.probe])[mutation.probe],
            )


if __name__ == "__main__":
    for each in trials():
        print(json.dumps(each), flush=True)
