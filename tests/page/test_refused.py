"""A compiled reader to which memory is refused ends in an error, or gives its page up."""

from __future__ import annotations

import subprocess
import sys

import pytest
from page import refused

from trio_crawler.page import accelerator

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(accelerator.scan is None, reason="there are no compiled readers"),
]


@pytest.mark.parametrize(
    ("reader", "ends"),
    [
        ("scan", {"None", "error", "whole"}),
        ("tags", {"None", "error"}),
        ("targets", {"None", "error", "whole"}),
        ("text", {"error", "whole"}),
    ],
)
def test_a_reader_without_memory_ends_in_an_error_or_gives_its_page_up(reader, ends):
    pytest.importorskip("_testcapi", reason="this Python has no tests of its own")
    command = [sys.executable, refused.__file__, reader]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert set(told.stdout.split()) == ends
