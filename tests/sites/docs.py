"""A directory of files, served by a process of its own: its CPU time is not the crawler's."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

STATIC = Path(__file__).with_name("static.py")


@dataclass(frozen=True)
class Docs:
    """Say where a directory is served; `url` ends with a slash."""

    url: str
    access_log: Path

    def log(self) -> list[tuple[str, int]]:
        """List the requests so far: target and status, in the order they were answered."""
        lines = self.access_log.read_text("utf-8").splitlines()
        fields = (line.split(" ") for line in lines)
        return [(target, int(status)) for _, target, status in fields]


@contextmanager
def serve_directory(path: Path | str) -> Iterator[Docs]:
    """Serve the files under `path` until the block ends; the log goes with it."""
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch, "access.log")
        log.touch()
        command = [sys.executable, str(STATIC), str(path), str(log)]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
            assert process.stdin
            assert process.stdout
            try:
                port = int(process.stdout.readline())
                yield Docs(f"http://127.0.0.1:{port}/", log)
            finally:
                process.stdin.close()
                process.wait(5)
