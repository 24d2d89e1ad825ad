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
from durable.crawls import Durable, Run, until_whole, whole_crawl
from durable.server import Served, served
from durable.site import Site
from durable.strike import ENDS_WITHIN, one_line


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(Site(150, 4), 150, 4) as server:
        yield server


@pytest.fixture(scope="module")
def outcomes(server, tmp_path_factory):
    return whole_crawl(server, tmp_path_factory.mktemp("whole"))[1]


def refused(run: Run, *words: str) -> bool:
    """Tell whether a run ended soon, with one line in which these words stand."""
    said = run.err.lower()
    assert run.status == 1, run
    assert one_line(run), run.err
    assert all(word in said for word in words), run.err
    return run.seconds < ENDS_WITHIN


def completed(crawl, outcomes):
    until_whole(crawl)
    found = crawl.complaints(outcomes)
    assert not any(found.values()), found


def test_a_second_crawl_in_a_directory_refuses_and_the_first_is_unharmed(
    server, outcomes, tmp_path
):
    server.begin(tmp_path / "log")
    first, second = Durable(server, tmp_path), Durable(server, tmp_path / "second")
    second.directory, second.lines, second.archive = first.directory, first.lines, first.archive
    started = first.start()
    wait_until(started.has_asked)
    requests = len(server.asked())
    run = second.run()
    assert refused(run, "another crawl", str(started.process.pid))
    assert len(server.asked()) >= requests
    assert started.ended().whole
    found = first.complaints(outcomes)
    assert not any(found.values()), found


@pytest.mark.parametrize("begun", [False, True], ids=["at the start", "in the middle"])
def test_a_database_that_another_program_has_locked(server, outcomes, tmp_path, begun):
    server.begin(tmp_path / "log")
    crawl = Durable(server, tmp_path)
    if begun:
        started = crawl.start()
        wait_until(lambda: started.has_asked("/slow/"))
    else:
        started = crawl.start()
        wait_until(started.has_asked)
        started.killed()
    with closing(sqlite3.connect(crawl.directory / "crawl.sqlite", timeout=10)) as other:
        other.isolation_level = None
        other.execute("BEGIN IMMEDIATE")
        since = time.monotonic()
        run = started.ended() if begun else crawl.run()
        assert time.monotonic() - since < ENDS_WITHIN
        assert refused(run, "locked") or begun
        other.execute("ROLLBACK")
    completed(crawl, outcomes)


def test_a_file_that_may_not_become_larger(server, outcomes, tmp_path):
    server.begin(tmp_path / "log")
    crawl = Durable(server, tmp_path)
    for largest in (1_000, 120_000):
        assert refused(crawl.run(largest=largest), str(tmp_path))
    completed(crawl, outcomes)


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
def test_a_disk_that_is_full(server, outcomes, tmp_path, size):
    server.begin(tmp_path / "log")
    with disk(tmp_path / "disk", size) as home:
        crawl = Durable(server, tmp_path / "runs")
        crawl.directory = home / "crawl"
        crawl.lines, crawl.archive = home / "pages.jsonl", home / "pages.warc.gz"
        assert refused(crawl.run(), str(home), "space")
        remount(home, "size=100m")
        completed(crawl, outcomes)


def test_a_directory_that_can_only_be_read(server, outcomes, tmp_path):
    server.begin(tmp_path / "log")
    with disk(tmp_path / "disk", "100m") as home:
        crawl = Durable(server, tmp_path / "runs")
        crawl.directory = home / "crawl"
        crawl.lines, crawl.archive = home / "pages.jsonl", home / "pages.warc.gz"
        started = crawl.start()
        wait_until(lambda: started.has_asked("/slow/"))
        started.killed()
        remount(home, "ro")
        assert refused(crawl.run(), str(home), "writable")
        remount(home, "rw")
        completed(crawl, outcomes)
