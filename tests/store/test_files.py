"""A crawl directory on systems without POSIX's files and locks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BEGIN = """
import os, sys
from pathlib import Path
from store import systems
systems.{system}()
from store.batches import batch, page
from trio_crawler import History
from trio_crawler.store.errors import StoreError
from trio_crawler.store.store import Store
directory = Path(sys.argv[1])

def record(outcome):
    return outcome.url.encode() + b"\\n"

def refusal(what):
    try:
        what()
    except StoreError as error:
        print(type(error).__name__, error)
    else:
        print("not refused")
"""
SYSTEMS = ["without_locks", "windows"]


def run(system: str, directory: Path, program: str) -> list[str]:
    """Run a program on such a system; return the lines that it prints."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", BEGIN.format(system=system) + program, directory]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert not done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_directory_opens_refuses_a_second_crawl_and_opens_again(tmp_path, system):
    program = """
with Store.open(directory) as store:
    store.write(batch([page("a")]))
    refusal(lambda: Store.open(directory))
with Store.open(directory) as store:
    print(store.run, [outcome.url for outcome in store.walk.outcomes()], os.getpid())
"""
    refused, opened = run(system, tmp_path, program)
    process = opened.split()[-1]
    assert refused == (
        f"InUse {tmp_path}: another crawl is using it (process {process}): "
        "wait for its end, or give another directory"
    )
    assert opened == f"2 ['https://a.test/a'] {process}"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["crawl.sqlite", "lock"]


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_stream_is_locked_too_and_written_and_cut_back(tmp_path, system):
    program = """
path = directory / "records"
with Store.open(directory / "one") as one, Store.open(directory / "two") as two:
    stream = one.stream(path, record)
    one.write(batch([page("a")], writes=[(stream, [page("a")])]))
    refusal(lambda: two.stream(path, record))
with path.open("ab") as file:
    file.write(b"torn")
with Store.open(directory / "one") as one:
    stream = one.stream(path, record)
    one.write(batch([page("b")], 2, writes=[(stream, [page("b")])]))
print(path.read_text().split())
"""
    refused, written = run(system, tmp_path, program)
    path = tmp_path / "records"
    assert refused == f"InUse {path}: another crawl is writing to it: give another path"
    assert written == "['https://a.test/a', 'https://a.test/b']"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["one", "records", "two"]


KILLED = """
store = Store.open(directory)
store.write(batch([page("a")]))
print(os.getpid(), flush=True)
os._exit(9)
"""
OPEN = """
refusal(lambda: Store.open(directory))
"""


@pytest.mark.slow
def test_a_lock_that_a_killed_crawl_left_is_recognised_and_can_be_deleted(tmp_path):
    (process,) = run("without_locks", tmp_path, KILLED)
    lock = tmp_path / "lock.held"
    (refused,) = run("without_locks", tmp_path, OPEN)
    assert refused == (
        f"StoreError {lock}: it is the lock of process {process}, which is not running: "
        "delete it, then start the crawl again"
    )
    lock.unlink()
    program = "print(len(list(Store.open(directory).walk.outcomes())))"
    assert run("without_locks", tmp_path, program) == ["1"]


def test_a_lock_that_names_no_process_is_refused_with_a_remedy(tmp_path):
    lock = tmp_path / "lock.held"
    lock.touch()
    (refused,) = run("without_locks", tmp_path, OPEN)
    assert refused == (
        f"StoreError {lock}: it is a lock that names no process: "
        "delete it if no other crawl is running"
    )


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_kill_leaves_no_other_lock_on_windows(tmp_path, system):
    run(system, tmp_path, KILLED)
    assert (tmp_path / "lock.held").exists() == (system == "without_locks")


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_frontier_and_the_archive_can_be_imported(tmp_path, system):
    program = """
import trio_crawler.report.warc_records
from trio_crawler import SqliteFrontier
from trio_crawler.report import Warc
print(SqliteFrontier.__name__, Warc.__name__)
"""
    assert run(system, tmp_path, program) == ["SqliteFrontier Warc"]
