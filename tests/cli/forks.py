"""Start the command in a fork of a process that has imported it, not in a new interpreter.

`Forks` is the test's side. The other one is this file as a program, which imports the package,
forks when it is asked to, and ends with the process that asks. A fork has the arguments, the
environment, the directory, the umask and the files that it is given, and ends as an interpreter
does. What it does not have is a start of its own: its hash seed and the variables that are read
while the interpreter and the package start are those of the server.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pkgutil
import re
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

EARLY = re.compile(r"PYTHON|LC_|LANG|LD_|MALLOC_|GLIBC_|OPENSSL_|TZ$")
"""The variables that an interpreter and its libraries read: `os.environ` does not see that."""


class Forks:
    """A server that is started at its first use; it runs one command at a time."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._names: set[str] = set()
        self._control: socket.socket | None = None
        self._turn = threading.Lock()

    def serves(self, environment: Mapping[str, str]) -> bool:
        """Tell whether a fork can have this environment."""
        if not hasattr(os, "pidfd_open"):
            return False
        with self._turn:
            if self._control is None:
                self._begin()
        own = self._environment
        early = self._names | {name for name in own | environment if EARLY.match(name)}
        return all(own.get(name) == environment.get(name) for name in early)

    def run(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        files: list[int],
        patience: float,
    ) -> int:
        """Run a command in the directory and with the three files of `files`; return its status.

        Raises TimeoutError if it has not ended in time: it is killed, and so is the server.
        """
        umask = os.umask(0o077)
        os.umask(umask)
        asked = {"words": words, "environment": dict(environment), "umask": umask}
        with self._turn:
            control = self._control or self._begin()
            control.settimeout(patience)
            try:
                # The files travel with the first byte.
                socket.send_fds(control, [b" "], files)
                control.sendall(json.dumps(asked).encode() + b"\n")
                return int(self._lines.readline())
            except BaseException:
                self.end()
                raise

    def end(self) -> None:
        """End the server and what it runs; the next use starts another one."""
        if self._control is not None:
            self._control.shutdown(socket.SHUT_RDWR)
            self._control.close()
            self._lines.close()
            self._control = None
            self._process.wait()

    def _begin(self) -> socket.socket:
        control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                # Without -P this directory would be the first of sys.path.
                [sys.executable, "-P", __file__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                env=self._environment,
                pass_fds=[theirs.fileno()],
            )
        self._control, self._lines = control, control.makefile("r")
        self._names = set(json.loads(self._lines.readline()))
        return control


class _Noting(type(os.environ)):  # type: ignore[misc]
    """The environment, which notes what it is asked for."""

    names: set[str]

    def __getitem__(self, name: str) -> str:
        self.names.add(name)
        return str(super().__getitem__(name))


@contextlib.contextmanager
def _noted() -> Iterator[set[str]]:
    """Collect the names of the variables that are read meanwhile."""
    before = type(os.environ)
    _Noting.names = set()
    os.environ.__class__ = _Noting
    yield _Noting.names
    os.environ.__class__ = before


def _import_all() -> None:
    import trio_crawler

    for module in pkgutil.walk_packages(trio_crawler.__path__, "trio_crawler."):
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)
    # Functions import these.
    for name in ("click._textwrap", "ctypes", "getpass", "resource"):
        importlib.import_module(name)


def _serve(control: socket.socket) -> list[str]:
    """Fork as often as it is asked for; return, in the fork, the words of its command line."""
    # Ctrl-C is for the tests. The end of their process is the end of this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lines = control.makefile("r")
    while True:
        _, files, _, _ = socket.recv_fds(control, 1, 4)
        text = lines.readline()
        if not text.endswith("\n"):
            sys.exit()
        asked = json.loads(text)
        pid = os.fork()
        if pid == 0:
            lines.close()
            control.close()
            _become(files, **asked)
            return list(asked["words"])
        for file in files:
            os.close(file)
        ended = os.pidfd_open(pid)
        # Nothing more is asked for meanwhile: if there is something to read, it is the end.
        if ended not in select.select([ended, control], [], [])[0]:
            os.kill(pid, signal.SIGKILL)
        os.close(ended)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with contextlib.suppress(OSError):
            control.sendall(b"%d\n" % status)


def _become(
    files: Sequence[int], words: Sequence[str], environment: Mapping[str, str], umask: int
) -> None:
    """Make of this fork what a new interpreter would be."""
    directory, *streams = files
    os.fchdir(directory)
    os.umask(umask)
    for number, file in enumerate(streams):
        os.dup2(file, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.path.insert(0, os.getcwd())
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        made: dict[str, Any] = {"errors": getattr(sys, name).errors, "closefd": False}
        # Standard error ends each line at once, others do where they are a terminal.
        made |= {"buffering": 1} if name == "stderr" else {}
        mode = "w" if number else "r"
        stream = open(number, mode, encoding=getattr(sys, name).encoding, **made)  # noqa: SIM115
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


if __name__ == "__main__":
    with _noted() as _names:
        _import_all()
    _control = socket.socket(fileno=int(sys.argv[1]))
    _control.sendall(json.dumps(sorted(_names)).encode() + b"\n")
    sys.argv = ["trio-crawler", *_serve(_control)]

    import trio

    import trio_crawler
    from trio_crawler.cli import main
    from trio_crawler.cli.signals import SIGNALS

    # Trio's order of tasks would be the same in each fork.
    trio._core._run._r.seed()
    SIGNALS.take()
    # Click tells by these how the command was called: as `python -m trio_crawler`.
    __package__ = "trio_crawler"
    sys.argv[0] = str(Path(trio_crawler.__file__).with_name("__main__.py"))
    main.main()
