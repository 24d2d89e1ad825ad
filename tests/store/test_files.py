"""A crawl directory on Windows, without POSIX's files and locks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

BEGIN = """
import os, sys
from pathlib import Path
from store import systems
systems.windows()
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


def run(directory: Path, program: str) -> list[str]:
    """Run a program there; return the lines that it prints."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", BEGIN + program, directory]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert not done.stderr
    return done.stdout.splitlines()


def test_a_directory_opens_refuses_a_second_crawl_and_opens_again(tmp_path):
    program = """
with Store.open(directory) as store:
    store.write(batch([page("a")]))
    refusal(lambda: Store.open(directory))
with Store.open(directory) as store:
    print(store.run, [outcome.url for outcome in store.walk.outcomes()], os.getpid())
"""
    refused, opened = run(tmp_path, program)
    process = opened.split()[-1]
    assert refused == (
        f"InUse {tmp_path}: another crawl is using it (process {process}): "
        "wait for its end, or give another directory"
    )
    assert opened == f"2 ['https://a.test/a'] {process}"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["crawl.sqlite", "lock"]


def test_a_stream_is_locked_too_and_written_and_cut_back(tmp_path):
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
    refused, written = run(tmp_path, program)
    path = tmp_path / "records"
    assert refused == f"InUse {path}: another crawl or stream is writing to it: give another path"
    assert written == "['https://a.test/a', 'https://a.test/b']"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["one", "records", "two"]


def test_a_kill_leaves_no_other_lock(tmp_path):
    program = """
store = Store.open(directory)
store.write(batch([page("a")]))
print(os.getpid(), flush=True)
os._exit(9)
"""
    run(tmp_path, program)
    assert sorted(path.name for path in tmp_path.iterdir() if "lock" in path.name) == ["lock"]
    assert run(tmp_path, "print(Store.open(directory).run)") == ["2"]


def test_the_frontier_and_the_archive_can_be_imported(tmp_path):
    program = """
from trio_crawler import SqliteFrontier
from trio_crawler.report import Warc
print(SqliteFrontier.__name__, Warc.__name__)
"""
    assert run(tmp_path, program) == ["SqliteFrontier Warc"]
