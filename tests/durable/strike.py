"""Strike a process at its n-th call to the disk: by death, or by an error."""

from __future__ import annotations

import errno
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from durable.crawls import Run

ENDS_WITHIN = 10.0


class Blow(NamedTuple):
    """What happens at that call; `on` says that from then on nothing can be written."""

    name: str
    effect: str
    on: bool = False

    @property
    def kills(self) -> bool:
        """Tell whether the process dies of it."""
        return self.effect in ("kill", "torn")


BLOWS = (
    Blow("killed", "kill"),
    Blow("killed in a write", "torn"),
    Blow("an I/O error", str(errno.EIO)),
    Blow("disk full", str(errno.ENOSPC), on=True),
    Blow("read-only", str(errno.EROFS), on=True),
)


def compiler() -> str | None:
    """Return a C compiler, if there is one."""
    return shutil.which("cc") or shutil.which("gcc")


def built(home: Path, name: str = "strike") -> Path:
    """Compile what is preloaded: `strike`, or `clock`."""
    source, library = Path(__file__).with_name(f"{name}.c"), home / f"{name}.so"
    command = [compiler() or "cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source)]
    subprocess.run([*command, "-ldl"], check=True)
    return library


def environment(library: Path, under: Path, at: int, blow: Blow) -> dict[str, str]:
    """Give the environment in which a process is struck at call number `at`."""
    told = {
        "LD_PRELOAD": str(library),
        "STRIKE_UNDER": f"{under}/",
        "STRIKE_AT": str(at),
        "STRIKE_WITH": blow.effect,
    }
    return told | ({"STRIKE_ON": "1"} if blow.on else {})


def told(run: Run, blow: Blow) -> Iterator[str]:
    """Check the end of a run that was struck: exit 1, soon, and one line that says why."""
    if blow.kills:
        if run.status != -9:
            yield f"ended with {run.status} and not by the kill: {run.err}"
        return
    if run.status != 1:
        yield f"exit status {run.status}"
    if run.seconds > ENDS_WITHIN:
        yield f"ended only after {run.seconds:.1f} s"
    if not one_line(run):
        yield f"said {run.err!r}"


def one_line(run: Run) -> bool:
    """Tell whether a run said one line on standard error, and nothing else."""
    return run.err.count("\n") == 1 and run.err.startswith("trio-crawler: ")
