"""Records that are kept, packed or written to a file."""

from __future__ import annotations

from errno import ENOSPC
from functools import partial
from io import BytesIO
from random import Random
from typing import Any

import pytest

from trio_crawler.ledger.spool import Spool


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


def test_no_record_is_lost_when_the_disk_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trio_crawler.ledger.spool.MEMORY", 10_000)
    for limit in (0, 5_000, 20_000):
        spool = Spool()
        monkeypatch.setattr("trio_crawler.ledger.spool.TemporaryFile", partial(Full, limit))
        records = [[Random(number).randbytes(500)] for number in range(100)]
        indices = [spool.append(record) for record in records]
        assert [spool[index] for index in indices] == list(spool) == records
        spool.close()


class Full(BytesIO):
    """A file on a disk with so little room."""

    def __init__(self, limit: int, buffering: int) -> None:
        super().__init__()
        assert buffering == 0
        self.limit = limit

    def write(self, data: Any) -> int:
        room = self.limit - self.tell()
        if room <= 0:
            raise OSError(ENOSPC, "no space")
        return super().write(data[:room])


def test_a_record_without_a_size_takes_no_room_from_the_others() -> None:
    spool = Spool(100)
    assert [spool.append(["a"]), spool.append("b", 60), spool.append(["c"])] == [-1, 0, -2]
    assert list(spool) == ["b", ["a"], ["c"]]
    with pytest.raises(IndexError):
        Spool()[-1]
    spool.close()
