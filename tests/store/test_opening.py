from __future__ import annotations

import errno
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from tempfile import gettempdir
from typing import Any

import pytest
from store.batches import SITE, admitted, batch, page, walk

from trio_crawler.store.errors import StoreError
from trio_crawler.store.history import History
from trio_crawler.store.schema import VERSION
from trio_crawler.store.store import Store
from trio_crawler.store.writer import Batch

NAME = "crawl.sqlite"


def refusal(directory, **given) -> str:
    with pytest.raises(StoreError) as refused:
        Store.open(directory, **given).close()
    text = str(refused.value)
    assert text.isprintable()
    return text.replace(str(directory), "DIR")


def works(directory) -> None:
    """Open it, write to it, and read what was there before."""
    with Store.open(directory) as store:
        before = len(list(store.walk.outcomes()))
        number = store.last_number() + 1
        store.write(batch([page(str(number))], number))
        assert len(list(store.walk.outcomes())) == before + 1


def test_a_directory_is_made_with_its_parents(tmp_path):
    works(tmp_path / "a" / "b")


def test_a_second_crawl_is_refused_by_one_line_that_names_the_first(tmp_path):
    with Store.open(tmp_path) as store:
        assert refusal(tmp_path) == (
            f"DIR: another crawl is using it (process {os.getpid()}): "
            "wait for its end, or give another directory"
        )
        store.write(batch([page("a")]))
    works(tmp_path)


def test_a_file_in_place_of_the_directory_is_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"mine")
    assert (
        refusal(tmp_path / "file")
        == "DIR: there is a file where a directory should be: give another path"
    )
    assert refusal(tmp_path / "file" / "in").startswith("DIR: there is a file where a")
    assert (tmp_path / "file").read_bytes() == b"mine"


def test_a_directory_in_place_of_the_database_is_refused(tmp_path):
    works(tmp_path)
    (tmp_path / NAME).rename(tmp_path / "kept")
    (tmp_path / NAME).mkdir()
    assert refusal(tmp_path) == (
        f"DIR/{NAME}: it is a directory, where the database of a crawl should be: "
        "move it away, or give another directory"
    )
    (tmp_path / NAME).rmdir()
    (tmp_path / "kept").rename(tmp_path / NAME)
    works(tmp_path)


def test_a_directory_in_place_of_the_lock_is_refused(tmp_path):
    (tmp_path / "lock").mkdir()
    assert refusal(tmp_path).startswith("DIR/lock: Is a directory: it must be a plain file")


@pytest.mark.parametrize("content", [b"not a database, but a text. " * 100, b"short"])
def test_what_is_no_database_is_refused_and_left_as_it_is(tmp_path, content):
    (tmp_path / NAME).write_bytes(content)
    assert refusal(tmp_path) == (
        f"DIR/{NAME}: it is not the database of a crawl (file is not a database): "
        "give another directory, or move the file away"
    )
    assert (tmp_path / NAME).read_bytes() == content


@pytest.mark.parametrize("pragma", ["application_id = 7", "user_version = 7"])
def test_the_database_of_another_program_is_refused_and_left_as_it_is(tmp_path, pragma):
    with closing(sqlite3.connect(tmp_path / NAME)) as connection, connection:
        connection.execute("CREATE TABLE theirs (a)")
        connection.execute(f"PRAGMA {pragma}")
    connection.close()
    before = (tmp_path / NAME).read_bytes()
    assert refusal(tmp_path) == (
        f"DIR/{NAME}: it is the database of another program: "
        "give another directory, or move the file away"
    )
    assert (tmp_path / NAME).read_bytes() == before


@pytest.mark.parametrize(("made", "other"), [("a newer", VERSION + 1), ("an older", VERSION - 1)])
def test_a_database_of_another_version_is_refused_and_left_as_it_is(tmp_path, made, other):
    works(tmp_path)
    with closing(sqlite3.connect(tmp_path / NAME)) as connection, connection:
        connection.execute(f"PRAGMA user_version = {other}")
    connection.close()
    assert refusal(tmp_path) == (
        f"DIR/{NAME}: {made} version of trio_crawler made it "
        f"(format {other}, this one knows {VERSION}): "
        "use that version, or give another directory"
    )
    with pytest.raises(StoreError, match=f"{made} version"):
        History(tmp_path)
    with closing(sqlite3.connect(tmp_path / NAME)) as connection, connection:
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.close()
    works(tmp_path)


def test_a_damaged_database_is_refused(tmp_path):
    walk(tmp_path, [page(str(number)) for number in range(500)])
    with (tmp_path / NAME).open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 8_000)
    assert "it is damaged" in refusal(tmp_path)


def test_a_database_that_another_program_has_locked_is_refused(tmp_path):
    works(tmp_path)
    other = sqlite3.connect(tmp_path / NAME, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert refusal(tmp_path, busy_timeout=0.0) == (
        f"DIR/{NAME}: another program has locked it (database is locked): "
        "close that program, then start the crawl again: it resumes where it stopped"
    )
    other.close()
    works(tmp_path)


def test_a_full_disk_is_one_line_and_afterwards_all_is_there(tmp_path):
    with Store.open(tmp_path) as store:
        store.write(batch([page("a")]))
        (pages,) = store._database.row("PRAGMA page_count")
        store._database.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError) as refused:
            store.write(batch([page(str(n), title="x" * 9_000) for n in range(9)], 2))
        assert str(refused.value) == (
            f"{tmp_path / NAME}: the disk is full (database or disk is full): "
            "free some space, then start the crawl again: it resumes where it stopped"
        )
    with Store.open(tmp_path) as store:
        assert [outcome.url for outcome in store.walk.outcomes()] == [SITE + "a"]
        assert store._database.row("PRAGMA integrity_check") == ("ok",)
    works(tmp_path)


def test_a_full_disk_under_a_stream_is_one_line_and_afterwards_all_is_there(tmp_path, monkeypatch):
    def full(file: int, data: memoryview, offset: int) -> int:
        # What fits is written, then there is no space.
        if len(data) > 10:
            return write(file, data[:10], offset)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    write = os.pwrite
    path = tmp_path / "x"
    with Store.open(tmp_path / "crawl") as store:
        stream = store.stream(path, lambda outcome: outcome.url.encode())
        store.write(batch([page("a")], 1, writes=[(stream, [page("a")])]))
        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", full)
            with pytest.raises(StoreError) as refused:
                store.write(batch([page("b")], 2, writes=[(stream, [page("b")])]))
        assert str(refused.value) == (
            f"{path}: No space left on device: "
            "free some space, then start the crawl again: it resumes where it stopped"
        )
        assert path.read_bytes() == page("a").url.encode()
        assert len(list(store.walk.outcomes())) == 1
    works(tmp_path / "crawl")


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (sqlite3.SQLITE_IOERR_WRITE, "the disk fails to read or write it"),
        (sqlite3.SQLITE_FULL, "the disk is full"),
        (sqlite3.SQLITE_BUSY, "another program has locked it"),
        (sqlite3.SQLITE_LOCKED, "it is locked"),
        (sqlite3.SQLITE_READONLY, "it cannot be written"),
        (sqlite3.SQLITE_CANTOPEN, "it cannot be opened"),
        (sqlite3.SQLITE_CORRUPT, "it is damaged"),
        (sqlite3.SQLITE_NOTADB, "it is not the database of a crawl"),
        (sqlite3.SQLITE_INTERNAL, "something new: check the file"),
        (None, "something new: check the file"),
    ],
)
def test_each_error_of_the_database_is_one_line_by_its_code(tmp_path, monkeypatch, code, line):
    def fails(*_: object, **__: object) -> None:
        error = sqlite3.OperationalError("something new")
        if code is not None:
            error.sqlite_errorcode = code
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", fails)
        assert f"DIR/{NAME}: {line}" in refusal(tmp_path)
    works(tmp_path)


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.ENOSPC, errno.EIO, 99])
def test_each_fault_of_the_directory_is_one_line(tmp_path, monkeypatch, code):
    def fails(*_: object, **__: object) -> int:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", fails)
        assert refusal(tmp_path).startswith(f"DIR/lock: {os.strerror(code)}: ")
    works(tmp_path)


def test_a_path_that_is_not_utf_8_works_and_is_shown_in_one_line(tmp_path):
    directory = tmp_path / "b\udcff\n"
    works(directory)
    with Store.open(directory) as store:
        stream = store.stream(directory / "x\udcff", lambda _: b"x")
        store.write(Batch(writes=[(stream, [page("a")])]))
        with pytest.raises(StoreError) as refused:
            Store.open(directory)
        assert re.search(r"/b\\udcff\\n: another crawl", str(refused.value))


READ_ONLY = """
import os, sys
from trio_crawler.store.store import Store
from trio_crawler.store.errors import StoreError
from trio_crawler.store.history import History
os.setgid(65534); os.setuid(65534)
try:
    Store.open(sys.argv[1])
except StoreError as error:
    print(error)
with History(sys.argv[1]) as history:
    print(len(list(history.outcomes())), len(list(history.changes())))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("log", [False, True])
def test_a_directory_that_cannot_be_written_is_refused_but_can_be_read(tmp_path, log):
    directory = tmp_path / "crawl"
    walk(directory, [page("a")])
    walk(directory, [page("a")], refresh=True)
    if log:
        # As a kill leaves it: what was committed last stands in the log only.
        with Store.open(directory) as store:
            store.write(batch([page("b")], store.last_number() + 1))
            kept = {path.name: path.read_bytes() for path in directory.iterdir()}
        for name, content in kept.items():
            (directory / name).write_bytes(content)
        (directory / f"{NAME}-shm").unlink()
    for path in (tmp_path, *tmp_path.parents):
        if path.stat().st_uid == os.getuid() and str(path).startswith(f"{gettempdir()}/"):
            path.chmod(0o755)
    # As somebody has it who lets others read.
    directory.chmod(0o755)
    for path in directory.iterdir():
        path.chmod(0o644)
    done = subprocess.run(
        [sys.executable, "-c", READ_ONLY, directory], capture_output=True, text=True
    )
    assert done.stdout.splitlines() == [
        f"{directory}/lock: Permission denied: make it writable, or give another path",
        f"{2 if log else 1} {2 if log else 1}",
    ], done.stderr
    works(directory)


KILLED = """
import sys
from store.batches import batch, page
from trio_crawler.store.store import Store
store = Store.open(sys.argv[1])
stream = store.stream(sys.argv[1] + "/x", lambda outcome: outcome.url.encode() + b"\\n")
number = store.last_number()
while True:
    outcomes = [page(str(number + step), body=b"x" * 5000) for step in (1, 2, 3)]
    store.write(batch(outcomes, number + 1, writes=[(stream, outcomes)]))
    number += 3
    print(number, flush=True)
"""


@pytest.mark.process
def test_a_crawl_that_is_killed_while_it_writes_keeps_all_that_was_written(tmp_path):
    path = os.pathsep.join(filter(None, sys.path))
    for kill in range(4):
        child = subprocess.Popen(
            [sys.executable, "-c", KILLED, tmp_path],
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": path},
        )
        assert child.stdout is not None
        for _ in range(20 + 13 * kill):
            told = int(child.stdout.readline())
        child.kill()
        rest = child.stdout.read().split()
        child.stdout.close()
        child.wait()
        told = int(rest[-1]) if rest else told
        with History(tmp_path) as history:
            found = [outcome.url for outcome in history.outcomes()]
        assert len(found) in (told, told + 3)
        assert found == [f"{SITE}{number}" for number in range(1, len(found) + 1)]
        with Store.open(tmp_path) as store:
            store.stream(tmp_path / "x", lambda _: b"")
            assert store._database.row("PRAGMA integrity_check") == ("ok",)
            assert store.statistics().pages == len(found)
        assert (tmp_path / "x").read_text().split() == found


def test_a_directory_can_be_opened_after_a_kill_before_the_first_transaction(tmp_path):
    # The file is there, and nothing in it.
    (tmp_path / NAME).touch()
    works(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    connection = sqlite3.connect(other / NAME)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    works(other)


def test_nothing_is_left_open(tmp_path):
    before = set(os.listdir("/proc/self/fd"))
    works(tmp_path)
    with Store.open(tmp_path) as store:
        store.stream(tmp_path / "x", lambda _: b"")
        refusal(tmp_path)
        with pytest.raises(StoreError):
            store.stream(tmp_path, lambda _: b"")
    with pytest.raises(StoreError):
        History(tmp_path / "nowhere")
    with History(tmp_path) as history:
        list(history.outcomes())
    assert set(os.listdir("/proc/self/fd")) == before


def test_urls_that_wait_survive_a_run_without_a_close(tmp_path):
    store = Store.open(tmp_path)
    store.write(admitted("ab"))
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in tmp_path.iterdir():
        if path.is_file():
            (copy / path.name).write_bytes(path.read_bytes())
    store.close()
    with Store.open(copy) as other:
        assert [row[1] for row in next(other.walk.waiting())] == [SITE + "a", SITE + "b"]


def test_a_log_is_read_where_no_file_can_be_made_beside_it_and_no_copy_is_left(
    tmp_path, monkeypatch
):
    there, elsewhere = tmp_path / "there", tmp_path / "elsewhere"
    elsewhere.mkdir()
    with Store.open(tmp_path / "crawl") as store:
        store.write(batch([page("a")]))
        # As a crawl leaves them that is killed.
        shutil.copytree(tmp_path / "crawl", there)
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
    connect = sqlite3.connect

    def read_only(name: str, **how: Any) -> sqlite3.Connection:
        if name.endswith("?mode=ro"):
            # It would make an index of the log.
            error = sqlite3.OperationalError("unable to open database file")
            error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
            raise error
        return connect(name, **how)

    with monkeypatch.context() as patch:
        patch.setattr("sqlite3.connect", read_only)
        history = History(there)
    with history:
        assert [outcome.url for outcome in history.outcomes()] == [SITE + "a"]
    assert not list(elsewhere.iterdir())
