from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from store.batches import SITE, batch, page

from trio_crawler.model import Outcome
from trio_crawler.store.errors import InUse, StoreError
from trio_crawler.store.runs import End
from trio_crawler.store.store import Store
from trio_crawler.store.writer import Batch


def record(outcome: Outcome) -> bytes:
    return outcome.url.encode() + b"\n"


def head() -> bytes:
    return b"head\n"


def lines(*paths: str) -> bytes:
    return b"".join(b"%s%s\n" % (SITE.encode(), path.encode()) for path in paths)


def write(store: Store, stream, first: int, *paths: str) -> None:
    outcomes = [page(path) for path in paths]
    store.write(batch(outcomes, first, writes=[(stream, outcomes)]))


def test_records_come_once_behind_the_head_over_many_runs(tmp_path):
    path = tmp_path / "pages.jsonl"
    for number, name in enumerate("abc", 1):
        with Store.open(tmp_path / "crawl") as store:
            stream = store.stream(path, record, head)
            assert stream.is_new == (number == 1)
            write(store, stream, number, name)
    assert path.read_bytes() == b"head\n" + lines("a", "b", "c")


def test_a_head_is_written_with_the_first_batch_of_anything(tmp_path):
    with Store.open(tmp_path) as store:
        store.stream(tmp_path / "x.warc", record, head)
        store.write(Batch())
    assert (tmp_path / "x.warc").read_bytes() == b"head\n"


def test_a_head_in_pieces_is_written_piece_by_piece_and_counts_as_a_whole(tmp_path):
    path, sizes = tmp_path / "x", list[int]()

    def pieces():
        for piece in (b"one\n", b"", b"two\n"):
            sizes.append(path.stat().st_size)
            yield piece

    with Store.open(tmp_path / "crawl") as store:
        write(store, store.stream(path, record, pieces), 1, "a")
    assert sizes == [0, 4, 4]
    with Store.open(tmp_path / "crawl") as store:
        write(store, store.stream(path, record, pieces), 2, "b")
    assert path.read_bytes() == b"one\ntwo\n" + lines("a", "b")


def test_pieces_of_a_head_that_fails_halfway_are_cut_off(tmp_path):
    path = tmp_path / "x"

    def pieces():
        yield b"one\n"
        raise ZeroDivisionError

    with Store.open(tmp_path / "crawl") as store:
        stream = store.stream(path, record, pieces)
        with pytest.raises(ZeroDivisionError):
            store.write(Batch())
        assert (path.read_bytes(), stream.committed) == (b"", 0)


def test_what_was_never_committed_is_cut_off(tmp_path):
    path = tmp_path / "pages.jsonl"
    with Store.open(tmp_path) as store:
        write(store, store.stream(path, record), 1, "a")
    # As a kill between the file and the transaction leaves it.
    with path.open("ab") as file:
        file.write(b"torn")
    with Store.open(tmp_path) as store:
        stream = store.stream(path, record)
        assert path.read_bytes() == lines("a")
        write(store, stream, 2, "b")
    assert path.read_bytes() == lines("a", "b")


KILLED = """
import os, sys
from pathlib import Path
from store.test_streams import Store, record, write
store = Store.open(sys.argv[1])
stream = store.stream(Path(sys.argv[1], "pages.jsonl"), record)
write(store, stream, 1, "a")
Store._transact = lambda *_, **how: os.kill(os.getpid(), 9)
write(store, stream, 2, "b")
"""


def test_a_kill_between_the_file_and_the_transaction_writes_nothing_twice(tmp_path):
    path = tmp_path / "pages.jsonl"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    killed = subprocess.run([sys.executable, "-c", KILLED, tmp_path], env=environment)
    assert killed.returncode == -9
    assert path.read_bytes() == lines("a", "b")
    with Store.open(tmp_path) as store:
        assert [outcome.url for outcome in store.walk.outcomes()] == [SITE + "a"]
        write(store, store.stream(path, record), 2, "b")
    assert path.read_bytes() == lines("a", "b")


def test_a_transaction_that_fails_takes_its_records_back(tmp_path):
    path = tmp_path / "pages.jsonl"
    with Store.open(tmp_path) as store:
        stream = store.stream(path, record)
        write(store, stream, 1, "a")
        with pytest.raises(sqlite3.IntegrityError):
            write(store, stream, 1, "b")
        assert path.read_bytes() == lines("a")


def test_a_bug_in_an_encoder_comes_out_and_nothing_is_written(tmp_path):
    def fails(outcome: Outcome) -> bytes:
        raise KeyError(outcome.url)

    with Store.open(tmp_path) as store:
        stream = store.stream(tmp_path / "x", fails)
        with pytest.raises(KeyError):
            write(store, stream, 1, "a")
        assert list(store.walk.outcomes()) == []


def test_a_stream_that_the_database_could_not_take_note_of_gets_nothing(tmp_path):
    path = tmp_path / "x"
    with Store.open(tmp_path / "crawl") as store:
        with sqlite3.connect(tmp_path / "crawl/crawl.sqlite") as other:
            full = "CREATE TRIGGER full BEFORE INSERT ON streams BEGIN SELECT RAISE(FAIL, ''); END"
            other.execute(full)
        with pytest.raises(sqlite3.IntegrityError):
            store.stream(path, record, head)
        other.execute("DROP TRIGGER full")
        # A run that ends writes what there is to write, and each stream gets its head.
        store.write(Batch())
        assert path.read_bytes() == b""
        write(store, store.stream(path, record, head), 1, "a")
        other.close()
    assert path.read_bytes() == b"head\n" + lines("a")


@pytest.mark.parametrize("size", [0, 5])
def test_a_file_that_was_cut_is_refused(tmp_path, size):
    path = tmp_path / "pages.jsonl"
    with Store.open(tmp_path) as store:
        write(store, store.stream(path, record), 1, "a")
    os.truncate(path, size)
    with Store.open(tmp_path) as store:
        with pytest.raises(StoreError) as refused:
            store.stream(path, record)
        assert str(refused.value) == (
            f"{path}: it has {size} bytes, not 17, although the crawl wrote it: "
            "restore it, or give another path"
        )
        assert path.stat().st_size == size


def test_a_file_that_is_gone_is_refused_and_not_made_anew(tmp_path):
    path = tmp_path / "pages.jsonl"
    with Store.open(tmp_path) as store:
        write(store, store.stream(path, record), 1, "a")
    path.unlink()
    with Store.open(tmp_path) as store:
        with pytest.raises(StoreError, match=r"pages\.jsonl: it is gone.*: restore it, or give"):
            store.stream(path, record)
        assert not path.exists()


@pytest.mark.parametrize("change", [Path.unlink, lambda path: os.truncate(path, 3)])
def test_a_file_that_is_removed_or_cut_while_it_is_written_is_noticed(tmp_path, change):
    path = tmp_path / "pages.jsonl"
    with Store.open(tmp_path) as store:
        stream = store.stream(path, record)
        write(store, stream, 1, "a")
        change(path)
        with pytest.raises(StoreError, match="it was removed or cut during the crawl"):
            write(store, stream, 2, "b")
        assert len(list(store.walk.outcomes())) == 1
    assert not path.exists() or path.stat().st_size == 3


def test_a_directory_and_a_pipe_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "directory").mkdir()
    with Store.open(tmp_path / "crawl") as store:
        with pytest.raises(StoreError, match="directory: Is a directory: it must be a plain file"):
            store.stream(tmp_path / "directory", record)
        for path in (tmp_path / "pipe", Path("/dev/null")):
            with pytest.raises(StoreError, match="it is not a plain file"):
                store.stream(path, record)
        with pytest.raises(StoreError, match="No such file or directory: give another path"):
            store.stream(tmp_path / "no" / "where", record)


@pytest.mark.parametrize("name", ["crawl.sqlite", "crawl.sqlite-wal", "crawl.sqlite-shm", "lock"])
def test_the_files_of_the_crawl_itself_are_refused(tmp_path, name):
    with Store.open(tmp_path) as store:
        with pytest.raises(
            StoreError, match="it is a file of the crawl itself: give another path"
        ):
            store.stream(tmp_path / "." / name, record)
        store.write(batch([page("a")]))


def test_one_file_for_two_streams_is_refused(tmp_path):
    with Store.open(tmp_path / "crawl") as store:
        stream = store.stream(tmp_path / "a", record)
        os.link(tmp_path / "a", tmp_path / "b")
        for name in ("a", "b"):
            with pytest.raises(
                InUse, match="another crawl or stream is writing to it: give another path"
            ):
                store.stream(tmp_path / name, record)
        write(store, stream, 1, "a")
    assert (tmp_path / "a").read_bytes() == lines("a")


def test_a_file_that_another_crawl_writes_to_is_refused_and_unharmed(tmp_path):
    with Store.open(tmp_path / "one") as one, Store.open(tmp_path / "two") as two:
        write(one, one.stream(tmp_path / "x", record), 1, "a")
        with pytest.raises(InUse, match="is writing to it: give another path"):
            two.stream(tmp_path / "x", record)
    assert (tmp_path / "x").read_bytes() == lines("a")


def test_a_directory_that_moved_knows_the_streams_inside_it(tmp_path):
    with Store.open(tmp_path / "one") as store:
        write(store, store.stream(tmp_path / "one" / "x", record), 1, "a")
    (tmp_path / "one").rename(tmp_path / "two")
    with Store.open(tmp_path / "two") as store:
        stream = store.stream(tmp_path / "two" / "x", record)
        assert (stream.is_new, stream.committed) == (False, 17)


def test_a_stream_returns_the_outcomes_that_were_added_once(tmp_path):
    with Store.open(tmp_path) as store:
        stream = store.stream(tmp_path / "x", record)
        first, second = page("a"), page("b")
        stream.add(first)
        stream.add(second)
        assert stream.pop() == [first, second]
        assert stream.pop() == []


def assert_refused(directory: Path, path: Path, why: str) -> None:
    """Assert that a crawl refuses a file for its stream and leaves it unchanged."""
    before = path.read_bytes()
    with Store.open(directory) as store, pytest.raises(StoreError, match=why):
        store.stream(path, record)
    assert path.read_bytes() == before


def test_a_file_that_is_there_already_is_not_touched(tmp_path):
    (tmp_path / "x").write_bytes(b"precious")
    assert_refused(
        tmp_path / "crawl",
        tmp_path / "x",
        "it exists already, and does not belong to this crawl: move it",
    )


def test_a_directory_that_moved_with_the_streams_beside_it_knows_them(tmp_path):
    (tmp_path / "one").mkdir()
    with Store.open(tmp_path / "one" / "crawl") as store:
        write(store, store.stream(tmp_path / "one" / "x", record), 1, "a")
    (tmp_path / "one").rename(tmp_path / "two")
    with Store.open(tmp_path / "two" / "crawl") as store:
        stream = store.stream(tmp_path / "two" / "x", record)
        assert (stream.is_new, stream.committed) == (False, 17)


def test_a_directory_that_moved_away_from_its_streams_leaves_them_alone(tmp_path):
    with Store.open(tmp_path / "crawl") as store:
        write(store, store.stream(tmp_path / "x", record), 1, "a")
    (tmp_path / "deeper").mkdir()
    (tmp_path / "crawl").rename(tmp_path / "deeper" / "crawl")
    assert_refused(tmp_path / "deeper" / "crawl", tmp_path / "x", "it exists already")


@pytest.mark.parametrize("other", [b"another crawl's records\n" * 9, b"{}" * 5_000])
def test_a_file_with_other_content_is_refused_and_unharmed(tmp_path, other):
    with Store.open(tmp_path / "crawl") as store:
        write(store, store.stream(tmp_path / "x", record), 1, "a")
    (tmp_path / "x").write_bytes(other)
    assert_refused(
        tmp_path / "crawl", tmp_path / "x", "it has other content, although the crawl wrote it"
    )


def test_bytes_after_the_records_of_a_run_that_ended_are_not_cut_off(tmp_path):
    with Store.open(tmp_path / "crawl") as store:
        write(store, store.stream(tmp_path / "x", record), 1, "a")
        store.end(End.STOPPED, [], 1.0)
    with (tmp_path / "x").open("ab") as file:
        file.write(b"precious")
    assert_refused(
        tmp_path / "crawl", tmp_path / "x", "it has 25 bytes, not 17, although the crawl wrote it"
    )


def test_a_file_that_never_got_a_record_may_belong_to_another_crawl_by_now(tmp_path):
    with Store.open(tmp_path / "one") as store:
        store.stream(tmp_path / "x", record)
        store.end(End.STOPPED, [], 1.0)
    with Store.open(tmp_path / "two") as store:
        write(store, store.stream(tmp_path / "x", record), 1, "a")
    assert_refused(tmp_path / "one", tmp_path / "x", "not 0, although")
