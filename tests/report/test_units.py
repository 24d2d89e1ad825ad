from __future__ import annotations

import pytest

from trio_crawler.report.units import count, duration, size


@pytest.mark.parametrize(
    ("octets", "written"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (12_595, "12.3 KiB"),
        (1_048_575, "1.0 MiB"),
        (12_897_485, "12.3 MiB"),
        (5 << 30, "5.0 GiB"),
        (2048 << 40, "2,048.0 TiB"),
    ],
)
def test_sizes_are_written_in_binary_units(octets: int, written: str) -> None:
    assert size(octets) == written


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (0.0, "0 ms"),
        (0.0344, "34 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1.00 s"),
        (1.234, "1.23 s"),
        (99.996, "100 s"),
        (1234.5, "1,234 s"),
    ],
)
def test_durations_are_written_in_ms_or_s(seconds: float, written: str) -> None:
    assert duration(seconds) == written


def test_a_noun_agrees_with_its_number() -> None:
    assert [count(number, "page") for number in (0, 1, 2, 6000)] == [
        "0 pages",
        "1 page",
        "2 pages",
        "6,000 pages",
    ]
    assert count(1_234_567) == "1,234,567"
