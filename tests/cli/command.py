"""The command in a process of its own, as a shell would start it."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from cli.forks import Forks

from trio_crawler.cli.main import check_command, command, report_command

ROOT = Path(__file__).parents[2]
PATIENCE = 20.0


def environment(**more: str) -> dict[str, str]:
    """Give an environment in which nothing but `more` tells what the command writes to."""
    told = {"FORCE_COLOR", "TTY_COMPATIBLE", "NO_COLOR", "COLUMNS", "LINES", "TERM"}
    kept = {name: text for name, text in os.environ.items() if name not in told}
    return kept | {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"} | more


FORKS = Forks(environment())
# It would end by itself, but nobody would have waited for it.
atexit.register(FORKS.end)


def start(*words: str, env: dict[str, str] | None = None, **popen: Any) -> subprocess.Popen[bytes]:
    """Start the command; its standard output and error are pipes unless `popen` says else."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    line = [sys.executable, "-m", "trio_crawler", *words]
    pipes["stdin"] = subprocess.DEVNULL
    return subprocess.Popen(line, env=env or environment(), **pipes | popen)


def crawl(
    *words: str, env: dict[str, str] | None = None, **more: Any
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end, in a fork of a process that has imported it if that can be.

    A new interpreter runs it where the environment has another value of what is read at the start,
    and with arguments of Popen that a fork does not know. Tests of the start itself use `start`.
    """
    env = env or environment()
    if more.keys() <= {"cwd", "stdin", "stdout", "stderr"} and FORKS.serves(env):
        return _forked(words, env, **more)
    with start(*words, env=env, **more) as process:
        out, err = ended(process)
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def _forked(
    words: tuple[str, ...],
    env: dict[str, str],
    cwd: str | os.PathLike[str] = ".",
    stdin: Any = None,
    stdout: Any = None,
    stderr: Any = None,
) -> subprocess.CompletedProcess[str]:
    with ExitStack() as stack, ThreadPoolExecutor() as pool:
        directory = os.open(cwd, os.O_RDONLY)
        stack.callback(os.close, directory)
        files = [directory, _number(stdin or stack.enter_context(open(os.devnull)))]
        said = []
        with ExitStack() as writers:
            for given in (stdout, stderr):
                if given is None:
                    read, write = map(os.fdopen, os.pipe(), ("rb", "wb"))
                    said.append(pool.submit(stack.enter_context(read).read))
                    given = writers.enter_context(write)
                else:
                    said.append(pool.submit(bytes))
                files.append(_number(given))
            try:
                status = FORKS.run(words, env, files, PATIENCE)
            except TimeoutError as error:
                raise subprocess.TimeoutExpired(words, PATIENCE) from error
        out, err = (each.result().decode() for each in said)
    return subprocess.CompletedProcess(words, status, out, err)


def _number(file: Any) -> int:
    return file if isinstance(file, int) else int(file.fileno())


def here(*words: str) -> int:
    """Run the command in this process; return its status."""
    if words[:1] == ("check",):
        return int(check_command.main(list(words[1:]), standalone_mode=False))
    if words[:1] == ("report",):
        return int(report_command.main(list(words[1:]), standalone_mode=False))
    return int(command.main(list(words), standalone_mode=False))


def ended(process: subprocess.Popen[bytes], patience: float = PATIENCE) -> tuple[str, str]:
    """Wait for the end; give what was written and not yet read."""
    try:
        out, err = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return (out or b"").decode(), (err or b"").decode()


def wait_until(true: Callable[[], object], patience: float = PATIENCE) -> None:
    """Poll until something is true; raise TimeoutError if it never is."""
    end = time.monotonic() + patience
    while not true():
        if time.monotonic() > end:
            raise TimeoutError("waited in vain")
        time.sleep(0.005)
