"""The helper that forks instead of starting an interpreter: what it runs ends, and is the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli import command
from cli.command import FORKS, crawl, ended, environment, start, wait_until
from sites.raw import html, silence, threaded_raw_server

pytestmark = pytest.mark.process

KILLED = """
import sys
sys.path.insert(0, sys.argv[1])
from cli.command import FORKS, crawl, environment
FORKS.serves(environment())
print(FORKS._process.pid, flush=True)
crawl(sys.argv[2])
"""


def is_alive(pid: int) -> bool:
    """Tell whether a process runs, which may be a child of nobody."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_fork_does_what_a_new_interpreter_does(tmp_path: Path) -> None:
    assert FORKS.serves(environment())
    for words in (["--help"], ["--no-such-option"], ["report", "nothing"], []):
        forked = crawl(*words, cwd=tmp_path)
        with start(*words, cwd=tmp_path) as process:
            out, err = ended(process)
        assert (forked.returncode, forked.stdout, forked.stderr) == (process.returncode, out, err)


def test_a_command_that_hangs_is_killed_and_the_next_one_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command, "PATIENCE", 0.5)
    with threaded_raw_server({"/": silence}) as server, pytest.raises(subprocess.TimeoutExpired):
        crawl(server.url)
    monkeypatch.undo()
    with threaded_raw_server({"/": html()}) as server:
        assert crawl(server.url).returncode == 0


@pytest.mark.parametrize("name", ["TRIO_CRAWLER_PURE", "PYTHONIOENCODING", "LC_ALL", "TZ"])
def test_what_is_read_at_the_start_is_read_by_a_new_interpreter(name: str) -> None:
    assert not FORKS.serves(environment(**{name: "other"}))


@pytest.mark.parametrize("name", ["NO_COLOR", "TERM", "SSL_CERT_FILE", "http_proxy", "HOME"])
def test_what_is_read_later_is_read_by_a_fork(name: str) -> None:
    assert FORKS.serves(environment(**{name: "other"}))


def test_nothing_outlives_a_test_process_that_is_killed() -> None:
    tests = str(Path(__file__).parents[1])
    with threaded_raw_server({"/": silence}) as server:
        line = [sys.executable, "-c", KILLED, tests, server.url]
        with subprocess.Popen(line, stdout=subprocess.PIPE, env=environment()) as process:
            assert process.stdout is not None
            helper = int(process.stdout.readline())
            wait_until(lambda: children(helper))
            pids = [helper, *children(helper)]
            process.kill()
        wait_until(lambda: not any(map(is_alive, pids)))
