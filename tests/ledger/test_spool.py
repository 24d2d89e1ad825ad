"""Records that are kept, packed or written to a file."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from trio_crawler import StoreError
from trio_crawler.ledger.tables import Spool


def test_records_with_a_size_are_kept_until_there_is_no_room_and_all_come_back_in_order() -> None:
    spool = Spool(100, in_order=True)
    records = [(number, b"x" * number) for number in (40, 50, 20, 1, 5)]
    indices = [spool.append(record, len(record[1])) for record in records]
    assert indices == [0, 1, -1, -2, -3]
    assert [spool[index] for index in indices] == list(spool) == records
    assert len(spool) == 5
    spool.close()


def test_where_no_order_matters_a_small_record_is_kept_after_a_large_one() -> None:
    spool = Spool(100)
    assert [spool.append("a", 60), spool.append("b", 60), spool.append("c", 40)] == [0, -1, 1]
    spool.close()


def test_what_is_beyond_the_room_in_memory_is_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trio_crawler.ledger.tables.MEMORY", 10_000)
    spool = Spool()
    records = [[Random(number).randbytes(500)] for number in range(100)]
    indices = [spool.append(record) for record in records]
    assert [spool[index] for index in indices] == list(spool) == records
    spool.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the disk that is always full")
def test_a_full_disk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trio_crawler.ledger.tables.MEMORY", 10_000)
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: open("/dev/full", "w+b"))  # noqa: SIM115
    spool = Spool()
    with pytest.raises(StoreError, match="free some space"):
        spool.append([Random(1).randbytes(20_000)])
    spool.close()


def test_a_record_without_a_size_takes_no_room_from_the_others() -> None:
    spool = Spool(100)
    assert [spool.append(["a"]), spool.append("b", 60), spool.append(["c"])] == [-1, 0, -2]
    assert list(spool) == ["b", ["a"], ["c"]]
    with pytest.raises(IndexError):
        Spool()[-1]
    spool.close()
