"""Records that are kept, packed or written to a file."""

from __future__ import annotations

import pytest

from trio_crawler.ledger.spool import Spool


def test_records_with_a_size_are_kept_until_there_is_no_room_and_all_come_back_in_order() -> None:
    spool = Spool(100)
    records = [(number, b"x" * number) for number in (40, 50, 20, 1, 5)]
    indices = [spool.append(record, len(record[1])) for record in records]
    assert indices == [0, 1, -1, -2, -3]
    assert [spool[index] for index in indices] == list(spool) == records
    assert len(spool) == 5
    spool.close()


def test_a_record_without_a_size_takes_no_room_from_the_others() -> None:
    spool = Spool(100)
    assert [spool.append(["a"]), spool.append("b", 60), spool.append(["c"])] == [-1, 0, -2]
    assert list(spool) == ["b", ["a"], ["c"]]
    with pytest.raises(IndexError):
        Spool()[-1]
    spool.close()
