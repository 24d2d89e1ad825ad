"""What stands in the way of a crawl: it ends with one line, and goes on when the way is free."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from cli.command import wait_until
from durable.crawls import FAILED, Durable, Run, assert_completed, assert_equal
from durable.server import Served, served
from durable.site import Site
from durable.strike import ENDS_WITHIN, one_line


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(Site(150, 4), 150, 4) as server:
        yield server


def assert_refused(run: Run, *words: str, since: float | None = None, status: int = 1) -> None:
    """Find that a run ended soon, with one line in which these words stand."""
    assert run.status == status, run
    assert one_line(run), run.err
    assert all(word in run.err.lower() for word in words), run.err
    begun = run.begun if since is None else since
    assert run.begun + run.seconds - begun < ENDS_WITHIN


def has_reported(run: Run) -> bool:
    """Whether a run that its directory has ended told what it had until then."""
    return FAILED in run.out and "\nadmitted " in run.out


def test_a_second_crawl_in_a_directory_refuses_and_the_first_is_unharmed(
    server, outcomes, tmp_path
):
    server.begin(tmp_path / "log")
    first = Durable(server, tmp_path)
    second = Durable(server, tmp_path / "second", kept=tmp_path, numbers=first.numbers)
    started = first.start()
    wait_until(started.has_asked)
    run = second.run()
    assert_refused(run, "another crawl", str(started.process.pid), status=2)
    assert server.asked(run.number) == []
    assert started.ended().whole
    assert_equal(first, outcomes)


@pytest.mark.parametrize("begun", [False, True], ids=["at the start", "in the middle"])
def test_a_crawl_whose_database_is_locked_by_another_program_is_refused_until_it_is_free(
    server, outcomes, tmp_path, begun
):
    server.begin(tmp_path / "log")
    crawl = Durable(server, tmp_path)
    started = crawl.start()
    wait_until(lambda: started.has_asked("/slow/" if begun else ""))
    if not begun:
        started.killed()
    with closing(sqlite3.connect(crawl.directory / "crawl.sqlite", timeout=10)) as other:
        other.isolation_level = None
        other.execute("BEGIN EXCLUSIVE")
        since = time.monotonic()
        run = started.ended() if begun else crawl.run()
        assert_refused(run, "locked", since=since)
        assert has_reported(run) is begun
        other.execute("ROLLBACK")
    assert_completed(crawl, outcomes)


def test_a_crawl_whose_files_may_not_grow_ends_with_one_line_and_is_resumed(
    server, outcomes, tmp_path
):
    server.begin(tmp_path / "log")
    crawl = Durable(server, tmp_path)
    for largest in (1_000, 120_000, 300_000):
        run = crawl.run(largest=largest)
        assert_refused(run, str(tmp_path))
    assert has_reported(run)
    assert_completed(crawl, outcomes)


@contextmanager
def disk(home: Path, size: str) -> Iterator[Path]:
    """Mount a small disk, if that may be."""
    home.mkdir()
    mount = shutil.which("mount")
    words = [str(mount), "-t", "tmpfs", "-o", f"size={size}", "none", str(home)]
    if not mount or os.geteuid() or subprocess.run(words, capture_output=True).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        yield home
    finally:
        subprocess.run(["umount", "-l", str(home)], check=True)


def remount(home: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(home)], check=True)


@pytest.mark.parametrize("size", ["64k", "300k"])
def test_a_crawl_on_a_full_disk_ends_with_one_line_and_is_resumed(
    server, outcomes, tmp_path, size
):
    server.begin(tmp_path / "log")
    with disk(tmp_path / "disk", size) as home:
        crawl = Durable(server, tmp_path / "runs", kept=home)
        run = crawl.run()
        assert_refused(run, str(home), "space")
        assert has_reported(run) is (size != "64k")
        remount(home, "size=100m")
        assert_completed(crawl, outcomes)


def test_a_crawl_in_a_directory_that_can_only_be_read_is_refused_and_resumed(
    server, outcomes, tmp_path
):
    server.begin(tmp_path / "log")
    with disk(tmp_path / "disk", "100m") as home:
        crawl = Durable(server, tmp_path / "runs", kept=home)
        started = crawl.start()
        wait_until(lambda: started.has_asked("/slow/"))
        started.killed()
        remount(home, "ro")
        assert_refused(crawl.run(), str(home), "writable")
        remount(home, "rw")
        assert_completed(crawl, outcomes)
