"""The helper that forks instead of starting an interpreter: what it runs ends, and is the same."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from cli import command
from cli.command import FORKS, crawl, ended, environment, start
from sites.raw import html, silence, threaded_raw_server

pytestmark = pytest.mark.process


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
